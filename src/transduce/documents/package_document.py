"""A document that is a zip archive, some members of which have texts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from transduce.documents.document import MAX_TEXT_BYTES, Document, Reading, Segment
from transduce.documents.encodings import xml_text
from transduce.documents.languages import NamingLanguage
from transduce.documents.package import Package
from transduce.documents.runs import MarkedPart, Marker
from transduce.documents.xml_tree import Element, find_elements
from transduce.errors import DataError, shown

__all__ = ["PackageDocument", "PartKind", "marked_part", "read_part"]


@dataclass(frozen=True, slots=True)
class PartKind:
    """How the texts of an XML member are found."""

    names: Collection[str]  # of the outermost elements with text
    add: Callable[[Element, Marker], object]  # adds the texts of one
    place: str = "paragraph"  # what people call a text of it
    only_with: tuple[bytes, ...] = (b"",)  # a member without one of these has no text


def read_part(
    package: Package,
    name: str,
    kind: PartKind,
    namespaces: Mapping[str, str],
    reading: Reading,
    language: NamingLanguage | None = None,
) -> MarkedPart:
    """Read an XML member. ``language`` names the language in translated runs.

    Raises DataError, with its name, if it cannot be read.
    """
    try:
        return marked_part(package.read(name, is_large=True), kind, namespaces, reading, language)
    except DataError as error:
        raise DataError(f"{shown(name)}: {error}") from None


def marked_part(
    data: bytes,
    kind: PartKind,
    namespaces: Mapping[str, str],
    reading: Reading,
    language: NamingLanguage | None = None,
) -> MarkedPart:
    """Read an XML document. Raises DataError if it cannot be read."""
    if b"\0" not in data[:4] and not any(each in data for each in kind.only_with):  # zeros: it is UTF-16
        return MarkedPart(b"", "utf-8", "", "", {})  # it is never written
    if len(data) > MAX_TEXT_BYTES:
        raise DataError(f"it has {len(data):,} bytes, of which {MAX_TEXT_BYTES:,} are read at once; divide it")
    text, encoding = xml_text(data)
    marker = Marker(data, text, encoding, reading.is_protected, kind.place, language)
    for element in find_elements(marker.utf8, kind.names, namespaces):
        kind.add(element, marker)
    return marker.part()


@dataclass(frozen=True, eq=False)
class PackageDocument:
    """A zip archive with the members that have texts, in the order in which people read them."""

    package: Package
    parts: Mapping[str, Document]
    languages: Mapping[str, NamingLanguage]  # of members that name the language of the document

    @property
    def segments(self) -> list[Segment]:
        """The texts of all members."""
        return [
            replace(segment, place=f"{name}, {segment.place}")
            for name, part in self.parts.items()
            for segment in part.segments
        ]

    def written(self, targets: Sequence[str | None], *, tgt_language: str = "") -> bytes:
        """Return the archive with translations; of members without one, and of other files in it, no byte changes."""
        return self.package.written(self.replaced(targets, tgt_language=tgt_language))

    def replaced(self, targets: Sequence[str | None], *, tgt_language: str = "") -> dict[str, bytes]:
        """Return the members with translations."""
        replaced, position = dict[str, bytes](), 0
        for name, part in self.parts.items():
            of_part = targets[position : position + len(part.segments)]
            position += len(of_part)
            if any(target is not None for target in of_part):
                replaced[name] = part.written(of_part, tgt_language=tgt_language)
        assert position == len(targets), "more translations than units"
        if replaced and tgt_language:
            for name, named in self.languages.items():
                text, encoding = xml_text(replaced.get(name) or self.package.read(name, is_large=True))
                replaced[name] = named(text, tgt_language).encode(encoding)
        return replaced
