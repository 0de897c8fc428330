"""One writer for a run folder: a second trainer is refused, not let in to mix two runs.

The lock is the operating system's, on the file ``lock.json``, and ends with the process that holds it, however that
ends. The file says who that is. Not every shared disk lets a machine see the locks of another one, so a file that names
another machine counts as a lock until a person says that the process is gone.
"""

from __future__ import annotations

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

try:
    import fcntl
except ImportError:  # Windows has another way; there, the file alone is the lock of other machines
    fcntl = None  # type: ignore[assignment]

__all__ = ["LOCK_FILE", "Holder", "holder_of", "only_writer"]

LOCK_FILE = "lock.json"


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
    """Hold ``folder``, which is made if need be, for this process while the block lasts.

    Raises TrainingError if another process of this machine holds it, or one of another machine may hold it, unless
    ``break_lock`` says that it does not.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / LOCK_FILE) as stream:
        before = _read(stream)  # of a process that was killed, if it was on this machine
        if before is not None and before.host != socket.gethostname() and not break_lock:
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
def _locked(path: Path) -> Iterator[IO[str]]:
    """The lock file, open and held. Raises TrainingError if another process has it."""
    while True:
        with path.open("a+", encoding="utf-8") as stream:
            if fcntl is not None:
                try:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise TrainingError(
                        f"{path.parent} is being written by {_read(stream) or 'another process'}; wait for it, stop "
                        "it, or name another --out"
                    ) from None
            if _is_still_at(path, stream):
                yield stream
                return


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
        return Holder(**json.load(stream))
    except (ValueError, TypeError, RecursionError):  # empty, or torn
        return None


def _write(stream: IO[str], holder: Holder) -> None:
    stream.seek(0)
    stream.truncate()
    json.dump(asdict(holder), stream)
    stream.flush()
