"""What a translator learns from new text, and what it forgets of the old.

    python benchmarks/forgetting.py MODEL --new train.en train.de --tests NAME=test.en,test.de ... --minutes 5 \\
        --mix none --mix CORPUS --rate 1 --rate 4

For each text to mix in (``train --mix``; "none": none) and each learning rate (times ``gentle_rate``) the model is
fine-tuned as ``train --from MODEL`` does it, for these minutes, or for ``--updates`` where the machine is too busy to
plan by the clock. One JSON object for the model as it is, and one for each way: BLEU of all tests, updates, epochs of
the new text, minutes of processor time, and the update of the checkpoint that was taken.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import torch
from machine import machine

from transduce.files import read_lines
from transduce.inference import Translator, evaluate
from transduce.runs import OwnText, train
from transduce.runs.fine_tuning import direction_of, fine_tuning, planned
from transduce.training import best_update


def main() -> None:
    """Measure all ways."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--new", type=Path, nargs=2, required=True)
    parser.add_argument("--tests", nargs="+", required=True)
    parser.add_argument("--mix", action="append", default=[])
    parser.add_argument("--rate", type=float, action="append", default=[])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--updates", type=int)
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(json.dumps(machine()), file=sys.stderr)
    tests = {name: files.split(",") for name, _, files in (each.partition("=") for each in arguments.tests)}
    print(json.dumps({"model": str(arguments.model), "bleu": scores(arguments.model, tests)}), flush=True)
    text = OwnText(*direction_of(arguments.model), src=arguments.new[0], tgt=arguments.new[1])
    for mix in arguments.mix or ["none"]:
        for rate in arguments.rate or [None]:
            with tempfile.TemporaryDirectory() as folder:
                plan = fine_tuning(
                    arguments.model,
                    text,
                    Path(folder) / "text",
                    device=torch.device("cpu"),
                    log=lambda line: None,
                    mix=[mix],
                    data_folder=arguments.data,
                    minutes=None if arguments.updates else arguments.minutes,
                )
                n_updates = arguments.updates or plan.n_updates
                config = planned(plan.config, n_updates, rate)
                started, run = time.process_time(), Path(folder) / "run"
                result = train(config, run, extra_bleus=[])
                assert result.model_folder is not None
                told = {
                    "mix": mix,
                    "rate": rate,
                    "bleu": scores(result.model_folder, tests),
                    "updates": result.updates,
                    "epochs": round(plan.n_epochs * n_updates / plan.n_updates, 1),
                    "cpu_minutes": round((time.process_time() - started) / 60, 1),
                    "best": best_update(run / "checkpoints"),
                }
                print(json.dumps(told), flush=True)


def scores(model: Path, tests: dict[str, list[str]]) -> dict[str, float]:
    """Return the BLEU of each test."""
    translator, found = Translator.load(model), {}
    for name, files in tests.items():
        src, tgt = (list(read_lines(Path(path))) for path in files)
        found[name] = round(evaluate(translator, src, tgt).scores.sacrebleu.score, 1)
    return found


if __name__ == "__main__":
    main()
