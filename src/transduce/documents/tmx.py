"""TMX: translation memories as tools exchange them. They are read as pairs, in one pass, and written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import IO
from xml.parsers import expat

from transduce.config import base_language, canonical_code
from transduce.documents.elements import local_name
from transduce.documents.encodings import FORBIDDEN_IN_XML
from transduce.errors import DataError
from transduce.text.markup_reading import escaped

__all__ = ["read_tmx", "tmx_languages", "tmx_lines"]

READ_AT_ONCE = 1 << 20  # bytes
N_LOOKED_AT = 1000  # units, for their languages
_CODES = frozenset(("bpt", "ept", "ph", "it", "ut"))  # what is in them is no text
CONTEXT = "x-context"  # the type of the property with the context of a unit
_KEPT = (CONTEXT, "prev", "next")  # the latter as OmegaT has them: the sources before and after


def read_tmx(stream: IO[bytes], src: str, tgt: str) -> Iterator[tuple[str, str, str, str, str] | None]:
    """Yield source, target, context, and the sources before and after of each unit; None without both languages.

    What a unit does not say is "".

    A language is matched exactly, else without its region. Raises DataError for what is no TMX.
    """
    for unit in _units(_Reader(), stream):
        yield _chosen(unit, src, tgt)


def tmx_languages(stream: IO[bytes]) -> list[str]:
    """Return the languages of the first units, that of the sources first. Raises DataError for what is no TMX."""
    reader, found = _Reader(), list[str]()
    for unit in islice(_units(reader, stream), N_LOOKED_AT):
        found += [language for language, _ in unit.texts]
    codes = list(dict.fromkeys(canonical_code(code) or code.lower() for code in found))
    source = canonical_code(reader.src_language)
    return sorted(codes, key=lambda code: code != source)


def _units(reader: _Reader, stream: IO[bytes]) -> Iterator[_Unit]:
    try:
        while data := stream.read(READ_AT_ONCE):
            reader.parser.Parse(data, False)
            yield from reader.taken()
        reader.parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise DataError(f"line {error.lineno:,} is no XML: {expat.ErrorString(error.code)}") from None
    except (LookupError, ValueError) as error:
        raise DataError(f"it cannot be read as XML: {error}") from None
    yield from reader.taken()


@dataclass(slots=True)
class _Unit:
    texts: list[tuple[str, str]] = field(default_factory=list)  # language, text
    properties: dict[str, str] = field(default_factory=dict)


class _Reader:
    """Collects the units of a memory."""

    def __init__(self) -> None:
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._entity
        self.src_language = ""  # of the whole memory, where its header names one
        self._units = list[_Unit]()
        self._unit = _Unit()
        self._language = ""
        self._pieces: list[str] | None = None  # of the open text
        self._n_codes = 0  # open ones
        self._has_root, self._property = False, ""  # the open one

    def taken(self) -> list[_Unit]:
        """Return the units that were read since the last time."""
        units, self._units = self._units, []
        return units

    def _entity(self, *_: object) -> None:
        raise DataError("it declares entities of its own; save it with these replaced by their texts")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        kind = local_name(name)
        if not self._has_root and kind != "tmx":
            raise DataError(f"its root is <{name}>, not <tmx>")
        self._has_root = True
        if kind == "tu":
            self._unit = _Unit()
        elif kind == "header":
            self.src_language = attributes.get("srclang", "")
        elif kind == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang", "")
        elif kind == "seg":
            self._pieces, self._n_codes = [], 0
        elif kind == "prop" and attributes.get("type") in _KEPT:
            self._pieces, self._n_codes, self._property = [], 0, attributes["type"]
        elif kind in _CODES:
            self._n_codes += 1

    def _end(self, name: str) -> None:
        kind = local_name(name)
        if kind == "tu":
            self._units.append(self._unit)
        elif kind in _CODES:
            self._n_codes -= 1
        elif kind == "seg" and self._pieces is not None:
            self._unit.texts.append((self._language, "".join(self._pieces)))
            self._pieces = None
        elif kind == "prop" and self._property and self._pieces is not None:
            self._unit.properties[self._property] = "".join(self._pieces)
            self._pieces, self._property = None, ""

    def _characters(self, text: str) -> None:
        if self._pieces is not None and not self._n_codes:
            self._pieces.append(text)


def _chosen(unit: _Unit, src: str, tgt: str) -> tuple[str, str, str, str, str] | None:
    source, target = (_in_language(unit, language) for language in (src, tgt))
    if source is None or target is None:
        return None
    context, before, after = (unit.properties.get(each, "") for each in _KEPT)
    return source, target, context, before, after


def _in_language(unit: _Unit, language: str) -> str | None:
    texts = [(canonical_code(code) or code.lower(), text) for code, text in unit.texts]
    same = [text for code, text in texts if code == language]
    return next(iter([*same, *(text for code, text in texts if base_language(code) == base_language(language))]), None)


def tmx_lines(pairs: Iterable[tuple[str, str, str]], src: str, tgt: str) -> Iterator[str]:
    """Yield the lines of a memory with pairs of source, target and context.

    >>> [*_, unit, _, _] = tmx_lines([("1 < 2", "eins", "")], "en", "de")
    >>> print(unit)
    <tu><tuv xml:lang="en"><seg>1 &lt; 2</seg></tuv><tuv xml:lang="de"><seg>eins</seg></tuv></tu>
    """
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<tmx version="1.4">'
    yield (
        '<header creationtool="transduce" creationtoolversion="1" segtype="sentence" o-tmf="transduce" adminlang="en" '
        f'srclang="{src}" datatype="plaintext"/>'
    )
    yield "<body>"
    for source, target, context in pairs:
        shown = f'<prop type="{CONTEXT}">{_written(context)}</prop>' if context else ""
        yield (
            f'<tu>{shown}<tuv xml:lang="{src}"><seg>{_written(source)}</seg></tuv>'
            f'<tuv xml:lang="{tgt}"><seg>{_written(target)}</seg></tuv></tu>'
        )
    yield "</body>"
    yield "</tmx>"


def _written(text: str) -> str:
    return escaped(FORBIDDEN_IN_XML.sub("", text))
