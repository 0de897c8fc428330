"""One writer for a run folder: a second trainer is refused, not let in to mix two runs.

The lock is the operating system's, on the file ``lock.json``, and ends with the process that holds it, however that
ends. The file says who that is. Not every shared disk has locks, or lets a machine see those of another one; there the
file itself, which a killed process leaves, counts as a lock until a person says that the process is gone.
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
from transduce.files import made_folder

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["LOCK_FILE", "Holder", "holder_of", "only_writer"]

LOCK_FILE = "lock.json"
NO_LOCKS_HERE = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)  # some shared disks


@dataclass(frozen=True, slots=True)
class Holder:
    """Who writes."""

    host: str
    process: int
    since: str

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}, since {self.since}"


@contextmanager
def only_writer(folder: Path, *, break_lock: bool = False) -> Iterator[None]:
    """Hold ``folder`` for this process while the block lasts. It is made if need be, and goes again if it stays empty.

    Raises TrainingError if another process of this machine holds it, or one of another machine may hold it, unless
    ``break_lock`` says that it does not.
    """
    with made_folder(folder), _opened(folder / LOCK_FILE) as (stream, is_ours):
        before = _read(stream)
        if before is not None and not break_lock and not (is_ours and before.host == socket.gethostname()):
            raise TrainingError(
                f"{folder} is being written by {before}; if that process is gone, go on with --break-lock"
            )
        _write(stream, Holder(socket.gethostname(), os.getpid(), time.strftime("%Y-%m-%d %H:%M:%S")))
        try:
            yield
        finally:
            (folder / LOCK_FILE).unlink(missing_ok=True)


def holder_of(folder: Path) -> Holder | None:
    """Who says that it writes ``folder``; it may have been killed since."""
    try:
        with (folder / LOCK_FILE).open(encoding="utf-8") as stream:
            return _read(stream)
    except OSError:
        return None


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[str], bool]]:
    """The lock file, and whether the system has given us its lock; if not, this disk has none.

    Raises TrainingError if another process has it.
    """
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            opened = path.open("a+", encoding="utf-8")
        except FileNotFoundError:  # its last holder has just removed the folder that it had made
            continue
        with opened as stream:
            is_ours = _take(stream, path)
            if _is_still_at(path, stream):
                yield stream, is_ours
                return


def _take(stream: IO[str], path: Path) -> bool:
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


def _is_still_at(path: Path, stream: IO[str]) -> bool:
    """Whether an open file is the one of that name: its last holder may have removed it before we got the lock."""
    try:
        return os.path.samestat(path.stat(), os.fstat(stream.fileno()))
    except FileNotFoundError:
        return False


def _read(stream: IO[str]) -> Holder | None:
    """Who is written down, if anybody."""
    stream.seek(0)
    try:
        holder = Holder(**json.load(stream))
    except (ValueError, TypeError, RecursionError):  # empty, or torn
        return None
    return holder if isinstance(holder.host, str) and isinstance(holder.process, int) else None


def _write(stream: IO[str], holder: Holder) -> None:
    stream.seek(0)
    stream.truncate()
    json.dump(asdict(holder), stream)
    stream.flush()
