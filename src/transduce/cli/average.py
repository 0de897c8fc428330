"""``transduce average``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from transduce.cli import options
from transduce.cli.machine import chosen_device
from transduce.cli.output import echo, print_json, print_line, print_scores
from transduce.cli.paths import require_folder, require_utf8_name
from transduce.config import MAX_BATCHES
from transduce.errors import ConfigError

__all__ = ["average"]

Around = Literal["best"]


def average(
    run: Annotated[Path, Argument(metavar="RUN", help="The run folder.", show_default=False)],
    last: Annotated[
        int | None,
        Option(
            min=1,
            max=MAX_BATCHES,
            help="Average this many checkpoints. Default: those of the recipe.",
            show_default=False,
        ),
    ] = None,
    around: Annotated[
        Around | None,
        Option(help="Average those around the best one by validation, not the newest ones.", show_default=False),
    ] = None,
    update: Annotated[
        int | None,
        Option(
            min=1,
            help="Take the checkpoint of this update; with --last N, average N around it.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path | None, Option(help="Write the model to this folder. Default: RUN/model.")] = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Average checkpoints of a run into a model folder.

    Averages those of the recipe, as train does at its end, or others; evaluates, and writes a model card. Section 6.1.

    Examples:
        transduce average runs/my --around best --out best
        transduce average runs/my --update 1000 --out at-1000
    """
    from transduce.runs import average_run

    if around is not None and update is not None:
        raise ConfigError("--around best excludes --update; leave one of them out")
    if update is not None and last is None:
        last = 1
    if out is not None:
        require_folder("--out", out)
        require_utf8_name("--out", out)  # required by safetensors
    model_folder, scores, split = average_run(
        run, last=last, around=around or update, out=out, device=chosen_device(device), log=echo
    )
    if json:
        print_json({"model": str(model_folder), "split": split, "scores": scores.as_json() if scores else None})
        return
    if scores is not None:
        print_line(f"scores on {split}:")
        print_scores(scores)
    print_line(f"model: {model_folder}")
