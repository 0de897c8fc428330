"""Lines of text, read as a stream.

They are split on ``"\\n"`` alone: U+2028, form feeds and other Unicode separators are part of a line.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

from transduce.errors import DataError
from transduce.files.compressed import BROKEN, open_binary

__all__ = ["LONGEST_LINE", "CutLine", "decoded_lines", "raw_lines", "read_lines"]

LONGEST_LINE = 4 << 20  # bytes that are held of one line, as many as a long novel has; a sentence has some hundred
BEGINNING = 1000  # bytes that are kept of a line beyond that where it is not refused
SKIPPED_AT_A_TIME = 1 << 20  # bytes of its rest
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class CutLine(str):
    """The beginning of a line that is longer than ``LONGEST_LINE``; the rest was not held."""

    __slots__ = ()


def raw_lines(stream: IO[bytes]) -> Iterator[tuple[bytes, bool]]:
    """The lines of an open stream with their ends, and whether each is all of it.

    Of a line longer than ``LONGEST_LINE`` that much is given, and the rest is read and forgotten: a small compressed
    file may hold one of any length.
    """
    while raw := stream.readline(LONGEST_LINE + 1):
        is_whole = raw.endswith(b"\n") or len(raw) <= LONGEST_LINE
        yield raw, is_whole
        while not is_whole:
            rest = stream.readline(SKIPPED_AT_A_TIME)
            is_whole = not rest or rest.endswith(b"\n")


def read_lines(path: Path, *, escape_invalid: bool = False) -> Iterator[str]:
    """The lines of a UTF-8 text file, without their ends, as a stream.

    A carriage return before the line end and a byte-order mark at the start of the file are dropped. Bytes that are not
    UTF-8 are an error, or with ``escape_invalid`` become lone surrogates (U+DC80 to U+DCFF), left to the caller; so is
    a line longer than ``LONGEST_LINE``, or a ``CutLine``.
    Raises DataError, with the line number, for such lines and for broken compression.
    """
    errors = "surrogateescape" if escape_invalid else "strict"
    with open_binary(path) as stream:
        yield from decoded_lines(stream, str(path), errors=errors)


def decoded_lines(stream: IO[bytes], name: str, *, errors: str = "strict") -> Iterator[str]:
    """The lines of an open stream, as ``read_lines`` has them; ``name`` is what messages call it."""
    n_lines = 0
    try:
        for n_lines, (raw, is_whole) in enumerate(raw_lines(stream), start=1):
            line = raw.removeprefix(BYTE_ORDER_MARK) if n_lines == 1 else raw
            if is_whole:
                yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", errors)
            elif errors == "strict":
                raise DataError(
                    f"{name}:{n_lines} is longer than {LONGEST_LINE:,} bytes; a line is a sentence or some, so split it"
                )
            else:
                yield CutLine(line[:BEGINNING].decode("utf-8", errors))
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name}:{n_lines} is not UTF-8: byte 0x{error.object[error.start]:02x} at column {error.start + 1}; "
            "convert the file to UTF-8"
        ) from error
    except BROKEN as error:
        raise DataError(f"{name} cannot be read after line {n_lines}: {error}") from error
