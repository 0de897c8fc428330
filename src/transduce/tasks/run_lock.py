"""One writer for a run folder: a second trainer is refused, not let in to mix two runs.

The lock is the operating system's, on the file ``lock.json``, and ends with the process that holds it, however that
ends. The file says who that is. Not every shared disk has locks, or lets a machine see those of another one; there the
file itself, which a killed process leaves, counts as a lock until a person says that the process is gone.

Nothing is written to a file of that name before it is known to be a lock: a regular file under one name alone, and
empty, or saying who writes.
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
MOST_BYTES = 4096  # of a lock file
BEGIN = b'{"host": '  # of what it says
NO_LOCKS_HERE = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)  # some shared disks


@dataclass(frozen=True, slots=True)
class LockHolder:
    """Who writes."""

    host: str
    process: int
    since: str

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}, since {self.since}"


@contextmanager
def run_lock(folder: Path, *, break_lock: bool = False) -> Iterator[None]:
    """Hold ``folder`` for this process while the block lasts. It is made if need be, and goes again if it stays empty.

    Raises TrainingError if another process of this machine holds it, or one of another machine may hold it, unless
    ``break_lock`` says that it does not; and if something else has the name of the lock.
    """
    with created_folder(folder), _opened(folder / LOCK_FILE) as (stream, is_ours, is_new):
        _require_lock(folder / LOCK_FILE, stream)
        before = _read(stream)
        if before is None and not (is_ours or is_new or break_lock):
            raise TrainingError(
                f"{folder} is being written by a process that has just begun, or was killed as it did; if it is gone, "
                "go on with --break-lock"
            )
        if before is not None and not break_lock and not (is_ours and before.host == socket.gethostname()):
            raise TrainingError(
                f"{folder} is being written by {before}; if that process is gone, go on with --break-lock"
            )
        _write(stream, LockHolder(socket.gethostname(), os.getpid(), time.strftime("%Y-%m-%d %H:%M:%S")))
        try:
            yield
        finally:
            if _is_still_at(folder / LOCK_FILE, stream):  # else somebody has removed it, and another may have one now
                (folder / LOCK_FILE).unlink(missing_ok=True)


def lock_holder(folder: Path) -> LockHolder | None:
    """Who says that it writes ``folder``; it may have been killed since.

    Raises TrainingError if something else has the name of the lock.
    """
    path = folder / LOCK_FILE
    try:
        with open_regular(path, error=TrainingError) as stream:
            _require_lock(path, stream)
            return _read(stream)
    except OSError:
        return None


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], bool, bool]]:
    """The lock file; whether the system has given us its lock (if not, this disk has none); whether we have made it.

    Raises TrainingError if another process has it, or if it is no regular file.
    """
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            opened, is_new = _made_or_found(path)
        except FileNotFoundError:  # its last holder has just removed the folder that it had made
            continue
        with opened as stream:
            is_ours = _take(stream, path)
            if _is_still_at(path, stream):
                yield stream, is_ours, is_new
                return


def _made_or_found(path: Path) -> tuple[IO[bytes], bool]:
    """The lock file, and whether it was made now: of several processes, one makes it."""
    try:
        return open_regular(path, "x+b", error=TrainingError), True
    except FileExistsError:
        return open_regular(path, "a+b", error=TrainingError), False


def _take(stream: IO[bytes], path: Path) -> bool:
    """Take the system's lock of a file; False where there are none. Raises TrainingError if another process has it."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise TrainingError(
            f"{path.parent} is being written by {_read(stream) or 'another process'}; wait for it, stop it, or name "
            "another --out"
        ) from None
    except OSError as error:
        if error.errno not in NO_LOCKS_HERE:
            raise
        return False
    return True


def _is_still_at(path: Path, stream: IO[bytes]) -> bool:
    """Whether an open file is the one of that name: its last holder may have removed it before we got the lock."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(stream.fileno()))
    except FileNotFoundError:
        return False


def _require_lock(path: Path, stream: IO[bytes]) -> None:
    """Raises TrainingError if an open file is not the lock of a run: it would be lost if it were written over."""
    if os.fstat(stream.fileno()).st_nlink > 1:
        raise TrainingError(f"{path} has another name, too (a hard link), and would be changed there; move it away")
    content = _content(stream)
    is_torn = BEGIN.startswith(content[: len(BEGIN)]) or not content.strip(b"\0")
    if len(content) > MOST_BYTES or not is_torn:
        raise TrainingError(f"{path} is something else than the lock of a run; name another folder, or move it away")


def _content(stream: IO[bytes]) -> bytes:
    """What is in a lock file, and one byte of what is too much for one."""
    stream.seek(0)
    return stream.read(MOST_BYTES + 1)


def _read(stream: IO[bytes]) -> LockHolder | None:
    """Who is written down, if anybody."""
    try:
        holder = LockHolder(**json.loads(_content(stream)))
    except (ValueError, TypeError, RecursionError):  # empty, or torn
        return None
    return holder if isinstance(holder.host, str) and isinstance(holder.process, int) else None


def _write(stream: IO[bytes], holder: LockHolder) -> None:
    stream.seek(0)
    stream.truncate()
    stream.write(json.dumps(asdict(holder)).encode("ascii"))
    stream.flush()
