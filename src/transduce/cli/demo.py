"""``transduce demo``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.machine import chosen_device, fast_precision
from transduce.cli.options import DeviceOption, JsonOption, SettingsOption
from transduce.cli.output import print_json, print_scores, say

__all__ = ["demo"]


def demo(
    out: Annotated[Path | None, typer.Option(help="The run folder. Default: runs/demo-<time>.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Train for this time instead of 1,300 updates.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the first weights and the order of batches.")] = 1,
    settings: SettingsOption = None,
    device: DeviceOption = "auto",
    json: JsonOption = False,
) -> int:
    """Watch a Transformer learn to translate: corpus, tokenizer, training, BLEU, examples and an attention page."""
    from transduce.cli.progress import TrainingProgress
    from transduce.cli.signals import StopRequest
    from transduce.demo import demo_config, run_demo
    from transduce.recipes import with_settings

    timed = [] if minutes is None else [f"training.max_minutes={float(minutes)}", "training.max_updates=1000000"]
    device = chosen_device(device)
    config = with_settings(demo_config(seed=seed, precision=fast_precision(device)), [*timed, *(settings or ())])
    folder = out or Path("runs") / f"demo-{time.strftime('%Y%m%d-%H%M%S')}"
    say(f"run folder: {folder}")
    asked = StopRequest()
    with TrainingProgress(config.training) as progress:
        result = run_demo(
            folder,
            config=config,
            device=device,
            listeners=[progress],
            should_stop=asked,
            while_training=asked,
            tell=progress.tell,
        )
    if result.run.reason == "asked":
        say(f"saved after update {result.run.updates:,}; go on with: transduce train --resume --out {folder}")
        return asked.exit_code
    if json:
        values = {"run": str(folder), "model": str(result.run.model_folder), "page": str(result.page)}
        examples = [
            {"source": example.source, "translation": example.translation, "reference": example.reference}
            for example in result.examples
        ]
        print_json({**values, "scores": result.scores.as_json() if result.scores else None, "examples": examples})
        return 0
    for example in result.examples:
        is_right = example.translation == example.reference
        print(f"\n  {example.source}\n  {example.translation}")
        if not is_right:
            print(f"  (the grammar has: {example.reference})")
    if result.scores is not None:
        print("\nscores on sentences with combinations of words that were never seen together in training:")
        print_scores(result.scores)
    print(f"\nattention page: {result.page}")
    print(f'try it:         echo "The old dog sleeps." | {sys.argv[0]} translate {result.run.model_folder}')
    return 0
