"""The entries of PO files, the messages of gettext, with the places of all that a translation changes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from io import StringIO

from transduce.documents.encodings import decoded
from transduce.errors import DataError, quoted
from transduce.patterns import compiled_on_use

__all__ = ["NAMED", "Entry", "Quoted", "decoded_po", "header_values", "read_entries"]

_STRING = r'"(?:[^"\\]|\\.)*+"'
_KEYWORD = compiled_on_use(rf"(msgctxt|msgid_plural|msgid|msgstr(?:\s*\[\s*(\d{{1,3}})\s*\])?)\s*((?:{_STRING}\s*)+)")
_MORE = compiled_on_use(rf"((?:{_STRING}\s*)+)")
_EACH = compiled_on_use(_STRING)
_ESCAPE = compiled_on_use(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))", re.S)
NAMED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_CHARSET = re.compile(rb"charset=\s*([\w.:-]+)")
CHARSET_IN = 50_000  # bytes: where the header is


@dataclass(slots=True)
class Quoted:
    """A text in quotation marks, over one or several lines."""

    start: int  # characters in the file
    end: int
    text: str

    @property
    def span(self) -> slice:
        """Its place in the file."""
        return slice(self.start, self.end)


@dataclass(slots=True)
class Entry:
    """A message with its translations."""

    line: int
    flags_before: int  # where a line of flags belongs: before its previous texts
    flag_lines: dict[int, list[str]] = field(default_factory=dict)  # by the place behind "#,"
    context: Quoted | None = None
    message: Quoted | None = None
    plural: Quoted | None = None
    forms_at: int = 0  # the first ``msgstr``
    forms: dict[int, Quoted] = field(default_factory=dict)

    @property
    def flags(self) -> list[str]:
        """Its flags: ``fuzzy``, ``c-format``."""
        return [flag for flags in self.flag_lines.values() for flag in flags]

    @property
    def is_fuzzy(self) -> bool:
        """Whether its translation is unsure."""
        return "fuzzy" in self.flags

    @property
    def source(self) -> str:
        """The text of the message, in the singular."""
        return "" if self.message is None else self.message.text

    @property
    def is_header(self) -> bool:
        """Whether it describes the file."""
        return self.source == "" and self.context is None

    @property
    def end(self) -> int:
        """The end of its last text."""
        return max(form.end for form in self.forms.values())


def header_values(header: str) -> dict[str, str]:
    """Return what the header of a file says, by names in small letters."""
    lines = (line.partition(":") for line in header.split("\n"))
    return {name.strip().lower(): value.strip() for name, colon, value in lines if colon}


def decoded_po(data: bytes) -> tuple[str, str]:
    """Return the text of a PO file and its encoding, which its header names; a template is UTF-8."""
    found = _CHARSET.search(data, 0, CHARSET_IN)
    name = found[1].decode() if found else "utf-8"
    return decoded(data, None if name == "CHARSET" else name)


def read_entries(text: str) -> list[Entry]:
    """Return the entries of a PO file that are in use. Raises DataError, with its line, for what is none."""
    entries = list[Entry]()
    entry: Entry | None = None
    last: Quoted | None = None
    end = 0
    for number, whole_line in enumerate(StringIO(text, newline="\n"), start=1):
        line = whole_line.lstrip("\ufeff \t")
        end += len(whole_line)
        start = end - len(line)
        if line.startswith("#~") or not line.strip():
            entry = None if line.startswith("#~") else entry
            last = None
            continue
        keyword = None if line.startswith("#") else _KEYWORD.fullmatch(line)
        if keyword is None and not line.startswith("#"):
            if last is None or not (more := _MORE.fullmatch(line)):
                raise DataError(f'line {number:,} is none of a PO file, such as msgid "...": {quoted(line.strip())}')
            added = _quoted(more[1], start)
            last.text, last.end = last.text + added.text, added.end
            continue
        if entry is None or (entry.forms and not line.startswith("msgstr[")):
            entry = Entry(number, flags_before=start)
            entries.append(entry)
        last = None if keyword is None else _quoted(keyword[3], start + keyword.start(3))
        if keyword is None:
            _read_comment(entry, line, start)
        else:
            assert last is not None
            _set(entry, keyword, last, start, number)
    whole = [entry for entry in entries if entry.message is not None]
    for entry in whole:
        if not entry.forms:
            raise DataError(f"line {entry.line:,}: the message has no msgstr")
    return whole


def _read_comment(entry: Entry, line: str, start: int) -> None:
    """Take the flags of a comment; what a translator wrote stays as it is."""
    if line.startswith("#,"):
        entry.flag_lines[start + 2] = [flag.strip() for flag in line[2:].split(",")]
    if not line.startswith("#|"):
        entry.flags_before = start + len(line)


def _set(entry: Entry, keyword: re.Match[str], text: Quoted, start: int, number: int) -> None:
    name = keyword[1]
    if name.startswith("msgstr"):
        if entry.message is None or (form := int(keyword[2] or 0)) in entry.forms:
            raise DataError(f"line {number:,}: {name} has no msgid of its own")
        entry.forms_at = entry.forms_at or start
        entry.forms[form] = text
        return
    attribute = {"msgctxt": "context", "msgid": "message", "msgid_plural": "plural"}[name]
    if getattr(entry, attribute) is not None:
        raise DataError(f"line {number:,}: a second {name}, without a msgstr between them")
    if name == "msgid":
        entry.line = number
    setattr(entry, attribute, text)


def _quoted(written: str, start: int) -> Quoted:
    """Return the text of strings in quotation marks."""
    text = "".join(_unescaped(match[0][1:-1]) for match in _EACH.finditer(written))
    return Quoted(start, start + len(written.rstrip()), text)


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text

    def character(match: re.Match[str]) -> str:
        if match[1] or match[2]:
            return chr(int(match[1], 16) if match[1] else int(match[2], 8))
        return NAMED.get(match[3], match[3])

    return _ESCAPE.sub(character, text)
