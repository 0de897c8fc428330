"""``transduce perplexity``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from transduce.cli import options
from transduce.cli.imports import command_imports
from transduce.cli.machine import chosen_device
from transduce.cli.model_folders import require_model_folders
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
    engine: options.Engine = "auto",
    json: options.Json = False,
) -> None:
    """Show how well a language model predicts a text.

    Prints the perplexity per token, and bits per byte. The window of a causal model slides over each document, so most
    tokens are predicted from at least half of a window. A masked model predicts each token from all others, which
    gives pseudo-perplexity: not comparable with the former.

    Examples:
        transduce perplexity runs/lm/model test.txt
    """
    with command_imports():
        from transduce.corpora.plain_text import documents_of
        from transduce.inference import LanguageModel

    if file != STANDARD:
        open_binary(file).close()  # checked before the model is loaded
    require_model_folders(folder)
    model = LanguageModel.load(folder, device=chosen_device(device), engine=engine)
    score = model.score(documents_of(lines_of(file)), stride=stride)
    if json:
        print_json(score.as_json())
        return
    pseudo = "pseudo-" if model.is_pseudo else ""
    figures = {
        f"{pseudo}perplexity": f"{score.perplexity:.4f}",
        f"{pseudo}bits per byte": f"{score.bits_per_byte:.4f}",
        "tokens": f"{score.tokens:,}",
        "bytes": f"{score.bytes:,}",
    }
    for name, value in figures.items():
        print(f"{name:<{2 + max(map(len, figures))}}{value}")
