"""``transduce score``. Imports no torch: it starts at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.options import JsonOption
from transduce.cli.output import print_json, print_scores, say

__all__ = ["score"]


def score(
    hypotheses: Annotated[Path, typer.Argument(metavar="HYP", help="Translations, a line each.", show_default=False)],
    ref: Annotated[Path, typer.Option(help="References, aligned line by line.", show_default=False)],
    language: Annotated[str, typer.Option(help="Of the text; for the tokenised BLEUs.")] = "de",
    json: JsonOption = False,
) -> None:
    """Score translations against references: sacreBLEU, chrF, and the tokenised BLEUs of the paper and of Multi30k."""
    from transduce.files import read_lines
    from transduce.metrics import looks_tokenised, score_translations

    lines = list(read_lines(hypotheses))
    references = list(read_lines(ref))
    for name, text in ((hypotheses, lines), (ref, references)):
        if looks_tokenised(text):
            say(f"warning: {name} looks tokenised (blanks before punctuation); scores are of raw text")
    scores = score_translations(lines, references, language=language)
    if json:
        print_json(scores.as_json())
    else:
        print_scores(scores)
