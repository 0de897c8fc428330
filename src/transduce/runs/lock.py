"""The lock of a run folder: it refuses a second trainer.

``lock.json`` names its holder and is locked by the operating system (``flock``), so the lock ends with the process,
even a killed one. Some network file systems have no locks, or do not share them between machines; there the file itself
is the lock until the user breaks it.

An existing file is overwritten only if it is a lock: a regular file without hard links that is empty or names a holder.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from transduce.errors import TrainingError
from transduce.files import created_folder, open_regular

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["LOCK_FILE", "LockHolder", "lock_holder", "run_lock"]

LOCK_FILE = "lock.json"
MAX_BYTES = 4096  # of a lock file
PREFIX = b'{"host": '  # the first bytes of a lock file
NO_LOCK_SUPPORT = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)  # on some network file systems


@dataclass(frozen=True, slots=True)
class LockHolder:
    """The process that holds a lock."""

    host: str
    process: int
    since: str

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}, since {self.since}"


@contextmanager
def run_lock(folder: Path, *, break_lock: bool = False) -> Iterator[None]:
    """Hold the lock of ``folder`` during the block. Creates the folder if needed, and removes it if it stays empty.

    Raises TrainingError if another process of this machine holds the lock, if one of another machine may hold it
    (unless ``break_lock``), or if ``lock.json`` is not a lock file.
    """
    with created_folder(folder), _open_lock(folder / LOCK_FILE) as (stream, is_locked, is_new):
        _require_lock(folder / LOCK_FILE, stream)
        holder = _read(stream)
        if holder is None and not (is_locked or is_new or break_lock):
            raise TrainingError(
                f"{folder} is being written by a process that has just started, or was killed at its start; if it is "
                "gone, use --break-lock"
            )
        if holder is not None and not break_lock and not (is_locked and holder.host == socket.gethostname()):
            raise TrainingError(f"{folder} is being written by {holder}; if that process is gone, use --break-lock")
        _write(stream, LockHolder(socket.gethostname(), os.getpid(), time.strftime("%Y-%m-%d %H:%M:%S")))
        try:
            yield
        finally:
            if _is_still_at(folder / LOCK_FILE, stream):  # otherwise another process may own the path now
                (folder / LOCK_FILE).unlink(missing_ok=True)


def lock_holder(folder: Path) -> LockHolder | None:
    """Return the process named in the lock of ``folder``, which may be dead; None if there is no lock.

    Raises TrainingError if ``lock.json`` is not a lock file.
    """
    path = folder / LOCK_FILE
    try:
        with open_regular(path, error=TrainingError) as stream:
            _require_lock(path, stream)
            return _read(stream)
    except OSError:
        return None


@contextmanager
def _open_lock(path: Path) -> Iterator[tuple[IO[bytes], bool, bool]]:
    """Open and lock the file: (stream, is_locked, is_new). It is not locked if the file system has no locks.

    Raises TrainingError if another process has locked it, or if it is not a regular file.
    """
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            opened, is_new = _create_or_open(path)
        except FileNotFoundError:  # its last holder has just removed the folder it had created
            continue
        with opened as stream:
            is_locked = _try_lock(stream, path)
            if _is_still_at(path, stream):
                yield stream, is_locked, is_new
                return


def _create_or_open(path: Path) -> tuple[IO[bytes], bool]:
    """Open the lock file; also return whether this process created it. Only one of several processes can."""
    try:
        return open_regular(path, "x+b", error=TrainingError), True
    except FileExistsError:
        return open_regular(path, "a+b", error=TrainingError), False


def _try_lock(stream: IO[bytes], path: Path) -> bool:
    """Lock a file; False if the file system has no locks. Raises TrainingError if another process has locked it."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise TrainingError(
            f"{path.parent} is being written by {_read(stream) or 'another process'}; wait for it, stop it, or use "
            "another --out"
        ) from None
    except OSError as error:
        if error.errno not in NO_LOCK_SUPPORT:
            raise
        return False
    return True


def _is_still_at(path: Path, stream: IO[bytes]) -> bool:
    """Whether an open file is still the one at ``path``: the last holder may have removed it before we locked it."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(stream.fileno()))
    except FileNotFoundError:
        return False


def _require_lock(path: Path, stream: IO[bytes]) -> None:
    """Raise TrainingError if an open file is not a lock, so that it is not overwritten."""
    if os.fstat(stream.fileno()).st_nlink > 1:
        raise TrainingError(
            f"{path} is a hard link: writing the lock would change the other name of the file, too; move it away"
        )
    content = _content(stream)
    is_lock = PREFIX.startswith(content[: len(PREFIX)]) or not content.strip(b"\0")  # possibly half written
    if len(content) > MAX_BYTES or not is_lock:
        raise TrainingError(f"{path} is not the lock file of a run; use another folder, or move it away")


def _content(stream: IO[bytes]) -> bytes:
    """Read a lock file, up to one byte more than a lock can have."""
    stream.seek(0)
    return stream.read(MAX_BYTES + 1)


def _read(stream: IO[bytes]) -> LockHolder | None:
    """Return the holder named in the file, if any."""
    try:
        holder = LockHolder(**json.loads(_content(stream)))
    except (ValueError, TypeError, RecursionError):  # empty, or half written
        return None
    return holder if isinstance(holder.host, str) and isinstance(holder.process, int) else None


def _write(stream: IO[bytes], holder: LockHolder) -> None:
    stream.seek(0)
    stream.truncate()
    stream.write(json.dumps(asdict(holder)).encode("ascii"))
    stream.flush()
