"""Folders written whole or not at all: under a temporary name, flushed and renamed. A reader sees all or nothing."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from transduce.errors import DataError

__all__ = [
    "atomic_folder",
    "created_folder",
    "is_leftover",
    "is_running",
    "named_in_errors",
    "remove",
    "remove_leftovers",
    "renamed_beside",
    "restore",
]  # fmt: skip


def remove(path: Path) -> None:
    """Remove a file, a link or a folder with all that is in it; what cannot be removed stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


@contextmanager
def named_in_errors(path: Path) -> Iterator[None]:
    """A block whose OSErrors name ``path`` if they name no file, as of a write that fails for want of room."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextmanager
def created_folder(folder: Path) -> Iterator[None]:
    """A folder and its parents, made where they are missing; those that are empty when the block ends go again.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp())
    >>> with created_folder(place / "a" / "b"):
    ...     (place / "a" / "b").is_dir()
    True
    >>> list(place.iterdir())
    []
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        with suppress(OSError):  # the first that somebody has put something into stays, and so do its parents
            for each in missing:
                each.rmdir()


def is_leftover(path: Path, *, of: str) -> bool:
    """Whether ``path`` is what a process that was killed while it wrote the folder ``of`` has left behind.

    >>> is_leftover(Path("run/.store.77.tmp"), of="store"), is_leftover(Path("run/store"), of="store")
    (True, False)
    """
    return re.fullmatch(rf"\.{re.escape(of)}\.\d+\.(tmp|old)", path.name) is not None


def remove_leftovers(folder: Path) -> None:
    """Remove what processes that were killed while they wrote ``folder`` have left beside it."""
    for path in folder.parent.iterdir():
        if is_leftover(path, of=folder.name) and not _is_in_use(path):
            remove(path)


@contextmanager
def atomic_folder(folder: Path, *, replace: bool = False) -> Iterator[Path]:
    """A temporary folder to fill; becomes ``folder`` when the block ends without an error.

    What was not there at the start is never removed: if somebody else has made ``folder`` meanwhile and put something
    into it, what was filled gets a free name beside it, and the error says which.

    Raises DataError if ``folder`` exists and is not empty, unless it is ours to ``replace``.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "new"
    >>> with atomic_folder(target) as temporary:
    ...     _ = (temporary / "a.txt").write_text("a")
    >>> sorted(path.name for path in target.iterdir())
    ['a.txt']
    """
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is no folder; nothing was written; name another place or move it away")
    if folder.exists() and not replace and any(folder.iterdir()):
        raise DataError(f"{folder} exists already; nothing was written; name another place or remove it")
    try:
        folder = folder.resolve()
    except (OSError, RuntimeError) as error:  # a link to itself: of which kind the error is, Python's version decides
        raise DataError(f"{folder} is a link that leads nowhere; nothing was written; move it away") from error
    with created_folder(folder.parent):
        restore(folder)
        remove_leftovers(folder)
        to_retire = folder.stat() if replace and folder.exists() else None
        temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
        temporary.mkdir()
        try:
            with named_in_errors(folder):
                yield temporary
                for path in temporary.rglob("*"):
                    if path.is_file():
                        path.chmod(0o666 & ~_umask())  # some libraries write for the owner alone
                    _flush(path)
                _flush(temporary)
                _put_in_place(temporary, folder, to_retire)
                _flush(folder.parent)
        finally:
            remove(temporary)


def _put_in_place(temporary: Path, folder: Path, to_retire: os.stat_result | None) -> None:
    """Rename ``temporary`` to ``folder``; the one folder that may go for it is the one ``to_retire``.

    Raises DataError if there is something else; what is in ``temporary`` has another name then.
    """
    retired = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    try:
        if to_retire is not None:  # a folder cannot be renamed over one with files in it
            with suppress(FileNotFoundError):  # somebody has removed it meanwhile
                folder.rename(retired)
                if not os.path.samestat(retired.stat(), to_retire):
                    retired.rename(folder)
                    raise FileExistsError(errno.EEXIST, "somebody else has put another there meanwhile")
        temporary.rename(folder)  # over an empty folder, too, but over nothing else
    except OSError as error:
        kept = f"what was to be there is complete in {renamed_beside(temporary, folder)}"
        if os.path.lexists(retired):
            kept += f", what was there before in {renamed_beside(retired, folder)}"
        raise DataError(f"{folder} cannot be written: {error.strerror or error}; {kept}") from error
    remove(retired)  # what stays is a leftover


def renamed_beside(path: Path, folder: Path) -> Path:
    """Give a folder a free name like that of ``folder``; returns it."""
    names = (folder.with_name(f"{folder.name}-{number}") for number in count(2))
    free = next(name for name in names if not os.path.lexists(name))
    path.rename(free)
    return free


def restore(folder: Path, *, is_exclusive: bool = False) -> bool:
    """Undo the first half of a replacement: a process was killed when the old ``folder`` had gone and no new one come.

    Whether there was something to undo. With ``is_exclusive`` the caller knows that nobody else is at it now.
    """
    if os.path.lexists(folder):
        return False
    for path in sorted(folder.parent.iterdir()):
        is_old = path.suffix == ".old" and is_leftover(path, of=folder.name) and not path.is_symlink()
        if is_old and (is_exclusive or not _is_in_use(path)):
            path.rename(folder)
            return True
    return False


def _is_in_use(leftover: Path) -> bool:
    """Whether another process that is still there has made it."""
    process = int(leftover.suffixes[-2][1:])
    return process != os.getpid() and is_running(process)


def is_running(process: int) -> bool:
    """Whether there is such a process on this machine."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass  # it is another user's
    return True


def _umask() -> int:
    """What the user's shell takes away from the permissions of new files; the system tells it only by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _flush(path: Path) -> None:
    """Ask the system to put a file or a folder entry on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
