"""``transduce average``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from transduce.cli import options
from transduce.cli.machine import chosen_device
from transduce.cli.output import echo, print_json, print_line, print_scores
from transduce.cli.paths import require_folder, require_utf8_name
from transduce.config import MAX_BATCHES

__all__ = ["average"]


def average(
    run: Annotated[Path, Argument(help="The run folder.", show_default=False)],
    last: Annotated[int, Option(min=1, max=MAX_BATCHES, help="Average this many checkpoints.")] = 5,
    out: Annotated[Path | None, Option(help="Write the model to this folder. Default: RUN/model.")] = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Average the newest checkpoints of a run into a model folder with a model card. Section 6.1."""
    from transduce.tasks import average_run

    if out is not None:
        require_folder("--out", out)
        require_utf8_name("--out", out)  # required by safetensors
    model_folder, scores, split = average_run(run, last=last, out=out, device=chosen_device(device), log=echo)
    if json:
        print_json({"model": str(model_folder), "split": split, "scores": scores.as_json() if scores else None})
        return
    if scores is not None:
        print_line(f"scores on {split}:")
        print_scores(scores)
    print_line(f"model: {model_folder}")
