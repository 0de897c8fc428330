"""Texts divided into the sentences that a model translates, and what stays as it is between them.

Never shown to a model: text without letters, spaces at the ends of lines and between columns, tags, and, unless the
model has masks, URLs, addresses and placeholders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from transduce.files import MAX_LINE_BYTES
from transduce.inference.translation.prefixes import NO_PREFIX, Prefix, parts_of_prefix
from transduce.inference.translation.segmentation import Segmenter
from transduce.patterns import compiled_on_use
from transduce.text import Segment, Tokenizers, needs_translation
from transduce.text.markup import MarkupRules, Unit, divide, plain_unit
from transduce.text.normalise import without_surrogates

__all__ = ["DividedText", "DividedUnit", "Sentence", "Splitting", "TextDivider"]

# Where plain text is divided: at line ends, tabs and sentences; at sentences only; or nowhere.
Splitting = Literal["lines", "sentences", "none"]
_LINE_OR_COLUMN_END = compiled_on_use("([\t\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+)")


@dataclass(frozen=True, slots=True)
class Sentence:
    """What a model translates as a whole."""

    text: str
    prefix: Prefix = NO_PREFIX


@dataclass(frozen=True, slots=True, eq=False)
class DividedUnit:
    """A paragraph, line or cell: its segments, and what is translated of each; None if it stays as it is."""

    unit: Unit
    segments: tuple[Segment, ...]
    sentences: tuple[Sentence | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class DividedText:
    """A text and its parts; a string stays as it is."""

    source: str
    parts: tuple[str | DividedUnit, ...]
    is_cut: bool  # the source is longer than its parts

    @property
    def units(self) -> list[DividedUnit]:
        """The parts that are translated."""
        return [part for part in self.parts if isinstance(part, DividedUnit)]

    @property
    def sentences(self) -> list[Sentence]:
        """What is translated, in order."""
        return [each for unit in self.units for each in unit.sentences if each is not None]


@dataclass(frozen=True, slots=True)
class TextDivider:
    """Divides texts for one translator."""

    segmenter: Segmenter
    tokenizers: Tokenizers
    tgt_language: str

    def __call__(
        self,
        texts: Sequence[str | Unit],
        *,
        rules: MarkupRules | None = None,
        splitting: Splitting = "lines",
        prefixes: Sequence[str] = (),
    ) -> list[DividedText]:
        """Divide texts, with tags if there are ``rules``. ``prefixes``: how their translations begin.

        A ``Unit``, such as a paragraph of a document, is divided into sentences only. Plain text is cut at
        ``MAX_LINE_BYTES`` characters; lone surrogates become U+FFFD. A language code at the start of a text
        (``>>deu<<``) begins each of its sentences.
        """
        limit = MAX_LINE_BYTES if rules is None else None
        prefixes = prefixes or [""] * len(texts)
        sources = [text.raw if isinstance(text, Unit) else text for text in texts]
        coded = [self.tokenizers.src.split_language_code(without_surrogates(source[:limit])) for source in sources]
        parts_of = [
            [text] if isinstance(text, Unit)
            else list(_parts(rest, rules, splitting, is_protected=not (self.has_masks or prefix)))
            for text, (_, rest), prefix in zip(texts, coded, prefixes, strict=True)
        ]  # fmt: skip
        units = [part for parts in parts_of for part in parts if isinstance(part, Unit)]
        segments = dict(zip(units, self._segments([unit.text for unit in units], splitting), strict=True))
        return [
            self._divided(
                text, code, parts, segments, prefix, is_cut=isinstance(given, str) and len(text[:limit]) < len(text)
            )
            for given, text, (code, _), parts, prefix in zip(texts, sources, coded, parts_of, prefixes, strict=True)
        ]

    @property
    def has_masks(self) -> bool:
        """Whether the model itself copies URLs and placeholders."""
        return self.tokenizers.src.has_masks and self.tokenizers.tgt.has_masks

    def _segments(self, texts: Sequence[str], splitting: Splitting) -> list[list[Segment]]:
        return [[Segment(text, "")] for text in texts] if splitting == "none" else self.segmenter(texts)

    def _divided(
        self,
        text: str,
        code: str,
        parts: Sequence[str | Unit],
        segments_of: dict[Unit, list[Segment]],
        prefix: str,
        *,
        is_cut: bool,
    ) -> DividedText:
        translated = {
            unit: [len(segments_of[unit]) == 1 or needs_translation(each.text) for each in segments_of[unit]]
            for unit in parts
            if isinstance(unit, Unit)
        }
        beginnings = iter(parts_of_prefix(prefix, self.tgt_language, sum(map(sum, translated.values()))))

        def divided_unit(unit: Unit) -> DividedUnit:
            sentences = tuple(
                Sentence(f"{code} {segment.text}" if code else segment.text, next(beginnings))
                if is_translated
                else None
                for segment, is_translated in zip(segments_of[unit], translated[unit], strict=True)
            )
            return DividedUnit(unit, tuple(segments_of[unit]), sentences)

        divided = tuple(divided_unit(part) if isinstance(part, Unit) else part for part in parts)
        return DividedText(text, divided, is_cut)


def _parts(text: str, rules: MarkupRules | None, splitting: Splitting, *, is_protected: bool) -> Iterator[str | Unit]:
    """Divide a text into units that need a translation, and what stands between them."""
    parts: list[str | Unit]
    if rules is not None:
        parts = divide(text, rules, is_protected=is_protected)
    else:
        pieces = _LINE_OR_COLUMN_END.split(text) if splitting == "lines" else [text]
        parts = [plain_unit(piece, is_protected=is_protected) for piece in pieces]
    for part in parts:
        yield part.raw if isinstance(part, Unit) and not needs_translation(part.text) else part
