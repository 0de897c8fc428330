"""Time from starting a command, or Python, to the first line of its output: the first translation.

    python benchmarks/first_words.py [--json] [--rounds 5] [--models demo base]

Each program runs in a new process, in turn, round by round, every second round in reverse order:

* import torch: ``python -c "import torch"``, the lower bound of what computes with PyTorch
* translate MODEL: ``echo "a dog" | transduce translate MODEL``, by the engine in C if it is installed
* translate MODEL, torch: the same with ``--engine torch``
* load MODEL: ``Translator.load(MODEL).translate(["a dog"])`` in Python, imports included
* help, version, score: commands without a model; score has one line

The models have random weights: the model of ``transduce demo``, and base with a vocabulary of 37,000. A random model
never ends a sentence, so a translation is cut off at five tokens more than its source.

Before the first round each program runs once, which compiles modules and reads files into the page cache; so disk speed
is not included. The figures are medians over the rounds with their range: seconds of wall time to the first line of
output; seconds of processor time of the whole process, of all threads; and wall time beyond ``import torch``, the
difference of the medians. One thread computes (``OMP_NUM_THREADS=1``) unless the variable is set.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from string import ascii_lowercase
from typing import Any

import torch
from machine import machine

from transduce.config import RunConfig
from transduce.demo import demo_config
from transduce.inference.folder import write_model_folder
from transduce.model import make_model
from transduce.model.weights import weights_of
from transduce.recipes import preset
from transduce.text import Tokenizers, train_bpe

SEED = 1
SENTENCE = "a dog\n"
MAX_EXTRA_TOKENS = 5  # of a translation, beyond its source
WORD_LETTERS = 8
TORCH = "import torch"
TORCH_READY = f"{TORCH}; print(flush=True)"
LOAD = (
    "import sys; from transduce import Translator; print(Translator.load(sys.argv[1]).translate(['a dog']), flush=True)"
)


@dataclass(frozen=True, slots=True)
class Times:
    """The times of one program, one per round."""

    wall_s: list[float] = field(default_factory=list)
    processor_s: list[float] = field(default_factory=list)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument("--rounds", type=int, default=5, help="measure each program this often")
    parser.add_argument("--models", nargs="+", choices=["demo", "base"], default=["demo", "base"], help="measure these")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        times = measure(programs(Path(folder), arguments.models), n_rounds=arguments.rounds)
    result = as_json(times, n_rounds=arguments.rounds)
    print(json.dumps(result) if arguments.json else as_text(result))


def programs(folder: Path, models: Sequence[str]) -> dict[str, list[str]]:
    """Return the command lines to measure, by name, after writing the models and the text that they read."""
    command = [sys.executable, "-m", "transduce"]
    text = folder / "text"
    text.write_text("A dog sleeps.\n", encoding="utf-8")
    named = {TORCH: [sys.executable, "-c", TORCH_READY]}
    for name in models:
        model = folder / name
        write_random_model(model, demo_config() if name == "demo" else preset(name))
        named[f"translate {name}"] = [*command, "translate", str(model)]
        named[f"translate {name}, torch"] = [*named[f"translate {name}"], "--engine", "torch"]
        named[f"load {name}"] = [sys.executable, "-c", LOAD, str(model)]
    named["help"] = [*command, "--help"]
    named["version"] = [*command, "--version"]
    named["score"] = [*command, "score", str(text), "--ref", str(text)]
    return named


def write_random_model(folder: Path, run: RunConfig) -> None:
    """Write a model folder with random weights, and a tokenizer of random words with the run's vocabulary size."""
    vocab_size, random = run.data.vocab_size, Random(SEED)
    words = ["".join(random.choices(ascii_lowercase, k=WORD_LETTERS)) for _ in range(vocab_size // 2)]
    tokenizer = train_bpe([" ".join(words)] * 2, vocab_size=vocab_size)  # twice: a pair seen once is not merged
    config = run.model.with_vocabulary(tokenizer.size, tokenizer.size)
    torch.manual_seed(SEED)
    write_model_folder(
        folder,
        config=config,
        weights=weights_of(make_model(config)),
        tokenizers=Tokenizers(tokenizer, tokenizer),
        search=run.search.model_copy(update={"max_extra_tokens": MAX_EXTRA_TOKENS}),
        direction="en-de",
        task="translation",
        card="A model with random weights.",
    )


def measure(programs: Mapping[str, Sequence[str]], *, n_rounds: int) -> dict[str, Times]:
    """Return the times of each program. Raises CalledProcessError if one fails or prints nothing."""
    for arguments in programs.values():
        run(arguments)
    times = {name: Times() for name in programs}
    for number in range(n_rounds):
        for name, arguments in list(programs.items())[:: -1 if number % 2 else 1]:
            wall_s, processor_s = run(arguments)
            times[name].wall_s.append(wall_s)
            times[name].processor_s.append(processor_s)
        print(f"round {number + 1} of {n_rounds}", file=sys.stderr)
    return times


def run(arguments: Sequence[str]) -> tuple[float, float]:
    """Run a program; return the seconds of wall time to its first line, and those of processor time to its end."""
    environment = {"OMP_NUM_THREADS": "1"} | os.environ
    before, start = os.times(), time.perf_counter()
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(SENTENCE)
        process.stdin.close()
        line = process.stdout.readline()
        wall_s = time.perf_counter() - start
        process.stdout.read()
    if process.returncode or not line:
        raise subprocess.CalledProcessError(process.returncode, list(arguments))
    after = os.times()
    processor_s = sum(getattr(after, key) - getattr(before, key) for key in ("children_user", "children_system"))
    return wall_s, processor_s


def as_json(times: Mapping[str, Times], *, n_rounds: int) -> dict[str, Any]:
    """Return medians and ranges by program."""
    torch_s = median(times[TORCH].wall_s)
    results = {
        name: {
            "wall_s": round(median(each.wall_s), 3),
            "lowest": round(min(each.wall_s), 3),
            "highest": round(max(each.wall_s), 3),
            "processor_s": round(median(each.processor_s), 3),
            "beyond_torch_s": round(median(each.wall_s) - torch_s, 3),
        }
        for name, each in times.items()
    }
    return {"rounds": n_rounds, "programs": results, "machine": machine()}


def as_text(result: Mapping[str, Any]) -> str:
    """Format the result as a table."""
    about = result["machine"]
    lines = [
        f"Time to the first words, {result['rounds']} rounds",
        f"{about['cpu']}, {about['cores']} cores, Python {about['python']}, torch {about['versions']['torch']}",
        "",
        f"  {'':<24}{'wall':>8}{'range':>20}{'processor':>12}{'beyond torch':>15}",
    ]
    for name, values in result["programs"].items():
        span = f"({values['lowest']:.2f} to {values['highest']:.2f})"
        beyond = f"{values['beyond_torch_s']:+.2f} s" if name.startswith(("translate", "load")) else ""
        line = f"  {name:<24}{values['wall_s']:>6.2f} s{span:>20}{values['processor_s']:>10.2f} s{beyond:>15}"
        lines.append(line.rstrip())
    return "\n".join(lines)


if __name__ == "__main__":
    main()
