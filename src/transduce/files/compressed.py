"""Files that are read, decompressed on the way."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from pathlib import Path
from typing import IO, Any

from transduce.errors import DataError, MissingFileError

__all__ = ["READ_ERRORS", "XzStreams", "cwd_note", "open_binary"]

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


def cwd_note(path: Path) -> str:
    """What a relative path is relative to, to be told beside it; "" for an absolute one.

    >>> cwd_note(Path("/data/train.en"))
    ''
    """
    return "" if path.is_absolute() else f"looked in {Path.cwd()}"


class XzStreams(io.RawIOBase):
    """All streams of an .xz file, one after the other.

    ``lzma.open`` takes a stream whose header is damaged for the end of the file, if there was one before it.
    """

    def __init__(self, compressed: IO[bytes]) -> None:
        self._compressed, self._stream, self._rest = compressed, lzma.LZMADecompressor(), b""
        self._is_between = False  # a stream has ended and none begun

    def readable(self) -> bool:
        """As every input."""
        return True

    def close(self) -> None:
        """Close the file, too."""
        self._compressed.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """The next bytes; 0 at the end. Raises LZMAError for damaged streams and EOFError for one that is cut."""
        while True:
            if self._stream.eof:
                self._rest, self._stream = self._stream.unused_data, lzma.LZMADecompressor(lzma.FORMAT_XZ)
                self._is_between = True
            if not self._rest and self._stream.needs_input:
                self._rest = self._compressed.read(io.DEFAULT_BUFFER_SIZE)
                if not self._rest:
                    if self._is_between:
                        return 0
                    raise EOFError("compressed file ended before the end-of-stream marker was reached")
            if self._is_between:
                self._rest = self._rest.lstrip(b"\0")  # padding
                self._is_between = not self._rest
                if self._is_between:
                    continue
            content, self._rest = self._stream.decompress(self._rest, len(buffer)), b""
            if content:
                buffer[: len(content)] = content
                return len(content)
