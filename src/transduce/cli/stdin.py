"""Text that a command reads: standard input, piped or typed, and files, of which ``-`` is standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

from transduce.cli.history import line_history
from transduce.cli.output import STANDARD, echo
from transduce.errors import ConfigError, DataError
from transduce.files import MAX_LINE_BYTES, READ_ERRORS, decoded_lines, open_binary, raw_lines, read_lines

if TYPE_CHECKING:
    from transduce.trees import Tree

__all__ = [
    "aligned_lines",
    "input_lines",
    "is_interactive",
    "lines_of",
    "name_of",
    "number_of_lines",
    "piped_lines",
    "plain_trees",
    "require_stdin_once",
    "typed_lines",
]  # fmt: skip

MAX_COUNTED_BYTES = 256 << 20  # larger files are not counted before they are translated


def is_interactive(path: Path | None = None) -> bool:
    """Whether a person types what is read: there is no file, and stdin is a terminal."""
    return path in (None, STANDARD) and sys.stdin.isatty()


def name_of(path: Path) -> str:
    """What messages call a file; ``-`` is stdin."""
    return "stdin" if path == STANDARD else str(path)


def require_stdin_once(paths: Mapping[str, Path | None]) -> None:
    """Raises ConfigError if several arguments or options are ``-``."""
    asked = [name for name, path in paths.items() if path == STANDARD]
    if len(asked) > 1:
        raise ConfigError(
            f"{' and '.join(asked)} cannot both be -: stdin can be read once; name a file for one of them"
        )


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a text file, or of stdin. Raises DataError for bytes that are not UTF-8."""
    return decoded_lines(sys.stdin.buffer, "stdin") if path == STANDARD else read_lines(path)


def aligned_lines(first: Path, *others: Path) -> list[list[str]]:
    """The lines of each file. Raises DataError if one has more than another."""
    text = [list(lines_of(path)) for path in (first, *others)]
    for path, lines in zip(others, text[1:], strict=True):
        if len(lines) != len(text[0]):
            raise DataError(
                f"{name_of(path)} has {len(lines):,} lines, {name_of(first)} {len(text[0]):,};"
                " parallel files must align line by line"
            )
    return text


def plain_trees(path: Path) -> Iterator[Tree | None]:
    """The trees of a file of them, or of stdin, as parsers are trained on them. Raises DataError for what is none."""
    from transduce.corpora.treebank_text import plain_trees_of, read_plain_trees

    return plain_trees_of(lines_of(path), "stdin") if path == STANDARD else read_plain_trees(path)


def piped_lines() -> Iterator[str]:
    """The lines of stdin, split at line feeds only.

    Bytes that are not UTF-8 become U+FFFD, and a line beyond ``MAX_LINE_BYTES`` loses its end, with a warning.
    """
    return _decoded(sys.stdin.buffer)


def input_lines(path: Path | None) -> Iterator[str]:
    """The lines of a file (plain, .gz or .xz), or of stdin, each of which gets an output: none is refused.

    What is not UTF-8, or too long, is dealt with as in ``piped_lines``. Raises DataError for broken compression.
    """
    if path in (None, STANDARD):
        yield from piped_lines()
        return
    assert path is not None
    n_lines = 0
    with open_binary(path) as stream:
        try:
            for line in _decoded(stream):
                n_lines += 1
                yield line
        except READ_ERRORS as error:
            raise DataError(f"{path} cannot be read after line {n_lines:,}: {error}") from error


def number_of_lines(path: Path | None) -> int | None:
    """How many lines a file has, a last one without an end, too; None for stdin, pipes, and what takes long to count.

    Raises DataError if the file cannot be opened.
    """
    if path is None or path == STANDARD or not path.is_file() or path.stat().st_size > MAX_COUNTED_BYTES:
        return None
    try:
        with open_binary(path) as stream:
            return sum(1 for _ in raw_lines(stream))
    except READ_ERRORS:  # what is wrong with it is told by its reader
        return None


def _decoded(stream: IO[bytes]) -> Iterator[str]:
    for number, (raw, is_complete) in enumerate(raw_lines(stream), start=1):
        line = raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "replace")
        line = line.removeprefix("\ufeff") if number == 1 else line
        if not is_complete:
            line = line.rstrip("\ufffd")  # half of a character
            echo(f"warning: line {number} is longer than {MAX_LINE_BYTES:,} bytes; its end was cut off")
        if "\ufffd" in line and "\ufffd".encode() not in raw:
            echo(f"warning: line {number} is not UTF-8; the bytes in question are replaced")
        yield line


def typed_lines(prompt: str, *, history: str) -> Iterator[str]:
    """Lines from a person at a terminal, until end of file; ``history`` names that of earlier sittings."""
    echo("type a sentence and press Enter; Ctrl-D ends")
    is_edited = sys.stdout.isatty()  # else the line editor is not at work, and stdout may be a file
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
