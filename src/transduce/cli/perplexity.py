"""``transduce perplexity``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from transduce.cli import options
from transduce.cli.imports import command_imports
from transduce.cli.machine import chosen_device
from transduce.cli.model_folders import require_model_folder
from transduce.cli.output import STANDARD, print_json
from transduce.cli.stdin import lines_of
from transduce.files import open_binary

__all__ = ["perplexity"]


def perplexity(
    folder: options.Model,
    file: Annotated[Path, Argument(metavar="FILE", help="Text, with blank lines between documents; - is stdin.")],
    stride: Annotated[
        int | None,
        Option(min=1, help="Move the window by this many tokens. Default: half of the window.", show_default=False),
    ] = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Show how well a language model predicts a text: perplexity per token, and bits per byte.

    The model's window slides over each document, so most tokens are predicted from at least half of a window.
    """
    with command_imports():
        from transduce.corpora.plain_text import documents_of
        from transduce.tasks import LanguageModel

    if file != STANDARD:
        open_binary(file).close()  # checked before the model is loaded
    require_model_folder(folder)
    model = LanguageModel.load(folder, device=chosen_device(device))
    score = model.score(documents_of(lines_of(file)), stride=stride)
    if json:
        print_json(score.as_json())
        return
    print(f"perplexity     {score.perplexity:.4f}")
    print(f"bits per byte  {score.bits_per_byte:.4f}")
    print(f"tokens         {score.tokens:,}")
    print(f"bytes          {score.bytes:,}")
