"""XML as elements with their places in its bytes, so that spans of it can be replaced.

It is read by expat, which stops at what is not well-formed. Document types are refused, so there are no entities beside
those of XML, and nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from transduce.errors import DataError

__all__ = ["MAX_DEPTH", "Element", "Text", "find_elements"]

MAX_DEPTH = 250  # of elements in each other
READ_AT_ONCE = 1 << 16  # bytes


@dataclass(slots=True, eq=False)
class Text:
    """Characters between two tags, at bytes of the document."""

    value: str  # without entities
    start: int
    end: int


@dataclass(slots=True, eq=False)
class Element:
    """An element at bytes of the document, from ``start`` to ``end``; its content from ``inner`` to ``inner_end``."""

    name: str  # "w:p"; prefixes are those of the reader's namespaces
    attributes: dict[str, str]
    start: int
    inner: int = 0
    inner_end: int = 0
    end: int = 0
    children: list[Element | Text] = field(default_factory=list)

    @property
    def elements(self) -> Iterator[Element]:
        """The elements that are its children."""
        return (child for child in self.children if isinstance(child, Element))

    def child(self, name: str) -> Element | None:
        """Return its first child of a name."""
        return next((child for child in self.elements if child.name == name), None)

    def within(self, names: Collection[str], but: Collection[str] = ()) -> Iterator[Element]:
        """Yield the outermost elements of some names inside it, and none inside elements of other names."""
        for child in self.elements:
            if child.name in names:
                yield child
            elif child.name not in but:
                yield from child.within(names, but)

    @property
    def text(self) -> str:
        """All characters inside it."""
        return "".join(child.value if isinstance(child, Text) else child.text for child in self.children)


def find_elements(utf8: bytes, names: Collection[str], namespaces: Mapping[str, str]) -> Iterator[Element]:
    """Yield the outermost elements of some names, in order.

    ``namespaces`` has the prefix of each namespace that counts; elements and attributes of others have ``?`` before
    their name. Raises DataError for what is not well-formed.
    """
    return _Reader(names, namespaces).read(utf8)


class _Reader:
    """The handlers of expat."""

    def __init__(self, names: Collection[str], namespaces: Mapping[str, str]) -> None:
        from xml.parsers import expat

        self._names, self._namespaces = names, namespaces
        self._found: list[Element] = []  # that are not yielded yet
        self._short: dict[str, str] = {}  # names as ``Element`` has them
        self._stack: list[Element] = []  # the open elements from the outermost one that is wanted
        self._started: Element | None = None  # its start tag may be longer than what was read
        self._open_text: Text | None = None
        self._pieces: list[str] = []  # of it
        self._depth = 0
        parser = self._parser = expat.ParserCreate("utf-8", " ")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartCdataSectionHandler = parser.EndCdataSectionHandler = lambda: self._characters("")
        parser.StartDoctypeDeclHandler = self._doctype
        parser.CommentHandler = self._not_text
        parser.ProcessingInstructionHandler = self._not_text
        self._error = expat.ExpatError

    def read(self, utf8: bytes) -> Iterator[Element]:
        self._utf8 = utf8
        try:
            for start in range(0, len(utf8) + 1, READ_AT_ONCE):
                end = start + READ_AT_ONCE
                self._parser.Parse(utf8[start:end], end > len(utf8))
                found, self._found = self._found, []
                yield from found
        except self._error as error:
            raise DataError(f"it is not well-formed XML: {str(error).replace(': line', ' in line')}") from None

    def _close(self) -> int:
        """End the start tag, or text, before the position of the parser, and return the position."""
        position = self._parser.CurrentByteIndex
        if self._started is not None:
            self._started.inner = position
            self._started = None
        if self._open_text is not None:
            self._open_text.value, self._open_text.end = "".join(self._pieces), position
            self._open_text = None
            self._pieces = []
        return position

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        position = self._close()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise DataError(f"it has more than {MAX_DEPTH} elements in each other; save it anew")
        short = self._shortened(name)
        if self._stack or short in self._names:
            element = Element(short, {self._shortened(key): value for key, value in attributes.items()}, position)
            if self._stack:
                self._stack[-1].children.append(element)
            self._stack.append(element)
            self._started = element

    def _end(self, _name: str) -> None:
        position = self._close()
        self._depth -= 1
        if self._stack:
            element = self._stack.pop()
            element.inner_end = position
            is_empty = element.inner == position and self._utf8[position - 2 : position] == b"/>"
            element.end = position if is_empty else self._utf8.index(b">", position) + 1
            if not self._stack:
                self._found.append(element)

    def _characters(self, value: str) -> None:
        if not self._stack:
            return
        if self._open_text is None:
            position = self._close()
            self._open_text = Text("", position, position)
            self._stack[-1].children.append(self._open_text)
        self._pieces.append(value)

    def _not_text(self, *_: object) -> None:
        self._close()

    def _doctype(self, *_: object) -> None:
        raise DataError("it has a document type, which a document of this format has not; save it anew")

    def _shortened(self, name: str) -> str:
        found = self._short.get(name)
        if found is None:
            namespace, _, local = name.rpartition(" ")
            prefix = self._namespaces.get(namespace, "?") if namespace else ""
            found = self._short[name] = f"{prefix}:{local}" if prefix else local
        return found
