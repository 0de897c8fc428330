"""Recognise files that are no text corpora: what is no text at all, and markup, JSON and CSV."""

from __future__ import annotations

import json
import re
from pathlib import Path

from transduce.errors import DataError
from transduce.files import READ_ERRORS, open_binary
from transduce.files.foreign import foreign_beginning

__all__ = ["foreign_format"]

SAMPLED_BYTES = 1 << 16
SAMPLED_LINES = 50

_ONE_FILE_A_LANGUAGE = "write each language to its own file, one sentence a line"
_SAVE_AS_TEXT = "save it as plain text in UTF-8, one sentence a line"
_SAVE_AS_COLUMNS = "save it as tab-separated text in UTF-8 with a name ending in .tsv: source TAB target"

_BY_MARKUP = (
    (re.compile(r"<(?:src|ref|tst)set\b", re.I), "is SGML of a test set; write the text of each <seg> on one line"),
    (re.compile(r"<!doctype html|<html\b", re.I), f"is HTML; {_SAVE_AS_TEXT}"),
    (re.compile(r"<\?xml\b"), f"is XML; {_ONE_FILE_A_LANGUAGE}"),
)


def foreign_format(path: Path) -> str | None:
    """Return a message about a file that is not lines of text ("is a PDF; ..."); None for text or if unreadable."""
    try:
        with open_binary(path) as stream:
            sample = stream.read(SAMPLED_BYTES)
    except (DataError, *READ_ERRORS):
        return None  # the reader of the file reports this
    reason = foreign_beginning(sample, path.name) or _structured_text(sample, path)
    return reason or _old_line_ends(sample)


def _structured_text(sample: bytes, path: Path) -> str | None:
    """Recognise structured text that may be translated line by line, but is no corpus: markup, JSON, CSV."""
    text = sample.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    start = text.lstrip()[:2000]
    if start.startswith("<") and re.match(r"<[?!]|<(?:srcset|refset|tstset|html)\b", start, re.I):
        return next((what for pattern, what in _BY_MARKUP if pattern.search(start)), None)
    lines = [line for line in text.splitlines()[:SAMPLED_LINES] if line.strip()]
    if _is_json(text, lines):
        return "is JSON; write its two texts to a .tsv file: source TAB target, one pair a line"
    if ".csv" in path.suffixes[-2:] and _is_csv(lines):
        return f"is CSV; {_SAVE_AS_COLUMNS}"
    return None


def _old_line_ends(sample: bytes) -> str | None:
    """Recognise lines that end in a carriage return alone: more of them than of line feeds, and at least two."""
    n_returns = len(re.findall(rb"\r(?!\n)", sample.rstrip(b"\r")))
    if n_returns < 2 or n_returns <= sample.count(b"\n"):
        return None
    return (
        "ends its lines in carriage returns (CR), so that they are one; convert it, as in: tr '\\r' '\\n' < OLD > NEW"
    )


def _is_json(text: str, lines: list[str]) -> bool:
    """Whether the text is one JSON value over several lines, or JSON Lines."""
    if not lines or lines[0].lstrip()[:1] not in "[{":
        return False
    if re.match(r'\s*(?:\[\s*)?\{\s*"[^"\n]*"\s*:|\s*\[\s*\[\s*"', text):
        return True
    try:
        first = json.loads(lines[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(first, list) and len(first) > 1 and all(isinstance(each, str) for each in first)


def _is_csv(lines: list[str]) -> bool:
    """Whether most lines have a comma or semicolon and no tab; a .csv may also have tabs, or one column."""
    return 2 * sum("\t" not in line and ("," in line or ";" in line) for line in lines) > len(lines)
