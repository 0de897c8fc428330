"""The elements of an XML document with their places in its text. Entities are not expanded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from transduce.documents.encodings import xml_text
from transduce.errors import DataError, quoted
from transduce.patterns import compiled_on_use
from transduce.text.markup_reading import Token, decoder, escaped, read_tokens, xml_rules

__all__ = ["Element", "attributes_of", "decoded_xml", "local_name", "read_elements", "with_attribute"]

MAX_DEPTH = 500
_ATTRIBUTE = compiled_on_use(r"""(?<![^\s"'<>/=])([^\s"'<>/=]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)')""")


@dataclass(slots=True, eq=False)
class Element:
    """An element: ``start`` to ``end`` with its tags, ``inner_start`` to ``inner_end`` without them."""

    name: str
    attributes: dict[str, str]
    start: int
    inner_start: int
    inner_end: int = 0
    end: int = 0
    children: list[Element] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """Its name without a prefix."""
        return local_name(self.name)

    def all(self) -> Iterator[Element]:
        """Yield it and all elements inside it, in order."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack += reversed(element.children)

    def child(self, kind: str) -> Element | None:
        """Return the first child of a kind."""
        return next((each for each in self.children if each.kind == kind), None)


def local_name(name: str) -> str:
    """Return a name without its prefix."""
    return name.rpartition(":")[2]


def attributes_of(tag: str) -> dict[str, str]:
    """Return the attributes of a tag.

    >>> attributes_of("<a b='1 &lt; 2' xml:lang=\\"de\\"/>")
    {'b': '1 < 2', 'xml:lang': 'de'}
    """
    decode = decoder(xml_rules())
    return {match[1]: decode(match[2] if match[2] is not None else match[3]) for match in _ATTRIBUTE.finditer(tag)}


def with_attribute(tag: str, name: str, value: str) -> str:
    """Return an opening tag with a value of an attribute; nothing else changes.

    >>> with_attribute("<target state='new'>", "state", "final"), with_attribute("<file />", "id", "1")
    ('<target state="final">', '<file id="1" />')
    """
    written = f'{name}="{escaped(value).replace(chr(34), "&quot;")}"'
    found = next((match for match in _ATTRIBUTE.finditer(tag) if match[1] == name), None)
    if found is not None:
        return tag[: found.start()] + written + tag[found.end() :]
    end = len(tag[: len(tag) - (2 if tag.endswith("/>") else 1)].rstrip())
    return f"{tag[:end]} {written}{tag[end:]}"


def decoded_xml(data: bytes) -> tuple[str, str]:
    """Return the text of an XML document and its encoding: that of its declaration, or UTF-8.

    Raises DataError for one with entities of its own.
    """
    text, encoding = xml_text(data)
    if "<!ENTITY" in text:
        raise DataError("it declares entities of its own; save it with these replaced by their texts")
    return text, encoding


def read_elements(text: str) -> Element:
    """Return the root of an XML document. Raises DataError, with its line, for tags that do not match."""
    top = Element("", {}, 0, 0)
    stack, position = [top], 0
    for token in read_tokens(text, xml_rules()):
        start, position = position, position + len(token.raw)
        _read(token, start, position, stack, text)
    if len(stack) > 1:
        raise DataError(f"line {_line(text, stack[-1].start):,}: <{stack[-1].name}> is never closed; it may be cut off")
    if len(top.children) != 1:
        raise DataError(f"it has {len(top.children)} root elements; a document of XML has one")
    return top.children[0]


def _read(token: Token, start: int, end: int, stack: list[Element], text: str) -> None:
    if token.kind == "end":
        if stack[-1].name != token.name:
            raise DataError(f"line {_line(text, start):,}: {quoted(token.raw)} closes <{stack[-1].name}>")
        stack[-1].inner_end, stack[-1].end = start, end
        stack.pop()
    elif token.kind != "cdata" and token.name:
        element = Element(token.name, attributes_of(token.raw), start, end, end, end)
        stack[-1].children.append(element)
        if token.kind == "start":
            if len(stack) > MAX_DEPTH:
                raise DataError(f"line {_line(text, start):,}: elements are nested more than {MAX_DEPTH} deep")
            stack.append(element)


def _line(text: str, position: int) -> int:
    return 1 + text.count("\n", 0, position)
