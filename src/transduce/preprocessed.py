"""Recognise lines that another program has processed: tokenised, cut into subwords, or quoted as in CSV."""

from __future__ import annotations

from collections.abc import Iterable

from transduce.patterns import compiled_on_use

__all__ = ["looks_quoted", "looks_tokenised", "subword_marks"]

STOP = compiled_on_use(r"[.,](?=\s|$)|[。，、]")  # French puts a space before : ; ! ? and Hindi before its full stop
SPACED_STOP = compiled_on_use(r"\s(?:[.,](?=\s|$)|[。，、])")

# Marks at the place of a cut inside a word, or at the beginning of each word, of the usual programs.
SUBWORDS = {
    "@@": compiled_on_use(r"\w@@(?=\s|$)"),  # subword-nmt
    "▁": compiled_on_use(r"(?:^|\s)▁\w"),  # SentencePiece
    "##": compiled_on_use(r"\w ##\w"),  # WordPiece
    "￭": compiled_on_use(r"\s￭\S|\S￭\s"),  # the tokenizer of OpenNMT
}
MIN_SUBWORD_SHARE = 0.05  # of the lines; a few may speak of such marks

CELL = compiled_on_use(r'"(?:[^"]|"")*"')  # a column of CSV in quotes, in which quotes are doubled
MIN_DOUBLED_SHARE = 0.005  # of the lines; only those with a quote have doubled ones


def looks_tokenised(lines: Iterable[str]) -> bool:
    """Return whether text looks tokenised: most lines with a full stop or comma have a space before it.

    >>> looks_tokenised(["Ein Hund schläft ."]), looks_tokenised(["Ein Hund schläft."])
    (True, False)
    """
    with_stop = [line for line in lines if STOP.search(line)]
    n_spaced = sum(SPACED_STOP.search(line) is not None for line in with_stop)
    return 2 * n_spaced > len(with_stop)


def subword_marks(lines: Iterable[str]) -> str | None:
    """Return the mark by which words are cut into subwords; None if hardly any line has one.

    >>> subword_marks(["Der Him@@ mel ist blau."]), subword_marks(["▁Der ▁Him mel"]), subword_marks(["me@x.org"])
    ('@@', '▁', None)
    """
    lines = list(lines)
    for mark, pattern in SUBWORDS.items():
        if sum(mark in line and pattern.search(line) is not None for line in lines) > MIN_SUBWORD_SHARE * len(lines):
            return mark
    return None


def looks_quoted(lines: Iterable[str]) -> bool:
    """Return whether lines are quoted as CSV quotes them: most of them, or some with doubled quotes inside.

    >>> looks_quoted(['"He said ""yes"" to me."', "I heard it."]), looks_quoted(['"Yes," he said.'])
    (True, False)
    """
    lines = list(lines)
    quoted = [line for line in map(str.strip, lines) if line.startswith('"') and CELL.fullmatch(line)]
    n_doubled = sum('""' in line[1:-1] for line in quoted)
    return 2 * len(quoted) > len(lines) or n_doubled > MIN_DOUBLED_SHARE * len(lines)
