"""Messages between a process and its workers, over pipes: parts of bytes with their sizes. Nothing is pickled."""

from __future__ import annotations

import struct
from itertools import chain
from typing import IO

__all__ = ["pack_message", "read_message"]

SIZE = struct.Struct("<Q")


def pack_message(*parts: bytes) -> bytes:
    """Return a message of several parts.

    >>> import io
    >>> read_message(io.BytesIO(pack_message(b"one", b"")))
    [b'one', b'']
    """
    sizes = (SIZE.pack(len(part)) for part in parts)
    return SIZE.pack(len(parts)) + b"".join(chain.from_iterable(zip(sizes, parts, strict=True)))


def read_message(stream: IO[bytes]) -> list[bytes]:
    """Read the next message. Raises EOFError if the other process has closed its end."""
    n_parts = _read_size(stream)
    return [_read(stream, _read_size(stream)) for _ in range(n_parts)]


def _read_size(stream: IO[bytes]) -> int:
    size: int = SIZE.unpack(_read(stream, SIZE.size))[0]
    return size


def _read(stream: IO[bytes], n_bytes: int) -> bytes:
    content = stream.read(n_bytes)
    if len(content) != n_bytes:
        raise EOFError("the other process has closed its end of the pipe")
    return content
