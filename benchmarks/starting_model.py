"""What a start is worth: a translator for a new kind of text, from random weights and from a trained model.

    python benchmarks/starting_model.py STARTER --domain help=train.en,train.de,test.en,test.de ... \\
        --pairs 1000 5000 20000 --minutes 20 --old news=newstest2013.en,newstest2013.de --out FOLDER

For each kind of text and number of pairs (the first ones of its files), ``transduce init`` plans a run of so many
minutes, without and with ``--from STARTER``, and ``transduce train`` trains it; each way's BLEU on the test lines goes
to ``FOLDER/DOMAIN-PAIRS-WAY.json``, with that of the old texts for what has been forgotten. Finished runs are skipped,
interrupted ones resumed. Without a STARTER only random weights. ``--way`` selects one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from machine import machine

from transduce.files import read_json, read_lines, write_json, write_lines
from transduce.inference import Translator, evaluate

WAYS = ("scratch", "start")


@dataclass(frozen=True, slots=True)
class Plan:
    """One run: pairs of a kind of text, and the model that it starts from."""

    domain: str
    n_pairs: int
    way: str
    folder: Path

    @property
    def stem(self) -> Path:
        """The path of its files, without an ending."""
        return self.folder / f"{self.domain}-{self.n_pairs}-{self.way}"

    @property
    def result(self) -> Path:
        """The file of its scores."""
        return self.stem.with_suffix(".json")


def main() -> None:
    """Run what has no result yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("starter", type=Path, nargs="?")
    parser.add_argument("--domain", action="append", required=True)
    parser.add_argument("--pairs", type=int, nargs="+", default=[1000, 5000, 20000])
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--direction", default="en-de")
    parser.add_argument("--old", action="append", default=[])
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    domains, old = _named_files(arguments.domain), _named_files(arguments.old)
    if arguments.starter is not None and not (before := arguments.out / "before.json").exists():
        tests = {**old, **{name: files[2:] for name, files in domains.items()}}
        write_json(before, _scores(arguments.starter, tests))
    if arguments.way == "start" and arguments.starter is None:
        parser.error("--way start needs a STARTER")
    ways = [arguments.way] if arguments.way else WAYS if arguments.starter else WAYS[:1]
    for name, files in domains.items():
        for n_pairs in arguments.pairs:
            for way in ways:
                plan = Plan(name, n_pairs, way, arguments.out)
                if not plan.result.exists():
                    start = ["--from", str(arguments.starter)] if way == "start" else []
                    _run(plan, files, ["--direction", arguments.direction, *start], arguments.minutes, old)
                print(json.dumps(read_json(plan.result)), flush=True)


def _named_files(named: list[str]) -> dict[str, list[Path]]:
    parts = (each.partition("=") for each in named)
    return {name: [Path(file) for file in files.split(",")] for name, _, files in parts}


def _run(plan: Plan, files: list[Path], options: list[str], minutes: float, old: dict[str, list[Path]]) -> None:
    """Plan, train and score one run."""
    run, recipe = plan.stem, plan.stem.with_suffix(".toml")
    if not recipe.exists():
        sides = [plan.stem.with_suffix(f".text.{side}") for side in ("src", "tgt")]
        for side, file in zip(sides, files[:2], strict=True):
            write_lines(side, list(read_lines(file))[: plan.n_pairs])
        sources = ["--src", str(sides[0]), "--tgt", str(sides[1])]
        _transduce("init", *sources, *options, "--minutes", str(minutes), "--out", str(recipe))
    started = time.time()
    if (run / "run.json").exists():
        _transduce("train", "--resume", "--out", str(run))
    else:
        _transduce("train", str(recipe), "--out", str(run))
    wall_minutes = (time.time() - started) / 60
    records = [json.loads(line) for line in read_lines(run / "metrics.jsonl")]
    last = max((each for each in records if "elapsed_s" in each), key=lambda each: each["update"])
    config = read_json(run / "run.json")
    write_json(
        plan.result,
        {
            "domain": plan.domain,
            "pairs": plan.n_pairs,
            "way": plan.way,
            "seed": config["config"]["training"]["seed"],
            "p_drop": config["config"]["model"]["p_drop"],
            "planned_minutes": minutes,
            "training_minutes": round(last["elapsed_s"] / 60, 2),
            "command_minutes": round(wall_minutes, 2),
            "updates": last["update"],
            "scores": _scores(run / "model", {plan.domain: files[2:], **old}),
            "machine": machine(),
        },
    )


def _transduce(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "transduce", *arguments], check=True, stdout=sys.stderr)


def _scores(model: Path, tests: dict[str, list[Path]]) -> dict[str, dict[str, object]]:
    """Return sacreBLEU and chrF of each test."""
    translator, found = Translator.load(model), {}
    for name, (src, tgt) in tests.items():
        scores = evaluate(translator, list(read_lines(src)), list(read_lines(tgt))).scores
        found[name] = scores.as_json()
    return found


if __name__ == "__main__":
    main()
