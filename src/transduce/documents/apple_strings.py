r"""Apple's tables of strings: ``"key" = "text";`` with comments, and property lists with plural forms."""

from __future__ import annotations

import re

from transduce.documents.document import Document, Format, Reading
from transduce.documents.encodings import decoded
from transduce.documents.messages import message_parts
from transduce.documents.placeholders import ANY
from transduce.documents.spliced import Embedded, Region, SplicedText, with_regions, with_words
from transduce.documents.xml import decoded_xml
from transduce.errors import DataError
from transduce.patterns import compiled_on_use
from transduce.text.markup import text_tokens, unit_of, xml_rules
from transduce.text.markup_reading import decoder, read_tokens

__all__ = ["FORMATS"]

_STRING = r'"((?:[^"\\]|\\.)*+)"'
_COMMENT = r"/\*.*?\*/|//[^\n]*+"
_PAIR = compiled_on_use(rf"(?:\s|{_COMMENT})*+(?:{_STRING}|([\w.$-]++))\s*+=\s*+{_STRING}\s*+;", re.DOTALL)
_REST = compiled_on_use(rf"\ufeff?(?:\s|{_COMMENT})*+", re.DOTALL)
_ESCAPE = compiled_on_use(r"\\(?:[uU]([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_WRITTEN = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"})
_LINE = compiled_on_use(r"[\r\n]+|[^\r\n]+")  # or line ends
_TEXT_KEYS = frozenset(("NSStringLocalizedFormatKey", "zero", "one", "two", "few", "many", "other"))


def read(data: bytes, reading: Reading) -> Document:
    """Read a table of strings in UTF-8, or UTF-16 with a byte order mark."""
    text, encoding = decoded(data)
    embedded, regions = Embedded(text), list[tuple[int, Region]]()
    end = int(text.startswith("\ufeff"))
    while match := _PAIR.match(text, end):
        end = match.end()
        value = _decoded(match[3])
        context = _decoded(match[1]) if match[1] is not None else match[2]
        parts = message_parts(value, embedded, reading)
        regions.append((match.start(3), Region(match[3], parts, lambda text: text.translate(_WRITTEN), context)))
    rest = _REST.match(text, end)
    if rest is None or rest.end() < len(text):
        n_lines = 1 + text.count("\n", 0, rest.end() if rest else end)
        raise DataError(f'line {n_lines:,} is no entry of a table of strings; one is "key" = "text";')
    return SplicedText(with_regions(text, regions), encoding, embedded=embedded, placeholders=(ANY,))


def read_plurals(data: bytes, reading: Reading) -> Document:
    """Read a property list with plural forms (stringsdict)."""
    text, encoding = decoded_xml(data)
    rules, regions, path = xml_rules(), list[tuple[int, Region]](), [""]
    decode, name, start = decoder(rules), "", 0
    for token in read_tokens(text, rules):
        start += len(token.raw)
        if token.kind in ("start", "end"):
            name = token.name if token.kind == "start" else ""
            if token.name == "dict":
                path = [*path, ""] if name else path[:-1]
        elif token.kind == "text" and name == "key" and path:
            path[-1] = decode(token.raw)
        elif token.kind == "text" and name == "string" and path and path[-1] in _TEXT_KEYS:
            lines = (
                text_tokens(line, is_protected=reading.is_protected, decode=decode) for line in _LINE.findall(token.raw)
            )
            units = [with_words(unit_of(line, decode, is_escaped=True)) for line in lines]
            regions.append((start - len(token.raw), Region(token.raw, units, context="/".join(path[1:]))))
    return SplicedText(with_regions(text, regions), encoding, "xmlcharrefreplace", placeholders=(ANY,))


def _decoded(text: str) -> str:
    return _ESCAPE.sub(lambda each: chr(int(each[1], 16)) if each[1] else _ESCAPES.get(each[2], each[2]), text)


FORMATS = (
    Format("strings", (".strings",), read, "text/plain"),
    Format("stringsdict", (".stringsdict",), read_plurals, "application/xml"),
)
