"""How fast translations are written: Transformer base, vocabulary 37,000, beside other systems with the same weights.

    python benchmarks/decode.py [--json] [--rounds 5]

Three settings: 64 sentences at a time with a beam of 4, one sentence at a time with a beam of 4, and 64 sentences
greedily. Every system gets the same random source ids and writes the same number of tokens: weights are random, so no
system may end a sentence, and each is told how many tokens to write, one number for all sentences of a batch
(``decoders.py``). Counted are the tokens of the translations, one for each sentence, not those of the other beams.

Each system has a process of its own and is asked in turn, round by round, every second round in the opposite order; the
others wait meanwhile. Before the first round each writes a few tokens in each setting. The figures are medians over the
rounds, with their range, and the most memory that the process ever held.

That all do the same work is checked: in fp32, the peers must write the same ids greedily as ours does. (Random weights
write monotonous text; the test of this program also compares probabilities, with CTranslate2.)

The peers are CTranslate2 and ``generate`` of transformers' MarianMTModel. ``ratio_to_best_peer`` compares with the best
of them as they come (both in fp32: the default compute type of CTranslate2 is that of the weights),
``ratio_to_best_tuned_peer`` also with every other compute type of CTranslate2, and ``fp32_ratio`` our fp32 with float32
of CTranslate2. In the first two, ours is the best of our precisions.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any, Self, get_args

from decoders import (
    CTranslate2Decoder,
    Decoder,
    Ids,
    OurDecoder,
    make_marian_decoder,
    make_model,
    make_sources,
    token_names,
)
from machine import machine, peak_memory_mb
from rates import ratio, summary, table

from transduce.config import InferencePrecision, TransformerConfig
from transduce.model import has_int8_products
from transduce.recipes import preset

SEED = 1
BEAM_SIZE = 4
WARM_UP_TOKENS = 3
OURS: dict[str, InferencePrecision] = {f"transduce_{name}": name for name in get_args(InferencePrecision)}
REFERENCE = "transduce_fp32"
CTRANSLATE2 = "ctranslate2_float32"
PEERS = (CTRANSLATE2, "transformers_float32")  # as they come
COMPUTE_TYPES = ("float32", "bfloat16", "int8", "int8_bfloat16")  # of CTranslate2, where it has them for this processor
UNIT = "tokens_per_s"


@dataclass(frozen=True, slots=True)
class Batch:
    """Sources that are translated together, and how many tokens each translation has."""

    sources: list[Ids]
    n_tokens: int
    beam_size: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What a worker says about a batch that it has translated."""

    outputs: list[Ids]
    elapsed_s: float
    peak_memory_mb: float


class Worker:
    """A decoder in a process of its own; leaving the context ends it."""

    def __init__(self, make_decoder: Callable[[], Decoder]) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, make_decoder), daemon=True)
        self._process.start()
        theirs.close()  # so that the death of the process is the end of the pipe

    def ask(self, batch: Batch) -> Answer:
        """Translate a batch; the first call waits for the decoder to be made. Raises RuntimeError if that failed."""
        self._pipe.send(batch)
        try:
            answer: Answer = self._pipe.recv()
        except EOFError:
            self._process.join()
            raise RuntimeError(f"a system ended with exit status {self._process.exitcode}; see above") from None
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._process.join()


def _serve(pipe: Connection, make_decoder: Callable[[], Decoder]) -> None:
    os.dup2(2, 1)  # what libraries print is not the result
    decoder = make_decoder()
    while True:
        try:
            batch: Batch = pipe.recv()
        except EOFError:
            return
        start = time.perf_counter()
        outputs = decoder.write(batch.sources, n_tokens=batch.n_tokens, beam_size=batch.beam_size)
        pipe.send(Answer(outputs, time.perf_counter() - start, peak_memory_mb()))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Speed of decoding, beside CTranslate2.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2, help="of every system")
    parser.add_argument("--systems", nargs="+", metavar="NAME", help="only these, and the check only of them")
    parser.add_argument("--preset", default="base", help="the model")
    parser.add_argument("--vocab-size", type=int, default=37_000)
    arguments = parser.parse_args()
    config = preset(arguments.preset).model.with_vocabulary(arguments.vocab_size, arguments.vocab_size)
    settings = make_settings(config.src_vocab_size)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        makers = make_decoders(config, Path(folder) / "ctranslate2", n_threads=arguments.threads)
        chosen = arguments.systems or list(makers)
        if unknown := set(chosen) - set(makers):
            parser.error(f"unknown: {', '.join(unknown)}; known are {', '.join(makers)}")
        workers = {name: stack.enter_context(Worker(makers[name])) for name in chosen}
        check_same_work(workers, settings["batch64_greedy"][0])
        rates, memory = measure(workers, settings, n_rounds=arguments.rounds)
    if arguments.json:
        print(json.dumps(as_json(rates, memory)))
        return
    notes = {name: f"{mb:,.0f} MB" for name, mb in memory.items()}
    for name, of_setting in rates.items():
        print(table(name, of_setting, UNIT, notes), end="\n\n")


def make_settings(vocab_size: int) -> dict[str, list[Batch]]:
    """The work of one round, by setting; sources are about as long as their translations."""
    random = Random(SEED)

    def batch(n_sentences: int, n_tokens: int, beam_size: int) -> Batch:
        return Batch(make_sources(n_sentences, n_tokens, vocab_size=vocab_size, random=random), n_tokens, beam_size)

    return {
        "batch64_beam4": [batch(64, n_tokens, BEAM_SIZE) for n_tokens in (16, 32)],
        "batch1_beam4": [batch(1, n_tokens, BEAM_SIZE) for n_tokens in (10, 20, 30, 40)],
        "batch64_greedy": [batch(64, n_tokens, 1) for n_tokens in (16, 32)],
    }


def make_decoders(config: TransformerConfig, folder: Path, *, n_threads: int) -> dict[str, Callable[[], Decoder]]:
    """How each system is made in its process. Writes the weights to ``folder`` for CTranslate2."""
    import ctranslate2
    from ctranslate2_model import write_ctranslate2_model

    names = token_names(config.src_vocab_size)
    write_ctranslate2_model(make_model(config), folder, src_tokens=names, tgt_tokens=names)
    supported = ctranslate2.get_supported_compute_types("cpu")
    makers: dict[str, Callable[[], Decoder]] = {
        name: partial(OurDecoder, config, precision, n_threads=n_threads)
        for name, precision in OURS.items()
        if precision != "int8" or has_int8_products("cpu")
    }
    for compute_type in COMPUTE_TYPES:
        if compute_type in supported:
            makers[f"ctranslate2_{compute_type}"] = partial(
                CTranslate2Decoder, folder, compute_type, vocab_size=config.src_vocab_size, n_threads=n_threads
            )
    makers["transformers_float32"] = partial(make_marian_decoder, config, n_threads=n_threads)
    return makers


def check_same_work(workers: Mapping[str, Worker], batch: Batch) -> None:
    """Say that those in fp32 write the same, or end the program: speeds would mean nothing."""
    names = [name for name in (REFERENCE, *PEERS) if name in workers]
    ours = workers[names[0]].ask(batch).outputs
    for name in names[1:]:
        theirs = workers[name].ask(batch).outputs
        n_same = sum(mine == other for mine, other in zip(ours, theirs, strict=True))
        print(f"{name}: {n_same} of {len(ours)} sentences are written as by {names[0]}", file=sys.stderr)
        if n_same < len(ours):
            sys.exit("these systems do not compute the same; their speeds cannot be compared")


def measure(
    workers: Mapping[str, Worker], settings: Mapping[str, Sequence[Batch]], *, n_rounds: int
) -> tuple[dict[str, dict[str, list[float]]], dict[str, float]]:
    """Tokens a second by setting and system, one figure of each round; and the memory of each system."""
    memory = dict.fromkeys(workers, 0.0)
    for batches in settings.values():
        for worker in workers.values():
            worker.ask(Batch(batches[0].sources, WARM_UP_TOKENS, batches[0].beam_size))
    rates: dict[str, dict[str, list[float]]] = {name: {system: [] for system in workers} for name in settings}
    for number in range(n_rounds):
        for name, batches in settings.items():
            for system, worker in list(workers.items())[:: -1 if number % 2 else 1]:
                answers = [worker.ask(batch) for batch in batches]
                n_tokens = sum(len(output) for answer in answers for output in answer.outputs)
                expected = sum(len(batch.sources) * batch.n_tokens for batch in batches)
                if n_tokens != expected:
                    sys.exit(f"{system} wrote {n_tokens:,} tokens in {name}, not {expected:,}")
                rates[name][system].append(n_tokens / sum(answer.elapsed_s for answer in answers))
                memory[system] = answers[-1].peak_memory_mb
        print(f"round {number + 1} of {n_rounds}", file=sys.stderr)
    return rates, memory


def as_json(rates: Mapping[str, Mapping[str, Sequence[float]]], memory: Mapping[str, float]) -> dict[str, Any]:
    """Medians, ranges, memory and ratios, by setting."""
    out: dict[str, Any] = {}
    for name, of_setting in rates.items():
        peers = of_setting.keys() - OURS.keys()
        out[name] = {
            system: summary(values, UNIT) | {"peak_memory_mb": round(memory[system])}
            for system, values in of_setting.items()
        }
        out[name]["ratio_to_best_peer"] = ratio(of_setting, OURS, PEERS)
        out[name]["ratio_to_best_tuned_peer"] = ratio(of_setting, OURS, peers)
        out[name]["fp32_ratio"] = ratio(of_setting, [REFERENCE], [CTRANSLATE2])
    return out | {"machine": machine()}


if __name__ == "__main__":
    main()
