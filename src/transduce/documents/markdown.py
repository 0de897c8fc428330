"""Markdown: the texts of paragraphs, headings, items and cells; code, targets, definitions and front matter stay.

CommonMark with GitHub's tables, struck text, notes and task lists. A paragraph that is wrapped over lines is one text
and its translation one line. Blocks of HTML are read as HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from transduce.documents.document import Document, Format, Reading
from transduce.documents.encodings import decoded
from transduce.documents.html import html_parts
from transduce.documents.markdown_inline import Inline, Located, parser
from transduce.documents.spliced import Embedded, Part, SplicedText
from transduce.errors import DataError
from transduce.patterns import compiled_on_use

if TYPE_CHECKING:
    from markdown_it.token import Token as ParsedToken

__all__ = ["FORMATS"]

_LINE_END = compiled_on_use(r"\r\n|[\r\n]")
_FRONT_MATTER = compiled_on_use(
    r"\ufeff?(---|\+\+\+)[ \t]*(?:\r\n|[\r\n])(?=\s*[\"'\w.-]+[ \t]*[:=]|\s*#)"
    r".*?(?:\r\n|[\r\n])(?:\1|\.\.\.)[ \t]*(?=[\r\n]|\Z)",
    re.DOTALL,
)
_PIPE = compiled_on_use(r"(?<!\\)\|")
_PREFIX = compiled_on_use(r"[\s>]*(?:(?:[-+*]|\d{1,9}[.)])[\s>]+)*")
_HEADING = compiled_on_use(r"[^#]*#{1,6}")
_BLOCK_START = compiled_on_use(
    r"(?:#{1,6}(?=\s|\Z)|[-+](?=\s|\Z)|>|=+\s*\Z|-{2,}|~{3}|:(?=\s))|(\d{1,9})(?=[.)](?:\s|\Z))"
)


def read(data: bytes, reading: Reading) -> Document:
    """Read a Markdown document in UTF-8, or UTF-16 with a byte order mark."""
    text, encoding = decoded(data)
    embedded = Embedded(text)
    blocks = _Blocks(text, embedded, reading)
    parts, position = list[Part](), 0
    for start, end, pieces in blocks.found():
        if start < position:
            continue
        parts += [text[position:start], *pieces]
        position = end
    parts.append(text[position:])
    return SplicedText(parts, encoding, embedded=embedded)


class _Blocks:
    """The blocks of a document that have text."""

    def __init__(self, text: str, embedded: Embedded, reading: Reading) -> None:
        self._text, self._embedded, self._is_protected = text, embedded, reading.is_protected
        self._starts, self._ends = [0], list[int]()  # of the lines
        for match in _LINE_END.finditer(text):
            self._ends.append(match.start())
            self._starts.append(match.end())
        self._ends.append(len(text))
        if text.startswith("\ufeff"):
            self._starts[0] = 1

    def found(self) -> Iterator[tuple[int, int, Sequence[Part]]]:
        """Yield the start and end of each text, with its parts."""
        front_matter = _FRONT_MATTER.match(self._text)
        n_kept = front_matter.end() if front_matter else 0
        lines = [
            self._text[start:end] if start >= n_kept else ""
            for start, end in zip(self._starts, self._ends, strict=True)
        ]
        markdown, environment = parser(), dict[str, Any]()
        try:
            tokens = markdown.parse("\n".join(lines), environment)
        except RecursionError:
            raise DataError("it is nested too deeply to be a document; at most some hundred levels are read") from None
        self._inline = Inline(self._text, self._embedded, markdown, environment, is_protected=self._is_protected)
        yield from self._texts(tokens)

    def _texts(self, tokens: Sequence[ParsedToken]) -> Iterator[tuple[int, int, Sequence[Part]]]:
        cells, n_cells, previous = list[tuple[int, int]](), 0, ""
        for token in tokens:
            if token.type == "tr_open" and token.map:
                cells, n_cells = list(self._cells(token.map[0])), 0
            elif token.type in ("th_open", "td_open"):
                n_cells += 1
            elif token.type == "html_block" and token.map:
                yield from self._html(token)
            elif token.type == "inline" and token.content and token.children is not None and token.map:
                is_cell = previous in ("th_open", "td_open")
                if is_cell:
                    located = self._cell(token.content, cells, n_cells - 1)
                else:
                    located = self._lines(
                        token, is_heading=previous == "heading_open" and token.map[1] - token.map[0] == 1
                    )
                if located is not None:
                    write = _at_line_start if previous == "paragraph_open" else str
                    pieces = list(self._inline.pieces(located, token.children, write, is_cell=is_cell))
                    yield located.offsets[0], located.offsets[-1], pieces
            previous = token.type

    def _lines(self, token: ParsedToken, *, is_heading: bool) -> Located | None:
        """Return the lines of a paragraph or heading without their prefixes."""
        assert token.map
        offsets, end = list[int](), 0
        for number, line in enumerate(token.content.split("\n"), token.map[0]):
            start, end = self._starts[number], self._ends[number]
            raw, words = self._text[start:end], line.strip()
            marker = _HEADING.match(raw) if is_heading else None
            place = raw.find(words, marker.end()) if marker else len(raw.rstrip()) - len(words)
            if not raw.startswith(
                words.replace("\ufffd", raw[place : place + 1] if len(words) == 1 else "\ufffd"), place
            ):
                return None
            first = start + place - (len(line) - len(line.lstrip()))
            offsets += (max(start, min(end, first + index)) for index in range(len(line)))
            offsets.append(min(end, first + len(line)))
        return Located(token.content, offsets)

    def _cells(self, line: int) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each cell of a row of a table."""
        start, end = self._starts[line], self._ends[line]
        bounds = [start, *(match.end() for match in _PIPE.finditer(self._text, start, end)), end + 1]
        pieces = [(low, high - 1) for low, high in pairwise(bounds)]
        if _PREFIX.fullmatch(self._text, *pieces[0]) and len(pieces) > 1:
            pieces.pop(0)
        yield from pieces

    def _cell(self, content: str, cells: Sequence[tuple[int, int]], index: int) -> Located | None:
        if index >= len(cells):
            return None
        start, end = cells[index]
        end = start + len(self._text[start:end].rstrip())
        offsets, position = [end], end
        for character in reversed(content):
            position -= 1
            if position < start or self._text[position] != character:
                return None
            if character == "|" and self._text[position - 1] == "\\":
                position -= 1
            offsets.append(position)
        return Located(content, offsets[::-1])

    def _html(self, token: ParsedToken) -> Iterator[tuple[int, int, Sequence[Part]]]:
        assert token.map
        start, end = self._starts[token.map[0]], self._ends[token.map[1] - 1]
        block = self._text[start:end]
        if block.split() == token.content.split():  # else lines have the marks of a quotation
            yield start, end, html_parts(block, self._embedded, is_protected=self._is_protected)


def _at_line_start(text: str) -> str:
    """Return a line that begins no block by its first characters."""
    match = _BLOCK_START.match(text)
    if match is None:
        return text
    return f"{match[1]}\\{text[match.end() :]}" if match[1] else "\\" + text


FORMATS = (Format("md", (".md", ".markdown", ".mdown"), read, "text/markdown"),)
