"""JSON with texts: the messages of a program (i18next, ICU, ARB, browser extensions), or any other. Keys stay."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from transduce.documents.document import Document, Format, Reading
from transduce.documents.encodings import decoded
from transduce.documents.messages import message_parts
from transduce.documents.placeholders import ANY
from transduce.documents.spliced import Embedded, Region, SplicedText, with_regions
from transduce.errors import DataError
from transduce.patterns import compiled_on_use

__all__ = ["FORMATS"]

_TOKEN = compiled_on_use(r'"(?:[^"\\]|\\.)*"|[{}\[\],]|[^\s{}\[\],":]+')
_LOCALE = compiled_on_use(r'("@@locale"\s*:\s*")[^"]*(")')
_MESSAGE_KEYS = frozenset(("message", "description", "placeholders", "hash"))  # of browser extensions


def read(data: bytes, reading: Reading) -> Document:
    """Read a JSON document in UTF-8, or UTF-16 with a byte order mark."""
    text, encoding = decoded(data)
    try:
        value = json.loads(text.removeprefix("\ufeff"), parse_int=float)  # of any length; numbers are not used
    except json.JSONDecodeError as error:
        raise DataError(f"line {error.lineno:,}, column {error.colno:,}: it is no JSON: {error.msg}") from None
    except RecursionError:
        raise DataError("it is nested too deeply to be a document; at most some hundred levels are read") from None
    embedded, regions = Embedded(text), list[tuple[int, Region]]()
    is_ascii = text.isascii() and "\\u" in text
    write = partial(json.dumps, ensure_ascii=is_ascii)
    is_extension = isinstance(value, Mapping) and bool(value) and all(map(_is_extension_message, value.values()))
    for string in _strings(text):
        if is_extension and string.path[1:] != ("message",):
            continue
        if any(key.startswith("@") for key in string.path):
            continue  # "@key" describes a message of ARB, "@type" an object of JSON-LD
        parts = message_parts(json.loads(string.raw), embedded, reading)
        regions.append((string.start, Region(string.raw, parts, write, ".".join(string.path))))
    return SplicedText(
        with_regions(text, regions), encoding, embedded=embedded, with_language=_with_language, placeholders=(ANY,)
    )


def _is_extension_message(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("message"), str) and value.keys() <= _MESSAGE_KEYS


@dataclass(frozen=True, slots=True)
class _String:
    """A string of JSON that is a value."""

    raw: str
    start: int
    path: tuple[str, ...]  # keys, and numbers from 0 in arrays


def _strings(text: str) -> Iterator[_String]:
    """Yield the strings of valid JSON that are values."""
    path, is_key = list[str | int](), False  # the last of ``path`` is a key, or the number of an item
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == "{":
            path.append("")
            is_key = True
        elif token == "[":
            path.append(0)
        elif token in "}]":
            path.pop()
            is_key = False
        elif token == ",":
            is_key = isinstance(path[-1], str)
            if not isinstance(path[-1], str):
                path[-1] += 1
        elif token[0] == '"' and is_key:
            path[-1], is_key = json.loads(token), False
        elif token[0] == '"':
            yield _String(token, match.start(), tuple(map(str, path)))


def _with_language(text: str, language: str) -> str:
    return _LOCALE.sub(lambda match: match[1] + language.replace("-", "_") + match[2], text, count=1)


FORMATS = (Format("json", (".json", ".arb"), read, "application/json"),)
