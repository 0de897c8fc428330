"""Translation of real sentences from text to text by a trained model: ours beside CTranslate2 with the same weights.

    python benchmarks/sentences.py MODEL --text test.en [--threads 1] [--precisions fp32 int8]

Both use our tokenizer and cut lines into sentences alike. Three settings: one sentence at a time with beam 4, all
together with greedy search, all together with beam 4. CTranslate2 has the better of its two settings of threads: all
for one translation, or a worker for each (only where many are translated together). Each system has its own process;
they are measured in turn, every second round in reverse order. Figures are medians of sentences a second by the clock,
and of processor seconds; each setting and precision is a line of JSON. ``equal`` counts the sentences with the same
text as ours: length penalties differ a little. Outputs have the same longest length, for CTranslate2 that of the
longest sentence of a batch.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from machine import machine
from needed import need

SETTINGS = {"one, beam 4": (1, 4), "greedy": (0, 1), "beam 4": (0, 4)}  # sentences together (0: all), beam
MAX_BATCH = 64
COMPUTE_TYPES = {"fp32": "float32", "bf16": "bfloat16", "int8": "int8"}

Translate = Callable[[Sequence[str], int], list[str]]


def ours(folder: Path, precision: str, threads: int) -> Translate:
    """Return our translation of sentences with a beam size."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    from transduce.cli.machine import keep_freed_memory
    from transduce.config import InferencePrecision
    from transduce.inference import Translator

    keep_freed_memory()
    translator = Translator.load(folder, precision=cast(InferencePrecision, precision))
    return lambda sentences, beam: translator.translate(sentences, beam_size=beam)


def theirs(folder: Path, exported: Path, precision: str, threads: int, workers: int) -> Translate:
    """Return CTranslate2's."""
    import ctranslate2
    from decoders import token_names

    from transduce.inference import Translator
    from transduce.text import normalise

    loaded = Translator.load(folder)
    tokenizers = loaded.tokenizers
    src_names, tgt_names = token_names(tokenizers.src.size), token_names(tokenizers.tgt.size)
    ids_of = {name: id for id, name in enumerate(tgt_names)}
    model = ctranslate2.Translator(
        str(exported), compute_type=COMPUTE_TYPES[precision], inter_threads=workers, intra_threads=threads // workers
    )

    def decoded(tokens: Sequence[str]) -> str:
        return tokenizers.tgt.decode([ids_of[name] for name in tokens])

    def translate(sentences: Sequence[str], beam: int) -> list[str]:
        segments = [loaded.split_line(sentence) for sentence in sentences]
        tokens = [
            [src_names[id] for id in tokenizers.src.encode(normalise(each.text))] for line in segments for each in line
        ]
        size = min(MAX_BATCH, -(-len(tokens) // workers))
        longest = max(map(len, tokens)) + loaded.search.max_extra_tokens
        results = model.translate_batch(tokens, beam_size=beam, max_batch_size=size, max_decoding_length=longest)
        found = iter(results)
        return ["".join(decoded(next(found).hypotheses[0]) + each.space for each in line) for line in segments]

    return translate


def serve(pipe: Connection, make: Callable[[], Translate]) -> None:
    """Translate what comes through the pipe, in a process of its own."""
    translate = make()
    while True:
        sentences, together, beam = pipe.recv()
        begun, cpu = time.perf_counter(), time.process_time()
        outputs = [
            text
            for first in range(0, len(sentences), together)
            for text in translate(sentences[first : first + together], beam)
        ]
        pipe.send((time.perf_counter() - begun, time.process_time() - cpu, outputs))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="the model folder of a translator")
    parser.add_argument("--text", type=Path, required=True, help="sentences, one per line")
    parser.add_argument("--sentences", type=int, default=500, help="taken from the text")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precisions", nargs="+", default=["fp32", "int8"], choices=list(COMPUTE_TYPES))
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    need(parser, "ctranslate2")
    lines = arguments.text.read_text(encoding="utf-8").splitlines()[: arguments.sentences]
    folder, threads = arguments.model, arguments.threads
    for precision in arguments.precisions:
        with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
            export(folder, Path(temporary))
            makers: dict[str, Callable[[], Translate]] = {"transduce": partial(ours, folder, precision, threads)}
            for workers in sorted({1, threads}):
                name = "ctranslate2" if workers == 1 else f"ctranslate2, {workers} workers"
                makers[name] = partial(theirs, folder, Path(temporary), precision, threads, workers)
            pipes = {name: stack.enter_context(Started(make)) for name, make in makers.items()}
            for setting, (together, beam) in SETTINGS.items():
                result = measured(
                    pipes, lines[:100] if together else lines, together or len(lines), beam, arguments.rounds
                )
                print(json.dumps({"precision": precision, "threads": threads, "setting": setting} | result), flush=True)
    print(json.dumps(machine()))


def export(folder: Path, to: Path) -> None:
    """Write the weights for CTranslate2."""
    from decoders import token_names

    from transduce.exchange.ctranslate2 import write_ctranslate2
    from transduce.inference import Translator
    from transduce.model import Transformer

    loaded = Translator.load(folder)
    assert isinstance(loaded.model, Transformer)
    names = [token_names(side.size) for side in (loaded.tokenizers.src, loaded.tokenizers.tgt)]
    write_ctranslate2(to, loaded.model, src_tokens=names[0], tgt_tokens=names[1])


class Started:
    """A system in its own process, which ends with the context."""

    def __init__(self, make: Callable[[], Translate]) -> None:
        context = get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, make), daemon=True)

    def __enter__(self) -> Connection:
        self.process.start()
        return self.pipe

    def __exit__(self, *_: object) -> None:
        self.process.kill()


def measured(
    pipes: dict[str, Connection], lines: Sequence[str], together: int, beam: int, n_rounds: int
) -> dict[str, Any]:
    """Return rates and processor seconds of each system in one setting, and our ratio to the best other."""
    walls: dict[str, list[float]] = {name: [] for name in pipes}
    cpus: dict[str, list[float]] = {name: [] for name in pipes}
    texts: dict[str, list[str]] = {}
    for number in range(n_rounds + 1):  # the first warms up
        for name, pipe in list(pipes.items())[:: -1 if number % 2 else 1]:
            pipe.send((lines if number else lines[:MAX_BATCH], min(together, len(lines)), beam))
            wall, cpu, texts[name] = pipe.recv()
            if number:
                walls[name].append(wall)
                cpus[name].append(cpu)
    of_us, *others = list(pipes)
    result: dict[str, Any] = {
        name: {
            "sentences_per_s": round(len(lines) / statistics.median(walls[name]), 2),
            "cpu_s": round(statistics.median(cpus[name]), 3),
            "equal": sum(a == b for a, b in zip(texts[name], texts[of_us], strict=True)),
        }
        for name in pipes
    }
    result["ratio"] = round(min(statistics.median(walls[name]) for name in others) / statistics.median(walls[of_us]), 2)
    result["cpu_ratio"] = round(
        min(statistics.median(cpus[name]) for name in others) / statistics.median(cpus[of_us]), 2
    )
    return result


if __name__ == "__main__":
    main()
