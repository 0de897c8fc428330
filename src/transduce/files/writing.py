"""Atomic writes of files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from transduce.files.folders import created_folder, named_in_errors, remove

__all__ = ["atomic_write", "descriptor_named", "open_in_place", "replacement", "write_lines", "write_text"]

MAX_LINKS = 40  # chained links to follow; Linux has the same limit


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Yield a stream to a temporary file beside ``path``, renamed to ``path`` when the block ends without an error.

    A pipe, a device or an open descriptor such as ``/dev/stdout`` is written directly, since it cannot be replaced.
    """
    with named_in_errors(path), open_in_place(path) or replacement(path) as stream:
        yield stream


def open_in_place(path: Path) -> IO[bytes] | None:
    """Open a pipe, a device or an open descriptor for direct writing; None for everything else.

    If ``/dev/stdout`` is a file, writing continues at its current offset, since others may write to the same stream.
    """
    descriptor = descriptor_named(path)
    if descriptor is not None:
        return open(os.dup(descriptor), "wb")
    return path.open("wb") if path.exists() and not path.is_file() and not path.is_dir() else None


def descriptor_named(path: Path) -> int | None:
    """Return the open descriptor that ``path`` names (``/dev/stdout``, ``/dev/fd/3``, a link to these), or None."""
    folders = {"/dev/fd", os.path.realpath("/proc/self/fd")}
    for _ in range(MAX_LINKS):
        if path.name.isdecimal() and os.path.realpath(path.parent) in folders and path.exists():
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return None


@contextmanager
def replacement(path: Path) -> Iterator[IO[bytes]]:
    """Yield a stream to a new file beside ``path``, which replaces it when the block ends without an error.

    Who may read and write a file stays as it was.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with named_in_errors(path), created_folder(path.parent):
        remove(temporary)
        try:
            with temporary.open("xb") as stream:  # "x": do not write through an existing link of that name
                _copy_permissions(path, temporary)
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
        finally:
            remove(temporary)


def _copy_permissions(path: Path, temporary: Path) -> None:
    """Give a new file the permissions of the regular file it will replace; another user's may not be copied."""
    with suppress(OSError):
        mode = path.stat(follow_symlinks=False).st_mode
        if stat.S_ISREG(mode):
            temporary.chmod(stat.S_IMODE(mode))


def write_text(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8, atomically."""
    with atomic_write(path) as stream:
        stream.write(text.encode("utf-8"))


def write_lines(path: Path, lines: Iterable[str]) -> int:
    """Write lines, each followed by ``"\\n"``, atomically; return their number."""
    n_lines = 0
    with atomic_write(path) as stream:
        for line in lines:
            stream.write(line.encode("utf-8") + b"\n")
            n_lines += 1
    return n_lines
