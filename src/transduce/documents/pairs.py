"""Texts with their translations, from the files that people have: PO, MO, XLIFF, TMX, tab-separated, and folders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from transduce.config import base_language, canonical_code
from transduce.documents.accelerators import accelerator_of, usual_sign, without_accelerators
from transduce.documents.document import Reading, Segment
from transduce.documents.elements import decoded_xml
from transduce.documents.mo import read_mo
from transduce.documents.po import PoDocument
from transduce.documents.po_reading import decoded_po
from transduce.documents.tmx import read_tmx, tmx_languages
from transduce.documents.xliff import XliffDocument
from transduce.errors import DataError, MissingFileError
from transduce.files import READ_ERRORS, open_binary, read_lines
from transduce.text import needs_translation

__all__ = ["PAIR_ENDINGS", "Pair", "Pairs", "languages_in", "pairs_of"]

PAIR_ENDINGS = {
    "po": (".po",),
    "mo": (".mo", ".gmo"),
    "xliff": (".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff"),
    "tmx": (".tmx",),
    "tsv": (".tsv",),
}  # by format; of compressed files without .gz and .xz
LEFT_OUT = (
    "no translation",
    "unsure",
    "in other languages",
    "no words",
    "the same on both sides",
    "seen before",
    "not two columns",
)
_NO_TRANSLATION, _UNSURE, _OTHER, _NO_WORDS, _SAME, _SEEN, _NO_COLUMNS = LEFT_OUT


@dataclass(frozen=True, slots=True)
class Pair:
    """A text with its translation, each on one line."""

    src: str
    tgt: str
    context: str = ""  # what tells equal texts apart
    before: str = ""  # the sources beside it, where the file says so; else those of the pairs beside it
    after: str = ""


@dataclass(slots=True)
class Pairs:
    """The different pairs of files, read anew for each iteration; ``left_out`` counts what the last one left out."""

    files: Sequence[Path]
    src: str
    tgt: str
    are_all_kept: bool = False  # also equal ones, and the spaces in them
    left_out: Counter[str] = field(default_factory=Counter)  # by reason
    n_kept: int = 0

    def __iter__(self) -> Iterator[Pair]:
        self.left_out, self.n_kept = Counter(), 0
        seen = set[int]()
        for file in self.files:
            with _named_in_errors(file):
                for found in _read(file, self.src, self.tgt):
                    pair = found if isinstance(found, str) else self._checked(found, seen)
                    if isinstance(pair, str):
                        self.left_out[pair] += 1
                    else:
                        self.n_kept += 1
                        yield pair

    def _checked(self, pair: Pair, seen: set[int]) -> Pair | str:
        src, tgt = (" ".join(text.split()) for text in (pair.src, pair.tgt))
        if not tgt:
            return _NO_TRANSLATION
        if not needs_translation(src):
            return _NO_WORDS
        if self.are_all_kept:
            return pair
        if src == tgt and base_language(self.src) != base_language(self.tgt):
            return _SAME
        if (key := hash((src, tgt))) in seen:
            return _SEEN
        seen.add(key)
        return Pair(src, tgt, pair.context)

    def lines(self) -> list[str]:
        """Say how many pairs the last iteration gave, and what it left out."""
        where = f"{len(self.files):,} file{'s' * (len(self.files) != 1)}"
        return [
            f"read {self.n_kept:,} pairs from {where}",
            *(f"left out {n:,}: {reason}" for reason, n in self.left_out.most_common()),
        ]


def pairs_of(
    paths: Path | Sequence[Path],
    src: str,
    tgt: str,
    *,
    kinds: Sequence[str] = tuple(PAIR_ENDINGS),
    are_all_kept: bool = False,
) -> Pairs:
    """Return the pairs of files, and of those in folders that have such names. ``kinds``: keys of ``PAIR_ENDINGS``.

    ``are_all_kept``: also pairs that were seen before or are equal on both sides, with all their spaces.

    Iterating raises DataError, with the name of the file, for one that cannot be read.
    """
    endings = tuple(ending for kind in kinds for ending in PAIR_ENDINGS[kind])
    files = list[Path]()
    for path in [paths] if isinstance(paths, Path) else paths:
        within = sorted(each for each in path.rglob("*") if _ending(each) in endings) if path.is_dir() else [path]
        if not within:
            raise DataError(f"{path} has no file whose name ends in {', '.join(endings)}")
        files += within
    for file in files:
        if _ending(file) not in endings:
            raise DataError(f"{file} should end in {', '.join(endings)}")
    return Pairs(files, src, tgt, are_all_kept)


def languages_in(files: Sequence[Path]) -> list[str]:
    """Return the languages that TMX and XLIFF files name, that of the sources first; more than two if they differ.

    Raises DataError, with the name of the file, for one that cannot be read.
    """
    found = list[str]()
    for file in files:
        with _named_in_errors(file):
            if _ending(file) in PAIR_ENDINGS["tmx"]:
                with open_binary(file) as stream:
                    found += tmx_languages(stream)
            elif _ending(file) in PAIR_ENDINGS["xliff"]:
                with open_binary(file) as stream:
                    found += XliffDocument(*decoded_xml(stream.read()), Reading(wanted="fuzzy")).languages
    return [code for code in dict.fromkeys(found) if code]


@contextmanager
def _named_in_errors(file: Path) -> Iterator[None]:
    """Say in a DataError which file cannot be read."""
    try:
        yield
    except MissingFileError:  # which names it
        raise
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    except READ_ERRORS as error:
        raise DataError(f"{file} cannot be read: {error}") from None


def _ending(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz").removesuffix(".xz")
    return Path(name).suffix


def _read(path: Path, src: str, tgt: str) -> Iterator[Pair | str]:
    kind = next(kind for kind, endings in PAIR_ENDINGS.items() if _ending(path) in endings)
    if kind == "tsv":
        yield from _tab_separated(path)
        return
    with open_binary(path) as stream:
        if kind == "tmx":
            for found in read_tmx(stream, src, tgt):
                yield _OTHER if found is None else Pair(*found)
            return
        data = stream.read()
    languages = src, tgt
    if kind == "mo":
        yield from _of_mo(data, languages)
    elif kind == "po":
        po = PoDocument(*decoded_po(data), Reading(wanted="fuzzy"))
        yield from _of_segments(po.segments, ("", po.language), languages)
    else:
        xliff = XliffDocument(*decoded_xml(data), Reading(wanted="fuzzy"))
        yield from _of_segments(xliff.segments, xliff.languages, languages)


def _tab_separated(path: Path) -> Iterator[Pair | str]:
    for line in read_lines(path):
        cells = line.split("\t")
        yield Pair(*cells) if len(cells) in (2, 3) else _NO_COLUMNS


def _of_segments(
    segments: Sequence[Segment], there: tuple[str, str], languages: tuple[str, str]
) -> Iterator[Pair | str]:
    order = _order(there, languages)
    for segment in segments:
        if not segment.target:
            yield _NO_TRANSLATION
        elif order is None:
            yield _OTHER
        elif segment.is_wanted:
            yield _UNSURE
        else:
            source, target = (segment.unit.text, segment.target)[::order]
            yield Pair(source, target, segment.context)


def _of_mo(data: bytes, languages: tuple[str, str]) -> Iterator[Pair | str]:
    language, messages = read_mo(data)
    order = _order(("", canonical_code(language) or ""), languages)
    sign = usual_sign(singular for _, singular, _, _ in messages)
    for context, singular, plural, target in messages:
        if order is None:
            yield _OTHER
            continue
        source = plural or singular
        if accelerator_of(source, sign):
            source, target = without_accelerators(source, sign), without_accelerators(target, sign)
        first, second = (source, target)[::order]
        yield Pair(first, second, context)


def _order(there: tuple[str, str], languages: tuple[str, str]) -> int | None:
    """Return 1 if a file has the languages, -1 if it has them the other way round, None if it has others.

    A language that it does not name is the one that is left.

    >>> _order(("", "de-AT"), ("en", "de")), _order(("", "en"), ("en", "de")), _order(("fr", "de"), ("en", "de"))
    (1, -1, None)
    """
    first, second = (base_language(each) for each in there)
    for order in (1, -1):
        src, tgt = [base_language(each) for each in languages][::order]
        if first in ("", src) and second in ("", tgt):
            return order
    return None
