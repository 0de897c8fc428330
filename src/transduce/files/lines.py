"""Lines of text, read as a stream.

Lines end at ``"\\n"`` only: U+2028, form feeds and other Unicode separators are part of a line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Literal

from transduce.errors import DataError
from transduce.files.compressed import READ_ERRORS, open_binary
from transduce.files.foreign import require_text_stream

__all__ = [
    "MAX_LINE_BYTES", "LineFault", "TruncatedLine", "decoded_lines", "raw_lines", "read_lines", "repaired_lines",
]  # fmt: skip

MAX_LINE_BYTES = 4 << 20  # the length of a long novel; a sentence has a few hundred bytes
TRUNCATED_LINE_BYTES = 1000  # kept of a longer line where such a line is not an error
SKIP_BLOCK_BYTES = 1 << 20  # read at a time when skipping the rest of a line
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

LineFault = Literal["cut", "not UTF-8"]  # longer than ``MAX_LINE_BYTES``; with bytes that were replaced


class TruncatedLine(str):
    """The beginning of a line that is longer than ``MAX_LINE_BYTES``."""

    __slots__ = ()


def raw_lines(stream: IO[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield each line of an open stream with its line end, and whether it is complete.

    A line is cut after ``MAX_LINE_BYTES`` and its rest skipped: a small compressed file may hold a huge line.
    """
    while raw := stream.readline(MAX_LINE_BYTES + 1):
        is_complete = raw.endswith(b"\n") or len(raw) <= MAX_LINE_BYTES
        yield raw, is_complete
        while not is_complete:
            rest = stream.readline(SKIP_BLOCK_BYTES)
            is_complete = not rest or rest.endswith(b"\n")


def read_lines(path: Path, *, escape_invalid: bool = False) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file without their line ends.

    A carriage return before the line end and a byte-order mark at the start of the file are dropped. With
    ``escape_invalid``, invalid UTF-8 becomes lone surrogates (U+DC80 to U+DCFF), and a line longer than
    ``MAX_LINE_BYTES`` becomes a ``TruncatedLine``; without it, both raise.
    Raises DataError, with the line number, for such lines and for damaged compressed files, and for files that are no
    lines of text, such as office documents.
    """
    errors = "surrogateescape" if escape_invalid else "strict"
    with open_binary(path) as stream:
        yield from decoded_lines(stream, str(path), errors=errors)


def decoded_lines(stream: IO[bytes], name: str, *, errors: str = "strict") -> Iterator[str]:
    """Yield the lines of an open stream, as ``read_lines`` does; messages call it ``name``."""
    n_lines = 0
    try:
        require_text_stream(stream, name)
        for n_lines, (raw, is_complete) in enumerate(raw_lines(stream), start=1):
            line = raw.removeprefix(BYTE_ORDER_MARK) if n_lines == 1 else raw
            if is_complete:
                yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", errors)
            elif errors == "strict":
                raise DataError(
                    f"{name}:{n_lines} is longer than {MAX_LINE_BYTES:,} bytes; split it into one sentence per line"
                )
            else:
                yield TruncatedLine(line[:TRUNCATED_LINE_BYTES].decode("utf-8", errors))
    except UnicodeDecodeError as error:
        raise _not_utf8(name, n_lines, error) from error
    except READ_ERRORS as error:
        raise DataError(f"{name} cannot be read after line {n_lines}: {error}") from error


def _not_utf8(name: str, n_lines: int, error: UnicodeDecodeError) -> DataError:
    column = error.start - error.object.rfind(b"\n", 0, error.start)
    return DataError(
        f"{name}:{n_lines} is not UTF-8: byte 0x{error.object[error.start]:02x} at column {column}; "
        "convert the file to UTF-8"
    )


def repaired_lines(stream: IO[bytes], name: str, on_fault: Callable[[int, LineFault], object]) -> Iterator[str]:
    """Yield every line of an open stream, so that each can have an output; messages call the stream ``name``.

    Bytes that are not UTF-8 become U+FFFD, and a line is cut after ``MAX_LINE_BYTES``; ``on_fault`` is called with the
    number of such a line. Line ends and a byte-order mark are dropped as in ``read_lines``.
    Raises DataError for a damaged compressed stream, and for one that is no text.
    """
    n_lines = 0
    try:
        require_text_stream(stream, name)
        for n_lines, (raw, is_complete) in enumerate(raw_lines(stream), start=1):
            raw = raw.removeprefix(BYTE_ORDER_MARK) if n_lines == 1 else raw
            line = raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "replace")
            if not is_complete:
                line = line.rstrip("\ufffd")  # a cut multi-byte character
                on_fault(n_lines, "cut")
            if "\ufffd" in line and "\ufffd".encode() not in raw:
                on_fault(n_lines, "not UTF-8")
            yield line
    except READ_ERRORS as error:
        raise DataError(f"{name} cannot be read after line {n_lines:,}: {error}") from error
