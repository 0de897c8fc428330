"""Paragraphs of runs, pieces of text with properties, as units whose tags close one run and open another.

A unit stands in a run of the paragraph's most common properties, its base. Text with other properties, a link, a mark
of a note are tags in it, each of which ends the run before it and begins one again after it, so that tags may be moved
and the result is still what the format asks for. Runs with properties that count as equal are one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass, field, replace
from itertools import accumulate, count, islice
from typing import Literal, NamedTuple

from transduce.documents.document import Segment
from transduce.documents.encodings import FORBIDDEN_IN_XML, encoded
from transduce.documents.languages import NamingLanguage
from transduce.patterns import compiled_on_use
from transduce.text import needs_translation
from transduce.text.markup import Unit, text_tokens, unit_of, xml_rules
from transduce.text.markup_reading import Token, decoder, escaped, kept_whole
from transduce.text.punctuation import COMMAS

__all__ = ["NOTHING_OPEN", "Group", "MarkedPart", "Marker", "Piece", "Style", "Tags", "first_of", "joined", "last_of"]

_SEVERAL_SPACES = compiled_on_use("  +")
_NUMBERED = compiled_on_use(r"<\?(\d{1,9})-")
_BLANK_FIELD = 3  # so many spaces with properties of their own are something to see, such as a line to write on


class Tags(NamedTuple):
    """What is open at a place of a paragraph: tags that open it, and those that close it."""

    opening: str
    closing: str


NOTHING_OPEN = Tags("", "")


@dataclass(frozen=True, slots=True)
class Style:
    """The properties of a run, with the tags around its text."""

    key: Hashable  # equal for runs that are one
    tags: Tags
    is_raised: bool = False  # superscript


@dataclass(slots=True)
class Piece:
    """A part of a paragraph, at bytes of the document.

    An ``atom`` stays as it is. A ``break`` parts units; so does the end of a ``line``, unless it is inside a clause.
    """

    kind: Literal["text", "atom", "line", "break"]
    start: int
    end: int
    before: Tags = NOTHING_OPEN  # what is open where it starts, and ends
    after: Tags = NOTHING_OPEN
    text: str = ""
    style: Style | None = None  # of a text
    is_note: bool = False  # it belongs to the word before it
    is_shown: bool = True


@dataclass(slots=True)
class Group:
    """A part of a paragraph with tags around it, such as a link."""

    opening: Piece
    parts: list[Piece | Group]
    closing: Piece


@dataclass(frozen=True, slots=True)
class _Marked:
    """A unit of a part, and what is replaced in its translations."""

    unit: Unit
    place: str
    replaced: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Dropped:
    """What a part has no more if one of some units is translated: it says the same."""

    raw: str
    units: tuple[int, ...]  # their places


@dataclass(frozen=True, eq=False)
class MarkedPart:
    """An XML document with marks at the places of its units."""

    data: bytes
    encoding: str
    marked: str
    mark: str  # what marks begin with
    units: dict[int, _Marked]  # by their places, in order
    language: NamingLanguage | None = None  # in translated runs
    dropped: dict[int, _Dropped] = field(default_factory=dict)  # by their places
    named: NamingLanguage | None = None  # in the whole document

    @property
    def segments(self) -> list[Segment]:
        """Its units, in order."""
        return [Segment(each.unit, each.place) for each in self.units.values()]

    def written(self, targets: Sequence[str | None], *, tgt_language: str = "") -> bytes:
        """Return the document with translations."""
        if all(target is None for target in targets):
            return self.data
        texts, translated = dict[str, str](), set[int]()
        for (place, each), target in zip(self.units.items(), targets, strict=True):
            if target is not None:
                translated.add(place)
                target = FORBIDDEN_IN_XML.sub("", target)
                for old, new in each.replaced:
                    target = target.replace(old, new)
                if tgt_language and self.language is not None:
                    target = self.language(target, tgt_language)
            texts[str(place)] = each.unit.raw if target is None else target
        for place, dropped in self.dropped.items():
            texts[str(place)] = dropped.raw if translated.isdisjoint(dropped.units) else ""
        text, pattern = self.marked, re.compile(rf"{re.escape(self.mark)}(\d+)\?>")
        while self.mark in text:  # once more for each level of paragraphs in paragraphs
            text = pattern.sub(lambda match: texts[match[1]], text)
        if tgt_language and self.named is not None:
            text = self.named(text, tgt_language)
        return encoded(text, self.encoding, errors="xmlcharrefreplace")


@dataclass(eq=False)
class Marker:
    """Puts marks at the places of units; of paragraphs in each other, the inner come first."""

    data: bytes
    text: InitVar[str]
    encoding: str
    is_protected: bool
    name: str  # of a unit's place, for people
    language: NamingLanguage | None = None
    utf8: bytes = field(init=False)
    _mark: str = field(init=False)
    _starts: list[int] = field(default_factory=list)  # of the units that are not inside others
    _ends: list[int] = field(default_factory=list)
    _units: dict[int, _Marked] = field(default_factory=dict)
    _dropped: dict[int, _Dropped] = field(default_factory=dict)
    _n_paragraphs: int = 0

    def __post_init__(self, text: str) -> None:
        self.utf8 = self.data if self.encoding == "utf-8" else text.encode()
        # As no tag begins, and as no comment or CDATA section of the document has it.
        taken = set(_NUMBERED.findall(text))
        self._mark = next(f"<?{number}-" for number in count() if str(number) not in taken)

    def source(self, start: int, end: int) -> str:
        """Return the text from one byte to another, with the marks in it."""
        pieces, position = list[str](), start
        for index in range(bisect_left(self._starts, start), bisect_left(self._starts, end)):
            pieces += [self.utf8[position : self._starts[index]].decode(), f"{self._mark}{self._starts[index]}?>"]
            position = self._ends[index]
        return "".join([*pieces, self.utf8[position:end].decode()])

    def part(self) -> MarkedPart:
        """Return the document with all marks."""
        units = dict(sorted(self._units.items()))
        marked = self.source(0, len(self.utf8))
        return MarkedPart(self.data, self.encoding, marked, self._mark, units, self.language, self._dropped)

    @property
    def n_units(self) -> int:
        """How many units were added."""
        return len(self._units)

    def drop_if_translated(self, start: int, end: int, n: int) -> None:
        """Leave out what is from one byte to another if one of the last ``n`` units is translated."""
        if start < end:
            self._dropped[start] = _Dropped(self.source(start, end), tuple(islice(reversed(self._units), n)))
            self._mark_place(start, end)

    def add_value(self, start: int, end: int, value: str, *, quote: str = "") -> None:
        """Add a text that is plain: all of an element or, in quotation marks, of an attribute."""
        if needs_translation(value):
            tokens = self._text(value)
            unit = unit_of(tokens, decoder(xml_rules()), is_escaped=True)
            entity = {'"': "&quot;", "'": "&#39;"}.get(quote)
            self._n_paragraphs += 1
            self._add(start, end, unit, [(quote, entity)] if entity else [])

    def add_paragraph(self, parts: Sequence[Piece | Group], *, space: Callable[[int], str] | None = None) -> None:
        """Add the units of a paragraph. ``space``: how several spaces are written where they would be one."""
        self._n_paragraphs += 1
        _settle_lines(parts)
        for unit_parts in _sections(_whole(parts)):
            if needs_translation("".join(piece.text for piece in _pieces(unit_parts))):
                self._add_runs(unit_parts, space)

    def _add_runs(self, parts: Sequence[Piece | Group], space: Callable[[int], str] | None) -> None:
        """Add a unit that begins and ends with a text or a group."""
        base = _base(parts)
        first, last = first_of(parts[0]), last_of(parts[-1])
        replaced = dict[str, str]()
        tokens = kept_whole(list(self._tokens(parts, base, replaced)), xml_rules())
        unit = unit_of(tokens, decoder(xml_rules()), is_escaped=True)
        if space is not None:
            unit = replace(unit, before=_spaced(unit.before, space), escape=lambda text: _spaced(escaped(text), space))
        unit = replace(
            unit,
            before=first.before.closing + base.tags.opening + unit.before,
            after=unit.after + base.tags.closing + last.after.opening,
        )
        for piece in _pieces(parts):
            if piece.style is not None and piece.style.tags != NOTHING_OPEN:
                replaced["".join(piece.style.tags)] = ""  # runs without text
        self._add(first.start, last.end, unit, list(replaced.items()))

    def _add(self, start: int, end: int, unit: Unit, replaced: list[tuple[str, str]]) -> None:
        unit = replace(unit, raw=self.source(start, end))
        self._mark_place(start, end)
        self._units[start] = _Marked(unit, f"{self.name} {self._n_paragraphs:,}", tuple(replaced))

    def _mark_place(self, start: int, end: int) -> None:
        low, high = bisect_left(self._starts, start), bisect_left(self._starts, end)
        self._starts[low:high], self._ends[low:high] = [start], [end]

    def _text(self, text: str) -> list[Token]:
        return [Token(each.kind, escaped(each.raw)) for each in text_tokens(text, is_protected=self.is_protected)]

    def _raw(self, piece: Piece) -> str:
        """Return a piece as it may stand beside runs."""
        return piece.before.opening + self.source(piece.start, piece.end) + piece.after.closing

    def _tokens(self, parts: Sequence[Piece | Group], base: Style, replaced: dict[str, str]) -> Iterator[Token]:
        """Yield texts and tags inside a run of some base."""
        current, styles = base, [_style_of(part, base) for part in parts]
        following = list(accumulate(reversed(styles), lambda after, style: style or after, initial=base))[:0:-1]
        for index, part in enumerate(parts):
            style = styles[index]
            if style is None:  # a stretch goes on over an atom
                style = current if (following[index] or base).key == current.key else base
            if style.key != current.key:
                if current is not base:
                    yield Token("end", current.tags.closing + base.tags.opening, _name(current))
                if style.key != base.key:
                    yield Token("start", base.tags.closing + style.tags.opening, _name(style))
                current = style if style.key != base.key else base
            opening, closing = current.tags
            if isinstance(part, Group):
                inner = _base(part.parts)
                yield Token("start", closing + self._raw(part.opening) + inner.tags.opening, "group")
                yield from self._tokens(part.parts, inner, replaced)
                yield Token("end", inner.tags.closing + self._raw(part.closing) + opening, "group")
            elif part.kind == "text" and not _is_blank_field(part, current):
                yield from self._text(part.text)
            else:
                raw = closing + self._raw(part) + opening
                if part.kind == "line":  # it is between two words, and there is no space beside it
                    yield Token("text", " ")
                    replaced[f" {raw}"] = replaced[f"{raw} "] = raw
                # A mark of a note has a name; "wbr" is that of a tag that shows nothing.
                yield Token("single", raw, "note" if part.is_note else "" if part.is_shown else "wbr")
        if current is not base:
            yield Token("end", current.tags.closing + base.tags.opening, _name(current))


def _name(style: Style) -> str:
    """Return the name of the tags around a text: numbers in "sup" belong to the word before."""
    return "sup" if style.is_raised else "run"


def _style_of(part: Piece | Group, base: Style) -> Style | None:
    """Return the style in which a part stands: a group in the base, an atom in any (None), space as the text around."""
    if isinstance(part, Group):
        return base
    return part.style if part.text.strip() else None


def _is_blank_field(piece: Piece, around: Style) -> bool:
    is_other = piece.style is not None and piece.style.key != around.key
    return is_other and not piece.text.strip() and len(piece.text) >= _BLANK_FIELD


def _pieces(parts: Iterable[Piece | Group]) -> Iterator[Piece]:
    for part in parts:
        if isinstance(part, Piece):
            yield part
        else:
            yield from _pieces(part.parts)


def _has_text(part: Piece | Group) -> bool:
    return any(piece.kind == "text" and piece.text.strip() for piece in _pieces([part]))


def first_of(part: Piece | Group) -> Piece:
    """Return where a part begins: it, or the opening of a group."""
    return part if isinstance(part, Piece) else part.opening


def last_of(part: Piece | Group) -> Piece:
    """Return where a part ends: it, or the closing of a group."""
    return part if isinstance(part, Piece) else part.closing


def joined(parts: Sequence[Piece | Group]) -> Piece:
    """Return parts that stay as they are as one."""
    first, last = first_of(parts[0]), last_of(parts[-1])
    return Piece("atom", first.start, last.end, first.before, last.after)


def _base(parts: Sequence[Piece | Group]) -> Style:
    """Return the style of most characters outside groups, else that of the first text inside them."""
    counts, styles = dict[Hashable, int](), dict[Hashable, Style]()
    direct = [part for part in parts if isinstance(part, Piece) and part.style is not None]
    for piece in direct or list(_pieces(parts)):
        if piece.style is not None:
            styles.setdefault(piece.style.key, piece.style)
            counts[piece.style.key] = counts.get(piece.style.key, 0) + len(piece.text.strip())
    return styles[max(counts, key=counts.__getitem__)]


def _settle_lines(parts: Sequence[Piece | Group]) -> None:
    """Make a break of each line end that is none inside a clause: a letter or comma before it, a small letter after."""
    ends, before = list[Piece](), ""
    for piece in _pieces(parts):
        if piece.kind == "line":
            ends.append(piece)
        elif text := piece.text.strip():
            goes_on = text[0].islower() and (before.isalnum() or before in COMMAS)
            for end in ends:
                end.kind = "line" if goes_on else "break"
            ends, before = [], text[-1]


def _whole(parts: Iterable[Piece | Group]) -> list[Piece | Group]:
    """Return the parts; groups without text are atoms."""
    whole: list[Piece | Group] = []
    for part in parts:
        if isinstance(part, Piece):
            whole.append(part)
        elif _has_text(part):
            whole.append(Group(part.opening, _whole(part.parts), part.closing))
        else:
            whole.append(joined([part]))
    return whole


def _sections(parts: Iterable[Piece | Group]) -> Iterator[list[Piece | Group]]:
    """Yield what is between breaks, without atoms and space at its ends, and without a group around all of it."""
    section: list[Piece | Group] = []
    for part in [*parts, None]:
        is_parted = isinstance(part, Group) and any(piece.kind == "break" for piece in _pieces([part]))
        if part is None or is_parted or (isinstance(part, Piece) and part.kind == "break"):
            yield from _trimmed(section)
            section = []
            if is_parted and isinstance(part, Group):
                yield from _sections(part.parts)
        else:
            section.append(part)


def _trimmed(parts: list[Piece | Group]) -> Iterator[list[Piece | Group]]:
    while parts and not _has_text(parts[0]):
        parts = parts[1:]
    while parts and not _has_text(parts[-1]):
        parts = parts[:-1]
    if len(parts) == 1 and isinstance(parts[0], Group):
        yield from _sections(parts[0].parts)
    elif parts:
        yield parts


def _spaced(text: str, space: Callable[[int], str]) -> str:
    return _SEVERAL_SPACES.sub(lambda match: space(len(match[0])), text)
