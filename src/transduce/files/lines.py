"""Lines of text, read as a stream.

They are split on ``"\\n"`` alone: U+2028, form feeds and other Unicode separators are part of a line.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

from transduce.errors import DataError
from transduce.files.compressed import READ_ERRORS, open_binary

__all__ = ["MAX_LINE_BYTES", "TruncatedLine", "decoded_lines", "raw_lines", "read_lines"]

MAX_LINE_BYTES = 4 << 20  # bytes that are held of one line, as many as a long novel has; a sentence has some hundred
TRUNCATED_LINE_BYTES = 1000  # bytes that are kept of a line beyond that where it is not refused
SKIP_BLOCK_BYTES = 1 << 20  # bytes of its rest
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class TruncatedLine(str):
    """The beginning of a line that is longer than ``MAX_LINE_BYTES``; the rest was not held."""

    __slots__ = ()


def raw_lines(stream: IO[bytes]) -> Iterator[tuple[bytes, bool]]:
    """The lines of an open stream with their ends, and whether each is all of it.

    Of a line longer than ``MAX_LINE_BYTES`` that much is given, and the rest is read and forgotten: a small compressed
    file may hold one of any length.
    """
    while raw := stream.readline(MAX_LINE_BYTES + 1):
        is_complete = raw.endswith(b"\n") or len(raw) <= MAX_LINE_BYTES
        yield raw, is_complete
        while not is_complete:
            rest = stream.readline(SKIP_BLOCK_BYTES)
            is_complete = not rest or rest.endswith(b"\n")


def read_lines(path: Path, *, escape_invalid: bool = False) -> Iterator[str]:
    """The lines of a UTF-8 text file, without their ends, as a stream.

    A carriage return before the line end and a byte-order mark at the start of the file are dropped. Bytes that are not
    UTF-8 are an error, or with ``escape_invalid`` become lone surrogates (U+DC80 to U+DCFF), left to the caller; so is
    a line longer than ``MAX_LINE_BYTES``, or a ``TruncatedLine``.
    Raises DataError, with the line number, for such lines and for broken compression.
    """
    errors = "surrogateescape" if escape_invalid else "strict"
    with open_binary(path) as stream:
        yield from decoded_lines(stream, str(path), errors=errors)


def decoded_lines(stream: IO[bytes], name: str, *, errors: str = "strict") -> Iterator[str]:
    """The lines of an open stream, as ``read_lines`` has them; ``name`` is what messages call it."""
    n_lines = 0
    try:
        for n_lines, (raw, is_complete) in enumerate(raw_lines(stream), start=1):
            line = raw.removeprefix(BYTE_ORDER_MARK) if n_lines == 1 else raw
            if is_complete:
                yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", errors)
            elif errors == "strict":
                raise DataError(
                    f"{name}:{n_lines} is longer than {MAX_LINE_BYTES:,} bytes; a line is a sentence or some, so split it"
                )
            else:
                yield TruncatedLine(line[:TRUNCATED_LINE_BYTES].decode("utf-8", errors))
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name}:{n_lines} is not UTF-8: byte 0x{error.object[error.start]:02x} at column {error.start + 1}; "
            "convert the file to UTF-8"
        ) from error
    except READ_ERRORS as error:
        raise DataError(f"{name} cannot be read after line {n_lines}: {error}") from error
