"""``transduce evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.machine import chosen_device
from transduce.cli.options import DeviceOption, JsonOption, ModelArgument
from transduce.cli.output import print_json, print_scores

__all__ = ["evaluate"]


def evaluate(
    folder: ModelArgument,
    src: Annotated[Path, typer.Option(help="Source text, a sentence a line (plain, .gz or .xz).", show_default=False)],
    ref: Annotated[Path, typer.Option(help="References, aligned line by line.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="Also write the translations to this file.")] = None,
    device: DeviceOption = "auto",
    json: JsonOption = False,
) -> None:
    """Translate a test set and score it."""
    from transduce.files import read_lines, write_lines
    from transduce.tasks import Translator
    from transduce.tasks import evaluate as evaluate_translator

    sources, references = list(read_lines(src)), list(read_lines(ref))
    evaluation = evaluate_translator(Translator.load(folder, device=chosen_device(device)), sources, references)
    if out is not None:
        write_lines(out, evaluation.translations)
    if json:
        print_json(evaluation.scores.as_json())
    else:
        print_scores(evaluation.scores)
