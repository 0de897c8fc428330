"""Reading plain, gzip and xz files."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from transduce.errors import DataError, MissingFileError

__all__ = ["READ_ERRORS", "XzStreams", "compressing", "cwd_note", "open_binary"]

READ_ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error)  # raised for damaged compressed files


def open_binary(path: Path) -> IO[bytes]:
    """Open ``path`` for reading; ``.gz`` and ``.xz`` are decompressed on the way.

    Raises MissingFileError if there is no such file, DataError if it cannot be opened.
    """
    try:
        match path.suffix:
            case ".gz":
                return io.BufferedReader(gzip.open(path))
            case ".xz":
                return io.BufferedReader(XzStreams(path.open("rb")), io.DEFAULT_BUFFER_SIZE)
            case _:
                return path.open("rb")
    except FileNotFoundError as error:
        raise MissingFileError(path, where=cwd_note(path)) from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


@contextmanager
def compressing(raw: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    """Yield a stream that compresses to ``raw`` as ``.gz`` or ``.xz`` says, else ``raw`` itself.

    The same content gives the same bytes: nothing has a name or a time. ``raw`` stays open.
    """
    match suffix:
        case ".gz":
            with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as stream:
                yield cast(IO[bytes], stream)
        case ".xz":
            with lzma.LZMAFile(raw, mode="wb") as stream:
                yield cast(IO[bytes], stream)
        case _:
            yield raw


def cwd_note(path: Path) -> str:
    """Return a note for messages saying what a relative path is relative to; "" for an absolute one.

    >>> cwd_note(Path("/data/train.en"))
    ''
    """
    return "" if path.is_absolute() else f"looked in {Path.cwd()}"


class XzStreams(io.RawIOBase):
    """Decompresses all concatenated streams of an .xz file.

    ``lzma.open`` treats a damaged header of a later stream as the end of the file; this class raises.
    """

    def __init__(self, compressed: IO[bytes]) -> None:
        self._compressed, self._decoder, self._pending = compressed, lzma.LZMADecompressor(), b""
        self._is_between_streams = False  # a stream has ended, the next has not begun

    def readable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close this stream and the compressed file."""
        self._compressed.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes; return 0 at the end. Raises LZMAError for damaged and EOFError for truncated streams."""
        while True:
            if self._decoder.eof:
                self._pending, self._decoder = self._decoder.unused_data, lzma.LZMADecompressor(lzma.FORMAT_XZ)
                self._is_between_streams = True
            if not self._pending and self._decoder.needs_input:
                self._pending = self._compressed.read(io.DEFAULT_BUFFER_SIZE)
                if not self._pending:
                    if self._is_between_streams:
                        return 0
                    raise EOFError("compressed file ended before the end-of-stream marker was reached")
            if self._is_between_streams:
                self._pending = self._pending.lstrip(b"\0")  # zero padding between streams
                self._is_between_streams = not self._pending
                if self._is_between_streams:
                    continue
            content, self._pending = self._decoder.decompress(self._pending, len(buffer)), b""
            if content:
                buffer[: len(content)] = content
                return len(content)
