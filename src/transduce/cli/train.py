"""``transduce train``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.machine import chosen_device
from transduce.cli.options import DataOption, DeviceOption, JsonOption, SettingsOption, require_positive_minutes
from transduce.cli.output import print_json, print_scores, say
from transduce.errors import ConfigError

__all__ = ["train"]


def train(
    recipe: Annotated[Path | None, typer.Argument(help="A TOML recipe; not needed with --resume.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder. Default: runs/<recipe>-<time>.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    store: Annotated[Path | None, typer.Option(help="A prepared folder, instead of preparing the text anew.")] = None,
    data: DataOption = None,
    minutes: Annotated[
        float | None,
        typer.Option(callback=require_positive_minutes, help="Stop after this training time, over all sittings."),
    ] = None,
    settings: SettingsOption = None,
    device: DeviceOption = "auto",
    json: JsonOption = False,
) -> int:
    """Train a translator: prepare the text, train, average checkpoints, evaluate. Sections 5 and 6.1."""
    from transduce.cli.progress import TrainingProgress
    from transduce.cli.signals import StopRequest
    from transduce.recipes import read_recipe, with_settings
    from transduce.tasks import read_run_config
    from transduce.tasks import train as train_translator

    changes = [*(settings or ()), *([] if minutes is None else [f"training.max_minutes={float(minutes)}"])]
    if resume and out is None:
        raise ConfigError("--resume goes on with the run in --out; name it")
    if recipe is not None:
        config = read_recipe(recipe, changes)
    elif resume and out is not None:
        config = with_settings(read_run_config(out), changes)
    else:
        raise ConfigError("name a recipe (see the folder recipes/), or go on with a run by --resume --out RUN")
    folder = out or Path("runs") / f"{recipe.stem if recipe else 'run'}-{time.strftime('%Y%m%d-%H%M%S')}"
    say(f"run folder: {folder}")
    asked = StopRequest()
    with TrainingProgress(config.training) as progress:
        result = train_translator(
            config,
            folder,
            resume=resume,
            store=store,
            data_folder=data,
            device=chosen_device(device),
            listeners=[progress],
            should_stop=asked,
            while_training=asked,
            tell=progress.tell,
        )
    if result.reason == "asked":
        say(f"saved after update {result.updates:,}; go on with: transduce train --resume --out {folder}")
        return asked.exit_code
    if json:
        scores = None if result.scores is None else result.scores.as_json()
        values = {"run": str(folder), "model": str(result.model_folder), "updates": result.updates}
        print_json({**values, "reason": result.reason, "split": result.scored_split, "scores": scores})
        return 0
    if result.scores is not None:
        print(f"scores on {result.scored_split} ({result.scored_text}):")
        print_scores(result.scores)
    print(f"model: {result.model_folder}")
    return 0
