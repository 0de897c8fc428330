"""Texts as PO files have them: in quotation marks, over lines as gettext writes them."""

from __future__ import annotations

from collections.abc import Mapping

from transduce.documents.po_reading import NAMED
from transduce.documents.wrapping import width_of, wrap
from transduce.patterns import compiled_on_use

__all__ = ["quoted_po", "width_of_lines", "with_values"]

WIDTH = 79  # of lines
UNWRAPPED = 120  # a line with more shows that a file is not wrapped
_WRITTEN = str.maketrans({"\\": "\\\\", '"': '\\"', **{character: f"\\{name}" for name, character in NAMED.items()}})


def width_of_lines(text: str) -> int | None:
    """Return the width of the lines of a PO file; None if they are not wrapped."""
    lines = text.split("\n")
    return None if any(len(line) > UNWRAPPED and line.startswith(("msg", '"')) for line in lines) else WIDTH


def quoted_po(text: str, keyword: str, *, width: int | None = WIDTH, line_end: str = "\n") -> str:
    r"""Return a text behind its keyword.

    >>> print(quoted_po('a "b"\n', "msgstr"))
    msgstr "a \"b\"\n"
    >>> print(quoted_po("one\ntwo", "msgstr"))
    msgstr ""
    "one\n"
    "two"
    """
    *lines, last = text.split("\n")
    written = [f"{line}\n".translate(_WRITTEN) for line in lines] + ([last.translate(_WRITTEN)] if last else [])
    if len(written) <= 1 and (width is None or width_of(f'{keyword} "{"".join(written)}"') <= width):
        return f'{keyword} "{"".join(written)}"'
    pieces = [piece for line in written for piece in ([line] if width is None else wrap(line, width - 2))]
    return line_end.join([f'{keyword} ""', *(f'"{piece}"' for piece in pieces)])


def with_values(header: str, values: Mapping[str, str], line_end: str) -> str:
    """Return the strings of a header, as they stand in the file, with other values; nothing else changes.

    >>> print(with_values('"Language: \\\\n"', {"Language": "de", "Plural-Forms": "nplurals=1; plural=0;"}, "\\n"))
    "Language: de\\n"
    "Plural-Forms: nplurals=1; plural=0;\\n"
    """
    for name, value in values.items():
        pattern = compiled_on_use(rf'(?i)(?:(?<=")|(?<=\\n)){name}:(?:[^"\\]|"\s*")*+\\n')  # it may go over lines
        line = f"{name}: {value.translate(_WRITTEN)}\\n"
        found = pattern.search(header)
        if found is None:
            header = f'{header}{line_end}"{line}"'
        else:
            header = header[: found.start()] + line + header[found.end() :]
    return header
