"""What ``score`` and ``evaluate`` share: options, and warnings about the text that is scored. Imports no torch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from typer import Option

from transduce.cli.options import SCORES
from transduce.cli.output import echo
from transduce.config import base_language
from transduce.errors import ConfigError

__all__ = ["Tokenizer", "named_references", "warn_of_moses_rules", "warn_of_tokenised_text"]

Tokenizer = Annotated[
    str | None,
    Option(
        "--tokenize",
        metavar="NAME",
        help="Count words by this tokenizer of sacreBLEU: 13a, intl, zh, ja-mecab, ko-mecab, char, flores200, ... "
        "Default: that of the language; characters where no spaces separate words.",
        show_default=False,
        rich_help_panel=SCORES,
    ),
]


def named_references(ref: Sequence[Path]) -> dict[str, Path]:
    """Return the files of a repeated ``--ref`` by their names in messages. Raises ConfigError for one given twice."""
    for path in ref:
        if ref.count(path) > 1:
            raise ConfigError(f"--ref {path} is given twice; name each file of references once")
    return {f"--ref {path}": path for path in ref}


def warn_of_tokenised_text(texts: Mapping[str, Sequence[str]]) -> None:
    """Warn of each text, by its name, that another program has tokenised or cut into subwords."""
    from transduce.preprocessed import looks_tokenised, subword_marks

    for name, lines in texts.items():
        mark = subword_marks(lines)
        if mark is not None:
            echo(f"warning: {name} is cut into subwords ({mark}); scores need whole words")
        elif looks_tokenised(lines):
            echo(f"warning: {name} looks tokenised (spaces before punctuation); scores need detokenised text")


def warn_of_moses_rules(language: str, also: Collection[str]) -> None:
    """Warn if the tokenised BLEUs ``also`` have no rules for a language."""
    from transduce.metrics import has_moses_rules

    if also and not has_moses_rules(base_language(language)):
        echo(f"warning: sacremoses has no rules for {language}; {' and '.join(also)} will use those for English")
