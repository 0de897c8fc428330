"""Decoding speed of Transformer base, vocabulary 37,000, compared with other systems with the same weights.

    python benchmarks/decode.py [--json] [--rounds 5]

Three settings: batches of 64 sentences with beam 4, single sentences with beam 4, and batches of 64 sentences with
greedy search. Every system gets the same random source ids and generates the same number of tokens: the weights are
random, so EOS is suppressed and the number of tokens is fixed, the same for all sentences of a batch (``decoders.py``).
Only tokens of the best translations are counted, not those of the other beams.

Each system runs in its own process. They are measured in turn, round by round, every second round in reverse order,
while the others wait. Before the first round each generates a few tokens in each setting. The figures are medians over
the rounds, with their range, and the peak memory of the process.

Equal work is checked: in fp32, the other systems must generate the same ids as ours with greedy search. (Random weights
generate monotonous text; the test of this program also compares probabilities, with CTranslate2.)

The other systems (peers) are CTranslate2 and ``generate`` of transformers' MarianMTModel. ``ratio_to_best_peer`` is
relative to the best of them with default settings (both fp32: CTranslate2's default compute type is that of the
weights), ``ratio_to_best_tuned_peer`` also to every other compute type of CTranslate2 and to its workers, one a
thread, and ``fp32_ratio`` compares our fp32 with float32 of CTranslate2. In all, ours is the best of our precisions and
engines: ``transduce_*`` is the one in C, ``pytorch_*`` that of PyTorch. ``transduce_int8_shortlist``, which is in no
ratio, scores a random shortlist of the size that ``transduce shortlist`` makes.

On a machine that does other work, too, ``--cpu`` gives tokens per second of processor time in place of time.
"""

from __future__ import annotations

import argparse
import importlib.util
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
from needed import BENCH, need
from rates import ratio, summary, table

from transduce.config import InferencePrecision, TransformerConfig
from transduce.config.decoding import EngineName
from transduce.inference.native.binding import library
from transduce.model import Transformer, has_int8_products
from transduce.recipes import preset

SEED = 1
BEAM_SIZE = 4
WARM_UP_TOKENS = 3
OURS: dict[str, tuple[EngineName, InferencePrecision]] = {
    f"{name}_{precision}": (engine, precision)
    for name, engine in (("transduce", "native"), ("pytorch", "torch"))
    for precision in get_args(InferencePrecision)
}
REFERENCES = ("transduce_fp32", "pytorch_fp32")
CTRANSLATE2 = "ctranslate2_float32"
PEERS = (CTRANSLATE2, "transformers_float32")  # with default settings
COMPUTE_TYPES = ("float32", "bfloat16", "int8", "int8_bfloat16")  # of CTranslate2, if supported by the processor
SHORTLIST, SHORTLIST_SIZE = "transduce_int8_shortlist", (50, 200)  # tokens of each source token, and of all
UNIT = "tokens_per_s"


@dataclass(frozen=True, slots=True)
class Batch:
    """Sources that are translated together, and the number of tokens to generate for each."""

    sources: list[Ids]
    n_tokens: int
    beam_size: int


@dataclass(frozen=True, slots=True)
class Result:
    """A worker's result for a batch."""

    outputs: list[Ids]
    elapsed_s: float
    peak_memory_mb: float


class Worker:
    """A decoder in its own process, which ends with the context."""

    def __init__(self, make_decoder: Callable[[], Decoder], clock: Callable[[], float]) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, make_decoder, clock), daemon=True)
        self._process.start()
        theirs.close()  # so that recv raises EOFError if the process dies

    def run(self, batch: Batch) -> Result:
        """Translate a batch; the first call waits for the decoder to load. Raises RuntimeError if the process died."""
        self._pipe.send(batch)
        try:
            result: Result = self._pipe.recv()
        except EOFError:
            self._process.join()
            raise RuntimeError(f"a system ended with exit status {self._process.exitcode}; see above") from None
        return result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._process.join()


def _serve(pipe: Connection, make_decoder: Callable[[], Decoder], clock: Callable[[], float]) -> None:
    os.dup2(2, 1)  # output of libraries must not mix with the result
    decoder = make_decoder()
    while True:
        try:
            batch: Batch = pipe.recv()
        except EOFError:
            return
        start = clock()
        outputs = decoder.write(batch.sources, n_tokens=batch.n_tokens, beam_size=batch.beam_size)
        pipe.send(Result(outputs, clock() - start, peak_memory_mb()))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure decoding speed and compare it with other systems.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2, help="number of threads of every system")
    parser.add_argument("--systems", nargs="+", metavar="NAME", help="measure and check only these systems")
    parser.add_argument("--preset", default="base", help="preset of the model")
    parser.add_argument("--vocab-size", type=int, default=37_000)
    parser.add_argument("--cpu", action="store_true", help="measure processor time")
    arguments = parser.parse_args()
    chosen = arguments.systems or []
    for peer in ("ctranslate2", "transformers"):
        if not chosen or any(name.startswith(peer) for name in chosen):
            need(parser, peer, how=f"{BENCH}, or choose other --systems")
    config = preset(arguments.preset).model.with_vocabulary(arguments.vocab_size, arguments.vocab_size)
    settings = make_settings(config.src_vocab_size)
    clock = time.process_time if arguments.cpu else time.perf_counter
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        makers = make_decoders(config, Path(folder) / "ctranslate2", n_threads=arguments.threads)
        chosen = chosen or list(makers)
        if unknown := set(chosen) - set(makers):
            parser.error(f"unknown: {', '.join(unknown)}; known are {', '.join(makers)}")
        workers = {name: stack.enter_context(Worker(makers[name], clock)) for name in chosen}
        check_same_work(workers, settings["batch64_greedy"][0])
        rates, memory = measure(workers, settings, n_rounds=arguments.rounds)
    if arguments.json:
        print(json.dumps(as_json(rates, memory)))
        return
    notes = {name: f"{mb:,.0f} MB" for name, mb in memory.items()}
    for name, of_setting in rates.items():
        print(table(name, of_setting, UNIT, notes), end="\n\n")


def make_settings(vocab_size: int) -> dict[str, list[Batch]]:
    """Return the batches of one round, by setting; sources are about as long as their translations."""
    random = Random(SEED)

    def batch(n_sentences: int, n_tokens: int, beam_size: int) -> Batch:
        return Batch(make_sources(n_sentences, n_tokens, vocab_size=vocab_size, random=random), n_tokens, beam_size)

    return {
        "batch64_beam4": [batch(64, n_tokens, BEAM_SIZE) for n_tokens in (16, 32)],
        "batch1_beam4": [batch(1, n_tokens, BEAM_SIZE) for n_tokens in (10, 20, 30, 40)],
        "batch64_greedy": [batch(64, n_tokens, 1) for n_tokens in (16, 32)],
    }


def make_decoders(config: TransformerConfig, folder: Path, *, n_threads: int) -> dict[str, Callable[[], Decoder]]:
    """Return a factory of each system, called in its process; write the weights for CTranslate2 to ``folder``."""
    supported = _written_for_ctranslate2(config, folder) if importlib.util.find_spec("ctranslate2") else set()
    makers: dict[str, Callable[[], Decoder]] = {
        name: partial(OurDecoder, config, engine, precision, n_threads=n_threads)
        for name, (engine, precision) in OURS.items()
        if (library() is not None if engine == "native" else precision != "int8" or has_int8_products("cpu"))
    }
    if library() is not None:
        makers[SHORTLIST] = partial(
            OurDecoder, config, "native", "int8", n_threads=n_threads, shortlist_size=SHORTLIST_SIZE
        )
    for compute_type in COMPUTE_TYPES:
        if compute_type in supported:
            for n_workers in sorted({1, n_threads}):
                makers[f"ctranslate2_{compute_type}" + (f"_{n_workers}_workers" if n_workers > 1 else "")] = partial(
                    CTranslate2Decoder, folder, compute_type, vocab_size=config.src_vocab_size, n_threads=n_threads,
                    n_workers=n_workers,
                )  # fmt: skip
    makers["transformers_float32"] = partial(make_marian_decoder, config, n_threads=n_threads)
    return makers


def _written_for_ctranslate2(config: TransformerConfig, folder: Path) -> set[str]:
    """Write the weights, and return the compute types that this processor has."""
    import ctranslate2

    from transduce.exchange.ctranslate2 import write_ctranslate2

    names = token_names(config.src_vocab_size)
    folder.mkdir()
    model = make_model(config)
    assert isinstance(model, Transformer)
    write_ctranslate2(folder, model, src_tokens=names, tgt_tokens=names)
    supported: set[str] = ctranslate2.get_supported_compute_types("cpu")
    return supported


def check_same_work(workers: Mapping[str, Worker], batch: Batch) -> None:
    """Check that the fp32 systems generate the same ids; exit otherwise, as speeds would not be comparable."""
    names = [name for name in (*REFERENCES, *PEERS) if name in workers]
    if len(names) < 2:
        print("equal work is not checked: of the fp32 systems, fewer than two are measured", file=sys.stderr)
        return
    ours = workers[names[0]].run(batch).outputs
    for name in names[1:]:
        theirs = workers[name].run(batch).outputs
        n_same = sum(mine == other for mine, other in zip(ours, theirs, strict=True))
        print(f"{name}: {n_same} of {len(ours)} sentences are the same as those of {names[0]}", file=sys.stderr)
        if n_same < len(ours):
            sys.exit("these systems produce different outputs; their speeds cannot be compared")


def measure(
    workers: Mapping[str, Worker], settings: Mapping[str, Sequence[Batch]], *, n_rounds: int
) -> tuple[dict[str, dict[str, list[float]]], dict[str, float]]:
    """Return tokens per second by setting and system, one figure per round, and the memory of each system."""
    memory = dict.fromkeys(workers, 0.0)
    for batches in settings.values():
        for worker in workers.values():
            worker.run(Batch(batches[0].sources, WARM_UP_TOKENS, batches[0].beam_size))
    rates: dict[str, dict[str, list[float]]] = {name: {system: [] for system in workers} for name in settings}
    for number in range(n_rounds):
        for name, batches in settings.items():
            for system, worker in list(workers.items())[:: -1 if number % 2 else 1]:
                results = [worker.run(batch) for batch in batches]
                n_tokens = sum(len(output) for result in results for output in result.outputs)
                expected = sum(len(batch.sources) * batch.n_tokens for batch in batches)
                if n_tokens != expected:
                    sys.exit(f"{system} generated {n_tokens:,} tokens in {name}, not {expected:,}")
                rates[name][system].append(n_tokens / sum(result.elapsed_s for result in results))
                memory[system] = results[-1].peak_memory_mb
        print(f"round {number + 1} of {n_rounds}", file=sys.stderr)
    return rates, memory


def as_json(rates: Mapping[str, Mapping[str, Sequence[float]]], memory: Mapping[str, float]) -> dict[str, Any]:
    """Return medians, ranges, memory and ratios, by setting."""
    out: dict[str, Any] = {}
    for name, of_setting in rates.items():
        peers = of_setting.keys() - OURS.keys() - {SHORTLIST}
        out[name] = {
            system: summary(values, UNIT) | {"peak_memory_mb": round(memory[system])}
            for system, values in of_setting.items()
        }
        out[name]["ratio_to_best_peer"] = ratio(of_setting, OURS, PEERS)
        out[name]["ratio_to_best_tuned_peer"] = ratio(of_setting, OURS, peers)
        out[name]["fp32_ratio"] = ratio(of_setting, REFERENCES, [CTRANSLATE2])
    return out | {"machine": machine()}


if __name__ == "__main__":
    main()
