"""``transduce fill``."""

from __future__ import annotations

import sys
from typing import Annotated

from typer import Option

from transduce.cli import options
from transduce.cli.imports import command_imports
from transduce.cli.machine import chosen_device
from transduce.cli.model_folders import require_model_folders
from transduce.cli.output import STANDARD, print_json
from transduce.cli.paths import require_writable
from transduce.cli.stdin import is_interactive, piped_lines, typed_lines

__all__ = ["fill"]

MAX_N_BEST = 1000


def fill(
    folder: options.Model,
    n_best: Annotated[int, Option(min=1, max=MAX_N_BEST, help="Show this many fills of each gap.")] = 5,
    device: options.Device = "auto",
    engine: options.Engine = "auto",
    json: options.Json = False,
) -> None:
    r"""Fill the gaps of texts, written <mask>.

    Reads a text from each line of stdin, in which line ends are written as \n. For models of masked-lm, whose gaps are
    one token each, and of span-corruption. Without --json, each text is printed with the best fill of each gap.

    Examples:
        echo 'The <mask> sleeps.' | transduce fill runs/lm/model
    """
    with command_imports():
        from transduce.inference import LanguageModel

    require_writable("stdout", STANDARD)
    require_model_folders(folder, text_usage="transduce fill MODEL < {}")
    model = LanguageModel.load(folder, device=chosen_device(device), engine=engine)
    lines = typed_lines("text", history="fill") if is_interactive() else piped_lines()
    for number, line in enumerate(lines, start=1):
        (filled,) = model.fill([line.replace("\\n", "\n")], n_best=n_best)
        if json:
            fills = [[{"token": each.token, "probability": each.probability} for each in gap] for gap in filled.fills]
            print_json({"line": number, "text": filled.text, "fills": fills})
        else:
            print(filled.text.replace("\n", "\\n"))
        sys.stdout.flush()
