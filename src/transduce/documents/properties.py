r"""Java properties: keys and texts, with escapes such as ``\u00e4`` and lines that go on."""

from __future__ import annotations

import re

from transduce.documents.document import Document, Format, Reading
from transduce.documents.encodings import decoded
from transduce.documents.messages import message_parts
from transduce.documents.placeholders import ANY
from transduce.documents.spliced import Embedded, Region, SplicedText, with_regions
from transduce.errors import DataError
from transduce.patterns import compiled_on_use

__all__ = ["FORMATS"]

_LINE = compiled_on_use(  # a comment, or a key, what separates it, and its value over all its lines
    r"[ \t\f]*+(?:[#!][^\r\n]*+|((?:[^\\\s:=]|\\[^\r\n])++)"
    r"(?:[ \t\f]*+[:=]?[ \t\f]*+(?:\\(?:\r\n|[\r\n])[ \t\f]*+)*+)"
    r"((?:[^\\\r\n]|\\(?:\r\n|[\s\S]))*+))?(?:\r\n|[\r\n]|\\?\Z|\\)"
)
_ESCAPE = compiled_on_use(r"\\(?:u([0-9A-Fa-f]{4})|(\r\n|[\r\n])[ \t\f]*|(.))")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_WRITTEN = str.maketrans({"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\f": "\\f"})
_NOT_ASCII = compiled_on_use(r"[^\x00-\x7f]")
_NUMBERED = compiled_on_use(r"\{\d")  # an argument of java.text.MessageFormat


def read(data: bytes, reading: Reading) -> Document:
    """Read properties in UTF-8 or, as older versions of Java have them, ISO-8859-1."""
    try:
        text, encoding = decoded(data)
    except DataError:
        text, encoding = decoded(data, "iso-8859-1")
    embedded, regions = Embedded(text), list[tuple[int, Region]]()
    is_raw = encoding != "iso-8859-1" and not text.removeprefix("\ufeff").isascii()
    has_double_quotes = "''" in text  # as MessageFormat needs them
    start = int(text.startswith("\ufeff"))
    while start < len(text) and (match := _LINE.match(text, start)):
        start = match.end()
        if not match[2]:
            continue
        value = _decoded(match[2])
        is_doubled = has_double_quotes and _NUMBERED.search(value) is not None
        value = value.replace("''", "'") if is_doubled else value
        region = _region(match[2], value, _decoded(match[1]), embedded, reading, is_raw, is_doubled)
        regions.append((match.start(2), region))
    return SplicedText(with_regions(text, regions), encoding, embedded=embedded, placeholders=(ANY,))


def _region(
    raw: str, value: str, key: str, embedded: Embedded, reading: Reading, is_raw: bool, is_doubled: bool
) -> Region:
    def written(text: str) -> str:
        text = (text.replace("'", "''") if is_doubled else text).translate(_WRITTEN)
        text = "\\" * text.startswith(" ") + text
        return text if is_raw else _NOT_ASCII.sub(_unicode_escape, text)

    return Region(raw, message_parts(value, embedded, reading), written, key)


def _unicode_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def _decoded(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return "" if match[2] else _ESCAPES.get(match[3], match[3])

    text = _ESCAPE.sub(character, text)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if not text.isascii() else text


FORMATS = (Format("properties", (".properties",), read, "text/x-java-properties"),)
