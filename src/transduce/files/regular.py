"""Regular files, opened so that nothing else is: no link is followed, no pipe waited for.

Files of folders that transduce writes are such files. Those of a model folder may be links, as tools make them that
keep large files in one place: it is read only.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO, Literal, cast

from transduce.errors import DataError, TransduceError

__all__ = ["open_regular", "require_regular", "sha256_of_file", "sha256_of_stream"]

# What keeps an open from following a link, from waiting for the other end of a pipe, and from taking a terminal.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_SAFE_FLAGS = _NO_LINK | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
_FLAGS = {
    "rb": os.O_RDONLY,
    "ab": os.O_WRONLY | os.O_APPEND | os.O_CREAT,
    "a+b": os.O_RDWR | os.O_APPEND | os.O_CREAT,
    "x+b": os.O_RDWR | os.O_CREAT | os.O_EXCL,
}


def open_regular(
    path: Path,
    mode: Literal["rb", "ab", "a+b", "x+b"] = "rb",
    *,
    error: type[TransduceError] = DataError,
    may_be_link: bool = False,
) -> IO[bytes]:
    """Open a file that has to be a regular one, in a folder that transduce writes.

    "ab" and "a+b" make it if need be, "x+b" always.
    Raises ``error`` if it is a link, a pipe, a device or a folder, and OSError as ``open`` does. With ``may_be_link`` a
    link to a regular file is one, too.
    """
    with suppress(FileNotFoundError):  # first, since opening a device may do something to it
        require_regular(path, error=error, may_be_link=may_be_link)
    try:
        descriptor = os.open(path, _FLAGS[mode] | (_SAFE_FLAGS & ~_NO_LINK if may_be_link else _SAFE_FLAGS), 0o666)
    except OSError:
        require_regular(path, error=error, may_be_link=may_be_link)  # it may have come between
        raise
    stream = open(descriptor, mode.replace("x", "r"))  # noqa: SIM115  (it is the caller's to close)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        stream.close()
        raise error(f"{path} is no regular file; move it away, or put the file itself there")
    return stream


def require_regular(path: Path, *, error: type[TransduceError] = DataError, may_be_link: bool = False) -> None:
    """Raises ``error`` if what is at ``path`` is no regular file, and FileNotFoundError if there is nothing.

    With ``may_be_link`` what a link leads to counts. Raises OSError if that cannot be known, as in a loop.
    """
    mode = path.stat(follow_symlinks=may_be_link).st_mode
    if stat.S_ISREG(mode):
        return
    kinds = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    what = kinds.get(stat.S_IFMT(mode), "a device")
    raise error(f"{path} is {what}, not a regular file; move it away, or put the file itself there")


def sha256_of_file(path: Path) -> str:
    """The SHA-256 of a regular file's bytes, in hexadecimal."""
    with open_regular(path) as stream:
        return sha256_of_stream(stream)


def sha256_of_stream(stream: IO[bytes]) -> str:
    """The SHA-256 of what is left of a stream, in hexadecimal."""
    return hashlib.file_digest(cast(io.BufferedReader, stream), "sha256").hexdigest()
