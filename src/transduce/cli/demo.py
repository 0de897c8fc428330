"""``transduce demo``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.machine import chosen_device, fast_precision
from transduce.cli.options import DataOption, DeviceOption, JsonOption, SettingsOption
from transduce.cli.output import print_json, print_scores, say

__all__ = ["demo"]


def demo(
    corpus: Annotated[
        str, typer.Option(help="What to learn from: see 'corpus list'. It is fetched when it is not there.")
    ] = "grammar",
    data: DataOption = None,
    out: Annotated[Path | None, typer.Option(help="The run folder. Default: runs/demo-<time>.")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Train for this time. Default: 1,300 updates, and 15 minutes for real text.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the first weights and the order of batches.")] = 1,
    settings: SettingsOption = None,
    device: DeviceOption = "auto",
    json: JsonOption = False,
) -> int:
    """Watch a Transformer learn to translate: corpus, tokenizer, training, BLEU, examples and an attention page."""
    from transduce.cli.progress import DownloadProgress, TrainingProgress
    from transduce.cli.signals import StopRequest
    from transduce.corpora import BUILT_IN
    from transduce.demo import demo_config, fetch_missing, run_demo
    from transduce.recipes import with_settings

    timed = [] if minutes is None else [f"training.max_minutes={float(minutes)}", "training.max_updates=1000000"]
    device = chosen_device(device)
    config = demo_config(corpus, seed=seed, precision=fast_precision(device))
    config = with_settings(config, [*timed, *(settings or ())])
    with DownloadProgress() as download:
        fetch_missing(config.data, data, progress=download.of_file, tell=download.tell)
    folder = out or Path("runs") / f"demo-{time.strftime('%Y%m%d-%H%M%S')}"
    say(f"run folder: {folder}")
    asked = StopRequest()
    with TrainingProgress(config.training) as progress:
        result = run_demo(
            folder,
            config=config,
            data_folder=data,
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
            print(f"  (the corpus has: {example.reference})")
    if result.scores is not None:
        told = f"scores on {result.run.scored_text}"
        if corpus == BUILT_IN:
            told += ": sentences with combinations of words that were never seen together in training"
        print(f"\n{told}")
        print_scores(result.scores)
    print(f"\nattention page: {result.page}")
    print(f'try it:         echo "The old dog sleeps." | {sys.argv[0]} translate {result.run.model_folder}')
    return 0
