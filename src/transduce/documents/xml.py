"""XML of any kind: elements beside which there is no text divide it. Declarations and entities are never followed."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from xml.parsers import expat

from transduce.documents.android_strings import android_parts, is_android
from transduce.documents.document import Document, Format, Reading
from transduce.documents.encodings import xml_text
from transduce.documents.html import with_language
from transduce.documents.placeholders import ANY
from transduce.documents.spliced import Embedded, Part, SplicedText, with_words
from transduce.documents.xliff import read as read_xliff
from transduce.errors import DataError
from transduce.files.foreign import N_BEGINNING, foreign_beginning, is_xliff
from transduce.patterns import compiled_on_use
from transduce.text.markup import divide, xml_rules

__all__ = ["FORMATS", "decoded_xml"]

_RULES = xml_rules(ignored=("script", "style", "code", "programlisting", "screen", "resheader"))
_PROLOG = compiled_on_use(
    r"\ufeff?(?:\s+|<\?.*?\?>|<!--.*?-->)*+(<!DOCTYPE\b(?:[^\[\]>\"']|\"[^\"]*\"|'[^']*')*+)(\[)?", re.DOTALL
)
_SUBSET_PART = compiled_on_use(r"""<!--.*?-->|<\?.*?\?>|"[^"]*"|'[^']*'|[^]"'<]+|<""", re.DOTALL)


def read(data: bytes, reading: Reading) -> Document:
    """Read an XML document in the encoding that it declares."""
    text, encoding = decoded_xml(data)
    beginning = text[:N_BEGINNING].encode("utf-8", "surrogatepass")
    if is_xliff(beginning):
        return read_xliff(data, reading)
    if (reason := foreign_beginning(beginning)) is not None:
        raise DataError(f"it {reason}")
    embedded = Embedded(text)
    if is_android(text):
        return SplicedText(android_parts(text, reading), encoding, "xmlcharrefreplace", embedded, placeholders=(ANY,))
    end = _end_of_declaration(text)
    parts: list[Part] = [text[:end]]
    parts += (with_words(part) for part in divide(text[end:], _RULES, is_protected=reading.is_protected))

    def translated(text: str, language: str) -> str:
        return text[:end] + with_language(text[end:], language, _RULES)

    return SplicedText(parts, encoding, "xmlcharrefreplace", embedded, translated)


def decoded_xml(data: bytes) -> tuple[str, str]:
    """Return the text of an XML document and its encoding. Raises DataError if it is not well-formed."""
    text, encoding = xml_text(data)
    parser = expat.ParserCreate("utf-8")  # whatever it declares
    try:
        parser.Parse(text.removeprefix("\ufeff").encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise DataError(f"line {error.lineno:,}, column {error.offset + 1:,}: it is no XML: {reason}") from None
    return text, encoding


def _end_of_declaration(text: str) -> int:
    """Return where the declaration of the document's type ends, which may have others inside."""
    match = _PROLOG.match(text)
    if match is None:
        return 0
    position = match.end()
    while match[2] and (part := _SUBSET_PART.match(text, position)):
        position = part.end()
    return text.find(">", position) + 1


FORMATS = (
    Format(
        "xml", (".xml",), read, "application/xml", lambda data: data.removeprefix(BOM_UTF8).lstrip()[:5] == b"<?xml"
    ),
)
