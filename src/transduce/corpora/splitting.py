"""Pairs of corpora made from documents in two languages: what is a translation, and what is in train, dev and test."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from transduce.config import Split
from transduce.corpora.source import Pair
from transduce.files import write_lines

__all__ = ["is_translation", "readme", "split_by_document", "write_direction"]

MAX_LENGTH_RATIO = 2.5
RATIO_FLOOR = 20  # characters; shorter sides count as this long, so that headings may be translated freely


def is_translation(english: str, other: str) -> bool:
    """Whether a pair can be a text and its translation: both mostly letters, of similar length, and not the same.

    >>> is_translation("The dog sleeps.", "Der Hund schläft."), is_translation("OK", "Ok.")
    (True, False)
    """
    shorter, longer = sorted((len(english), len(other)))
    return (
        shorter > 0
        and longer <= MAX_LENGTH_RATIO * max(shorter, RATIO_FLOOR)
        and _letters_and_digits(english) != _letters_and_digits(other)
        and _is_mostly_letters(english)
        and _is_mostly_letters(other)
    )


def _letters_and_digits(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _is_mostly_letters(text: str) -> bool:
    n_letters, n_spaces = sum(map(str.isalpha, text)), text.count(" ")
    return n_letters >= len(text) - n_spaces - n_letters


def split_by_document(
    pairs: Iterable[tuple[str, str, str]], *, held_out_per_1000: int, same: Callable[[str], str] = str
) -> dict[Split, list[Pair]]:
    """Return the unique pairs of each split, from (document, English text, other text).

    A hash of its name assigns a document to one split; ``held_out_per_1000`` is for dev, and for test. English text in
    several splits, compared as ``same`` returns it, is kept in the first of train, dev and test only: train keeps the
    ubiquitous phrases, and dev and test measure new text.
    """
    found: dict[Split, dict[Pair, None]] = {"train": {}, "dev": {}, "test": {}}  # dicts as ordered sets
    for document, english, other in pairs:
        found[_split_of(document, held_out_per_1000)][english, other] = None
    seen: set[str] = set()
    result: dict[Split, list[Pair]] = {}
    for split, candidates in found.items():
        result[split] = [pair for pair in candidates if same(pair[0]) not in seen]
        seen.update(same(english) for english, _ in result[split])
    return result


def _split_of(document: str, held_out_per_1000: int) -> Split:
    """Return the split of a document, a function of its name alone."""
    bucket = int.from_bytes(hashlib.sha256(document.encode()).digest()[:8], "big") % 1000
    if bucket < held_out_per_1000:
        return "dev"
    return "test" if bucket < 2 * held_out_per_1000 else "train"


def write_direction(folder: Path, other: str, splits: Mapping[Split, Sequence[Pair]]) -> dict[str, int]:
    """Write ``{train,dev,test}.en-OTHER.{en,OTHER}`` into ``folder``; return the number of pairs of each split.

    An empty split has no files.
    """
    for split, pairs in splits.items():
        for side, language in enumerate(("en", other) if pairs else ()):
            write_lines(folder / f"{split}.en-{other}.{language}", (pair[side] for pair in pairs))
    return {str(split): len(pairs) for split, pairs in splits.items()}


def readme(name: str, about: str, sizes: Mapping[str, Mapping[str, int]], packages: Sequence[str], licence: str) -> str:
    """Return the README.md of a corpus made from Debian packages; ``sizes`` by direction, then by split."""
    rows = [f"| {direction} | {' | '.join(f'{n:,}' for n in row.values())} |" for direction, row in sizes.items()]
    table = ["| pairs | train | dev | test |", "| --- | --- | --- | --- |", *rows]
    parts = [f"# {name}", about, "\n".join(table), "Taken from the Debian packages", "\n".join(packages), licence]
    return "\n\n".join(parts) + "\n"
