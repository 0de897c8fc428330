"""Recognise files that are not lines of text (PDF, TMX, UTF-16, archives, ...) by their first bytes."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

from transduce.errors import DataError
from transduce.files import READ_ERRORS, open_binary

__all__ = ["foreign_format"]

SAMPLED_BYTES = 1 << 16
MIN_BYTES = 20  # to recognise UTF-16 without a byte-order mark
SAMPLED_LINES = 50

_ONE_FILE_A_LANGUAGE = "write each language to its own file, one sentence a line"
_SAVE_AS_TEXT = "save it as plain text in UTF-8, one sentence a line"
_SAVE_AS_COLUMNS = "save it as tab-separated text in UTF-8 with a name ending in .tsv: source TAB target"
_EXTRACT = "unpack it and give the files in it"

_BY_FIRST_BYTES = (
    (b"%PDF-", f"is a PDF; {_SAVE_AS_TEXT}"),
    (b"\xd0\xcf\x11\xe0", f"is a document of an old office program (.doc, .xls); {_SAVE_AS_TEXT}"),
    (b"{\\rtf", f"is rich text (RTF); {_SAVE_AS_TEXT}"),
    (b"BZh", "is compressed with bzip2; decompress it, or recompress it as .gz or .xz"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd; decompress it, or recompress it as .gz or .xz"),
    (b"7z\xbc\xaf", f"is a 7z archive; {_EXTRACT}"),
    (b"Rar!", f"is a RAR archive; {_EXTRACT}"),
    (b"SQLite format 3", "is a SQLite database; export its text to a .tsv file: source TAB target"),
    (b"PAR1", "is Parquet; export its two text columns to a .tsv file: source TAB target"),
)
_IN_ARCHIVES = (
    ("word/", f"is a Word document (.docx); {_SAVE_AS_TEXT}"),
    ("xl/", f"is a spreadsheet (.xlsx); {_SAVE_AS_COLUMNS}"),
    ("ppt/", f"is a presentation (.pptx); {_SAVE_AS_TEXT}"),
    ("content.xml", f"is an OpenDocument file (.odt, .ods); {_SAVE_AS_TEXT}"),
)
_BY_MARKUP = (
    (
        re.compile(r"<tmx\b"),
        "is TMX, a translation memory; each <tu> is a pair: write the <seg> of each language to its own file, one"
        " segment a line",
    ),
    (
        re.compile(r"<xliff\b"),
        "is XLIFF; write its <source> elements to one file and the <target> elements to another, one a line",
    ),
    (re.compile(r"<TS\b[^>]*\bversion="), f"is a Qt translation file (.ts); {_ONE_FILE_A_LANGUAGE}"),
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
    packed = _compressed(sample, path) or _archive(sample, path)
    known = _utf16_or_32(sample) or packed or _binary(sample) or _structured_text(sample, path)
    return known or _old_line_ends(sample)


def _utf16_or_32(sample: bytes) -> str | None:
    """Recognise UTF-16 or UTF-32, with or without a byte-order mark."""
    if sample.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "is UTF-32; convert it, as in: iconv -f UTF-32 -t UTF-8"
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "is UTF-16; convert it, as in: iconv -f UTF-16 -t UTF-8"
    if len(sample) < MIN_BYTES:
        return None
    for name, letters, zeros in (("LE", sample[::2], sample[1::2]), ("BE", sample[1::2], sample[::2])):
        if zeros.count(0) > 0.7 * len(zeros) and letters.count(0) < 0.02 * len(letters):
            return f"is UTF-16 without a byte-order mark; convert it, as in: iconv -f UTF-16{name} -t UTF-8"
    return None


def _compressed(sample: bytes, path: Path) -> str | None:
    for magic, suffix in ((b"\x1f\x8b", ".gz"), (b"\xfd7zXZ\0", ".xz")):
        if sample.startswith(magic):
            if path.suffix in (".gz", ".xz"):
                return "is compressed twice; decompress it once"
            return f"is compressed, but its name does not end in {suffix}; rename it"
    return None


def _archive(sample: bytes, path: Path) -> str | None:
    if not sample.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "is a tar archive; " + _EXTRACT if sample[257:262] == b"ustar" else None
    try:  # a zip has its directory at the end, so the sample does not suffice
        with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
            names = archive.namelist()
    except (OSError, EOFError, ValueError, zipfile.BadZipFile):
        names = []
    known = (what for prefix, what in _IN_ARCHIVES if any(name.startswith(prefix) for name in names))
    return next(known, f"is a zip archive; {_EXTRACT}")


def _binary(sample: bytes) -> str | None:
    return next((what for magic, what in _BY_FIRST_BYTES if sample.startswith(magic)), None)


def _structured_text(sample: bytes, path: Path) -> str | None:
    """Recognise structured text: markup, PO, JSON, CSV."""
    text = sample.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    start = text.lstrip()[:2000]
    if start.startswith("<") and re.match(r"<[?!]|<(?:tmx|xliff|TS|srcset|refset|tstset|html)\b", start, re.I):
        return next((what for pattern, what in _BY_MARKUP if pattern.search(start)), None)
    if re.search(r'^msgid "', text, re.M) and re.search(r'^msgstr(?:\[0\])? "', text, re.M):
        return "is a PO file of gettext; write each msgid to one file and its msgstr to another, one a line"
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
