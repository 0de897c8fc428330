"""XLIFF 1.2 and 2.x: sources and their translations, as tools of translators exchange them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from re import finditer

from transduce.config import base_language, canonical_code
from transduce.documents.document import Document, Format, Reading, Segment
from transduce.documents.elements import Element, decoded_xml, read_elements, with_attribute
from transduce.documents.encodings import encoded
from transduce.documents.inline_codes import inline_parts, wrapped_like
from transduce.documents.placeholders import ANY
from transduce.documents.spliced import spliced
from transduce.errors import DataError, quoted
from transduce.files.foreign import N_BEGINNING, is_xliff
from transduce.text.changes import Change, with_changes
from transduce.text.markup import Unit
from transduce.text.markup_reading import CDATA

__all__ = ["FORMATS", "XliffDocument", "read"]

SPACE = "xml:space"  # what an element says is true of those inside it
UNTRANSLATED = ("new", "needs-translation")  # states of a target that is the source once more


@dataclass(frozen=True, slots=True)
class _Target:
    """A translation that the file has."""

    text: str  # without tags
    raw: str  # as it is in the file; "" if it is not known which part of the target it is
    is_there: bool = True


NONE = _Target("", "", is_there=False)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A source with its translation."""

    source: Element
    after: Element  # behind it a missing target belongs
    target: Element | None
    parts: tuple[str | Unit, ...]
    there: tuple[_Target, ...]  # the translation of each unit
    is_translatable: bool
    is_unsure: bool
    key: str
    segment: Element | None  # of 2.x: it has the state

    @property
    def units(self) -> list[Unit]:
        """What is translated."""
        return [part for part in self.parts if isinstance(part, Unit)]


class XliffDocument:
    """The pairs of an XLIFF file."""

    def __init__(self, text: str, encoding: str, reading: Reading) -> None:
        self._text, self._encoding, self._reading = text, encoding, reading
        self._root = read_elements(text)
        if self._root.kind != "xliff":
            raise DataError(f"its root is <{self._root.name}>, not <xliff>")
        version = self._root.attributes.get("version", "1.2")
        if version[:2] not in ("1.", "2."):
            raise DataError(f"its version is {quoted(version)}; 1.2 and 2.0 to 2.2 are read")
        for element in self._root.all():
            for child in element.children:
                child.attributes.setdefault(SPACE, element.attributes.get(SPACE, "default"))
        self._is_2 = version.startswith("2.")
        self._files = [each for each in self._root.children if each.kind == "file"]
        self._pairs = [pair for file in self._files for pair in self._pairs_in(file)]

    @cached_property
    def languages(self) -> tuple[str, str]:
        """The languages of sources and targets, of the first file; "" if it does not name one."""
        names = ("srcLang", "trgLang") if self._is_2 else ("source-language", "target-language")
        holders = self._language_holders
        src, tgt = ((holders[0].attributes.get(name, "") if holders else "") for name in names)
        return canonical_code(src) or src, canonical_code(tgt) or tgt

    @property
    def _language_holders(self) -> list[Element]:
        return [self._root] if self._is_2 else self._files

    def _pairs_in(self, file: Element) -> Iterator[_Pair]:
        stack = [(file, True, "")]
        while stack:
            element, is_translatable, key = stack.pop()
            is_translatable = element.attributes.get("translate", "yes" if is_translatable else "no") != "no"
            if element.kind in ("trans-unit", "unit"):
                attributes = element.attributes
                key = attributes.get("resname") or attributes.get("name") or attributes.get("id", "")
            if element.kind in ("trans-unit", "segment"):
                yield from self._pair(element, key, is_translatable=is_translatable)
            elif element.kind in ("file", "body", "group", "unit"):
                stack += [(child, is_translatable, key) for child in reversed(element.children)]

    def _pair(self, element: Element, key: str, *, is_translatable: bool) -> Iterator[_Pair]:
        source, target, segmented = map(element.child, ("source", "target", "seg-source"))
        if source is None or source.inner_start == source.inner_end:
            return
        segments = [] if segmented is None else _segments_of(segmented)
        content = source if segmented is None or not segments else segmented
        parts = self._parts(content, segments)
        state = (element if self._is_2 else target or element).attributes.get("state", "")
        there = self._targets(target, segments, parts)
        if not self._is_2 and state in UNTRANSLATED:
            there = [NONE] * len(there)
        yield _Pair(
            content,
            segmented or source,
            target,
            tuple(parts),
            tuple(there),
            is_translatable,
            state.startswith("needs-") or state in ("new", "initial"),
            key,
            element if self._is_2 else None,
        )

    def _parts(self, content: Element, segments: Sequence[Element]) -> list[str | Unit]:
        if not segments:
            return self._inline(content)
        parts, position = list[str | Unit](), content.inner_start
        for segment in segments:
            parts += [self._text[position : segment.inner_start], *self._inline(segment)]
            position = segment.inner_end
        return [*parts, self._text[position : content.inner_end]]

    def _inline(self, element: Element) -> list[str | Unit]:
        keeps_lines = element.attributes[SPACE] == "preserve"
        return inline_parts(self._content(element), is_protected=self._reading.is_protected, keeps_lines=keeps_lines)

    def _targets(
        self, target: Element | None, segments: Sequence[Element], parts: Sequence[str | Unit]
    ) -> list[_Target]:
        """Return the translation of each unit, as far as the file has it."""
        marks = _segments_of(target) if target is not None else []
        there = {each.attributes.get("mid", ""): each for each in marks if self._content(each).strip()}
        if target is None or (marks and not there):
            return [NONE] * _n_units(parts)
        if not segments or not there or there.keys() - {each.attributes.get("mid", "") for each in segments}:
            return self._targets_in(target, parts)
        found = list[_Target]()
        for segment in segments:
            of_segment = self._inline(segment)
            other = there.get(segment.attributes.get("mid", ""))
            found += [NONE] * _n_units(of_segment) if other is None else self._targets_in(other, of_segment)
        return found if all(each.raw or not each.is_there for each in found) else [_Target("", "")] * len(found)

    def _targets_in(self, element: Element, source: Sequence[str | Unit]) -> list[_Target]:
        n_units, content = _n_units(source), self._content(element)
        if not content.strip():
            return [NONE] * n_units
        found = [_Target(part.text, part.raw) for part in self._inline(element) if isinstance(part, Unit)]
        if len(found) == n_units and len(source) > 1:
            return found
        text = " ".join(each.text for each in found) if n_units == 1 else ""
        return [_Target(text, content if len(source) == 1 else "")] * n_units

    def _content(self, element: Element) -> str:
        return self._text[element.inner_start : element.inner_end]

    @cached_property
    def segments(self) -> list[Segment]:
        """The sources, in order."""
        line_ends = [match.start() for match in finditer("\n", self._text)]
        return [
            Segment(
                unit,
                f"line {1 + bisect_right(line_ends, pair.source.start):,}",
                target.text,
                self._is_wanted(pair, target),
                pair.key,
                (ANY,),
            )
            for pair in self._pairs
            for unit, target in zip(pair.units, pair.there, strict=True)
        ]

    def _is_wanted(self, pair: _Pair, target: _Target) -> bool:
        is_asked = self._reading.wanted == "all" or (self._reading.wanted == "fuzzy" and pair.is_unsure)
        return pair.is_translatable and (is_asked or not target.is_there)

    def written(self, targets: Sequence[str | None], *, tgt_language: str = "") -> bytes:
        """Return the file with translations, marked for review unless they are trusted."""
        rest = iter(targets)
        given = [[next(rest) for _ in pair.units] for pair in self._pairs]
        assert next(rest, rest) is rest, "more translations than units"
        changes = list[Change]()
        for pair, of_pair in zip(self._pairs, given, strict=True):
            if any(target is not None for target in of_pair):
                changes += self._changes(pair, of_pair)
        if changes and tgt_language:
            changes += self._language_changes(canonical_code(tgt_language) or tgt_language)
        return encoded(with_changes(self._text, changes), self._encoding, errors="xmlcharrefreplace")

    def _changes(self, pair: _Pair, targets: Sequence[str | None]) -> Iterator[Change]:
        """Yield the new target of a pair; units without a new translation keep theirs, else the source."""
        for unit, new in zip(pair.units, targets, strict=True):
            if new is not None and not unit.is_escaped and CDATA[1] in new:
                raise DataError(f"{pair.key}: the translation has {CDATA[1]}, which ends the section that it stands in")
        keeps_lines = pair.source.attributes[SPACE] == "preserve"
        chosen = [
            old.raw or None if new is None else wrapped_like(unit, new, keeps_lines=keeps_lines)
            for unit, new, old in zip(pair.units, targets, pair.there, strict=True)
        ]
        untrusted = "initial" if self._is_2 else "needs-review-translation"
        state = "translated" if self._reading.is_trusted and None not in chosen else untrusted
        content = spliced(pair.parts, chosen)
        name = pair.after.name.removesuffix("seg-source").removesuffix("source") + "target"
        target = pair.target
        opening = f"<{name}>" if target is None else self._text[target.start : target.inner_start]
        if opening.endswith("/>"):
            opening = f"{opening[:-2].rstrip()}>"
        if pair.segment is None:
            opening = with_attribute(opening, "state", state)
        written = f"{opening}{content}</{name}>"
        if target is None:
            space = self._text[self._text.rfind(">", 0, pair.after.start) + 1 : pair.after.start]
            yield pair.after.end, pair.after.end, (space if space.isspace() else "") + written
        else:
            yield target.start, target.end, written
        if pair.segment is not None and pair.segment.attributes.get("state") != state:
            start, end = pair.segment.start, pair.segment.inner_start
            yield start, end, with_attribute(self._text[start:end], "state", state)

    def _language_changes(self, code: str) -> Iterator[Change]:
        name = "trgLang" if self._is_2 else "target-language"
        has_targets = any(target.is_there for pair in self._pairs for target in pair.there)
        for holder in self._language_holders:
            there = holder.attributes.get(name, "")
            if base_language(canonical_code(there) or there) == base_language(code):
                continue
            if there and has_targets:
                raise DataError(
                    f"its {name} is {quoted(there)}, not {code!r}, and it has translations; give it without them"
                )
            tag = self._text[holder.start : holder.inner_start]
            yield holder.start, holder.inner_start, with_attribute(tag, name, code)


def _n_units(parts: Sequence[str | Unit]) -> int:
    return sum(isinstance(part, Unit) for part in parts)


def _segments_of(element: Element) -> list[Element]:
    """Return the marks of the sentences of a source that was divided."""
    return [each for each in element.all() if each.kind == "mrk" and each.attributes.get("mtype") == "seg"]


def read(data: bytes, reading: Reading) -> Document:
    """Read an XLIFF file."""
    return XliffDocument(*decoded_xml(data), reading)


FORMATS = (
    Format("xliff", (".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff"), read, "application/xliff+xml",
           lambda data: is_xliff(data[:N_BEGINNING])),
)  # fmt: skip
