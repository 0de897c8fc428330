"""Text input of commands: files, and standard input (``-``), piped or typed."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.cli.output import STANDARD, echo
from transduce.errors import ConfigError, DataError
from transduce.files import (
    MAX_LINE_BYTES,
    READ_ERRORS,
    LineFault,
    decoded_lines,
    open_binary,
    raw_lines,
    read_lines,
    repaired_lines,
)

if TYPE_CHECKING:
    from transduce.trees import Tree

__all__ = [
    "aligned_lines", "input_lines", "is_interactive", "lines_of", "name_of", "number_of_lines",
    "piped_lines", "plain_trees", "require_stdin_once", "typed_lines",
]  # fmt: skip

MAX_COUNTED_BYTES = 256 << 20  # larger files are not counted before they are translated


def is_interactive(path: Path | None = None) -> bool:
    """Return whether input is typed: no file is given, and stdin is a terminal."""
    return path in (None, STANDARD) and sys.stdin.isatty()


def name_of(path: Path) -> str:
    """Return the name of a file for messages; ``-`` is stdin."""
    return "stdin" if path == STANDARD else str(path)


def require_stdin_once(paths: Mapping[str, Path | None]) -> None:
    """Raise ConfigError if several arguments or options are ``-``."""
    names = [name for name, path in paths.items() if path == STANDARD]
    if len(names) > 1:
        raise ConfigError(
            f"{' and '.join(names)} cannot both be -: stdin can be read once; name a file for one of them"
        )


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a text file or of stdin. Raises DataError for invalid UTF-8."""
    return decoded_lines(sys.stdin.buffer, "stdin") if path == STANDARD else read_lines(path)


def aligned_lines(first: Path, *others: Path) -> list[list[str]]:
    """Return the lines of each file. Raises DataError if their numbers differ, with a hint where that begins."""
    from transduce.corpora import read_aligned_files
    from transduce.corpora.formats import foreign_format

    text = [list(lines_of(path)) for path in (first, *others)]
    for path, lines in zip((first, *others), text, strict=True):
        if len(lines) == 1 and "\r" in lines[0] and path.is_file() and (reason := foreign_format(path)):
            raise DataError(f"{path} {reason}")
    for path, lines in zip(others, text[1:], strict=True):
        if len(lines) == len(text[0]):
            continue
        if first.is_file() and path.is_file():  # a pipe cannot be read again
            deque(read_aligned_files(first, path), maxlen=0)  # raises
        raise DataError(
            f"{name_of(path)} has {len(lines):,} lines, {name_of(first)} {len(text[0]):,}; parallel files must align "
            "line by line"
        )
    return text


def plain_trees(path: Path) -> Iterator[Tree | None]:
    """Yield the normalised trees of a file or of stdin, as used in training. Raises DataError for a malformed tree."""
    from transduce.corpora.treebank_text import plain_trees_of

    return plain_trees_of(lines_of(path), name_of(path))


def piped_lines() -> Iterator[str]:
    """Yield the lines of stdin, split at line feeds only.

    Invalid UTF-8 becomes U+FFFD, and a line is truncated to ``MAX_LINE_BYTES``, each with a warning. Raises DataError
    for what is no text, such as an office document.
    """
    return repaired_lines(sys.stdin.buffer, "stdin", _warn)


def input_lines(path: Path | None) -> Iterator[str]:
    """Yield the lines of a file (plain, .gz or .xz) or of stdin; every line gets an output, so none is rejected.

    Faults are handled as in ``piped_lines``. Raises DataError also for a damaged compressed file.
    """
    if path in (None, STANDARD):
        yield from piped_lines()
        return
    assert path is not None
    with open_binary(path) as stream:
        yield from repaired_lines(stream, str(path), _warn)


def number_of_lines(path: Path | None) -> int | None:
    """Return the number of lines of a file; None for stdin, pipes and files too large to count.

    Raises DataError if the file cannot be opened.
    """
    if path is None or path == STANDARD or not path.is_file() or path.stat().st_size > MAX_COUNTED_BYTES:
        return None
    try:
        with open_binary(path) as stream:
            return sum(1 for _ in raw_lines(stream))
    except READ_ERRORS:  # reported when the file is read
        return None


def _warn(number: int, fault: LineFault) -> None:
    message = {
        "cut": f"is longer than {MAX_LINE_BYTES:,} bytes; its end was cut off",
        "not UTF-8": "is not UTF-8; the invalid bytes are replaced",
    }[fault]
    echo(f"warning: line {number} {message}")


def typed_lines(prompt: str, *, history: str) -> Iterator[str]:
    """Yield lines typed at a terminal until end of file, with the ``history`` of that name."""
    echo("type a sentence and press Enter; Ctrl-D ends")
    is_edited = sys.stdout.isatty()  # else readline is inactive, and stdout may be a file
    from transduce.cli.history import line_history

    with line_history(history):
        while True:
            try:
                if is_edited:
                    yield input(f"{prompt}> ")
                else:
                    print(f"{prompt}> ", end="", file=sys.stderr, flush=True)
                    yield input()
            except EOFError:
                echo("")
                return
