"""``transduce score``. Imports no torch: it starts at once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.options import JsonOption
from transduce.cli.output import print_json, print_scores, say
from transduce.errors import ConfigError, DataError

__all__ = ["score"]


def score(
    hypotheses: Annotated[Path, typer.Argument(metavar="HYP", help="Translations, a line each.", show_default=False)],
    ref: Annotated[Path, typer.Option(help="References, aligned line by line.", show_default=False)],
    against: Annotated[
        Path | None,
        typer.Option(
            help="Translations of another system: is HYP better than they are? Paired bootstrap.", show_default=False
        ),
    ] = None,
    resamples: Annotated[int, typer.Option(min=1, help="Test sets that --against draws.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of what --against draws.")] = 1,
    language: Annotated[str, typer.Option(help="Of the text; for the tokenised BLEUs.")] = "de",
    json: JsonOption = False,
) -> None:
    """Score translations against references: sacreBLEU, chrF, and the tokenised BLEUs of the paper and of Multi30k."""
    from transduce.files import read_lines
    from transduce.metrics import has_moses_rules, looks_tokenised, paired_bootstrap, score_translations

    if not re.fullmatch("[a-z]{2,3}", language):
        raise ConfigError(f"--language should be the code of a language, as in de, got {language!r}")
    text = {path: list(read_lines(path)) for path in (hypotheses, ref, *([against] if against else []))}
    for path, lines in text.items():
        if len(lines) != len(text[ref]):
            raise DataError(
                f"{path} has {len(lines):,} lines, {ref} {len(text[ref]):,}; parallel files must align line by line"
            )
        if looks_tokenised(lines):
            say(f"warning: {path} looks tokenised (blanks before punctuation); scores are of raw text")
    if not has_moses_rules(language):
        say(f"warning: sacremoses has no rules for {language}; paper_bleu and multi30k_bleu are by those for English")
    scores = score_translations(text[hypotheses], text[ref], language=language)
    test = None
    if against is not None:
        test = paired_bootstrap(text[against], text[hypotheses], text[ref], n_resamples=resamples, seed=seed)
    if json:
        print_json(scores.as_json() | ({"paired_bootstrap": test.as_json()} if test else {}))
        return
    print_scores(scores)
    if test is not None:
        low, high = test.interval
        print(f"\nsacrebleu of {against}: {test.a.score:.2f}; {hypotheses} has {test.difference:+.2f}")
        print(f"95% interval of the difference: {low:+.2f} to {high:+.2f}; p = {test.p_value:.4f} (two-sided)")
        print(f"paired bootstrap, {test.n_resamples:,} resamples, seed {test.seed}")
