"""Opening regular files safely: links are not followed, pipes and devices are refused.

Files in the folders that transduce writes must be regular files. Files of a model folder, which is only read, may be
links, since tools that share large files create them.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Literal, cast

from transduce.errors import DataError, TransduceError

__all__ = ["open_regular", "require_regular", "sha256_of_file", "sha256_of_stream"]

# Do not follow a link, do not wait for the other end of a pipe, do not acquire a terminal.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_SAFE_FLAGS = _NO_LINK | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
_FLAGS = {
    "rb": os.O_RDONLY,
    "ab": os.O_WRONLY | os.O_APPEND | os.O_CREAT,
    "a+b": os.O_RDWR | os.O_APPEND | os.O_CREAT,
    "x+b": os.O_RDWR | os.O_CREAT | os.O_EXCL,
}

BLOCK_BYTES = 1 << 18  # read and hashed at once


def open_regular(
    path: Path,
    mode: Literal["rb", "ab", "a+b", "x+b"] = "rb",
    *,
    error: type[TransduceError] = DataError,
    may_be_link: bool = False,
) -> IO[bytes]:
    """Open a regular file in a folder that transduce writes.

    "ab" and "a+b" create a missing file, "x+b" always creates one.
    Raises ``error`` for a link, a pipe, a device or a folder, and OSError as ``open`` does. ``may_be_link`` also
    accepts a link to a regular file.
    """
    with suppress(FileNotFoundError):  # checked first, since opening a device may have side effects
        require_regular(path, error=error, may_be_link=may_be_link)
    try:
        descriptor = os.open(path, _FLAGS[mode] | (_SAFE_FLAGS & ~_NO_LINK if may_be_link else _SAFE_FLAGS), 0o666)
    except OSError:
        require_regular(path, error=error, may_be_link=may_be_link)  # the path may have been created in the meantime
        raise
    stream = open(descriptor, mode.replace("x", "r"))  # noqa: SIM115  (the caller closes it)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        stream.close()
        raise error(f"{path} is not a regular file; move it away, or put the file itself there")
    return stream


def require_regular(path: Path, *, error: type[TransduceError] = DataError, may_be_link: bool = False) -> None:
    """Raise ``error`` if ``path`` is not a regular file, and FileNotFoundError if it does not exist.

    ``may_be_link`` follows a link; OSError is raised if it cannot be resolved, as in a loop.
    """
    mode = path.stat(follow_symlinks=may_be_link).st_mode
    if stat.S_ISREG(mode):
        return
    kinds = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    kind = kinds.get(stat.S_IFMT(mode), "a device")
    raise error(f"{path} is {kind}, not a regular file; move it away, or put the file itself there")


def sha256_of_file(path: Path, *, may_be_link: bool = False) -> str:
    """Return the SHA-256 of a regular file, in hexadecimal. Raises as ``open_regular``."""
    with open_regular(path, may_be_link=may_be_link) as stream:
        return sha256_of_stream(stream)


def sha256_of_stream(stream: IO[bytes], *, should_stop: Callable[[], bool] = lambda: False) -> str:
    """Return the SHA-256 of the rest of a stream, or of less once ``should_stop``, in hexadecimal."""
    digest, block = hashlib.sha256(), memoryview(bytearray(BLOCK_BYTES))
    while not should_stop() and (n_bytes := cast(io.BufferedReader, stream).readinto(block)):
        digest.update(block[:n_bytes])
    return digest.hexdigest()
