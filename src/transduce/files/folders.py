"""Atomic writes of folders: fill a temporary folder, flush it, rename it. A reader sees all or nothing."""

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
    "atomic_folder", "created_folder", "is_leftover", "is_running", "named_in_errors", "remove", "remove_leftovers",
    "renamed_beside", "restore",
]  # fmt: skip


def remove(path: Path) -> None:
    """Remove a file, a link or a folder tree, ignoring errors."""
    with suppress(OSError):  # also of the look at it, such as a name that is too long
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def named_in_errors(path: Path) -> Iterator[None]:
    """Add ``path`` to OSErrors of the block that name no file, such as a write to a full disk."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextmanager
def created_folder(folder: Path) -> Iterator[None]:
    """Create a folder and its parents where missing; remove those that are empty when the block ends.

    >>> import tempfile
    >>> parent = Path(tempfile.mkdtemp())
    >>> with created_folder(parent / "a" / "b"):
    ...     (parent / "a" / "b").is_dir()
    True
    >>> list(parent.iterdir())
    []
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        with suppress(OSError):  # the first non-empty folder stays, and so do its parents
            for each in missing:
                each.rmdir()


def is_leftover(path: Path, *, of: str) -> bool:
    """Return whether ``path`` is a temporary or retired folder left by an interrupted write of the folder ``of``.

    >>> is_leftover(Path("run/.store.77.tmp"), of="store"), is_leftover(Path("run/store"), of="store")
    (True, False)
    """
    return re.fullmatch(rf"\.{re.escape(of)}\.\d+\.(tmp|old)", path.name) is not None


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary and retired folders that interrupted writes of ``folder`` have left beside it."""
    for path in folder.parent.iterdir():
        if is_leftover(path, of=folder.name) and not _is_in_use(path):
            remove(path)


@contextmanager
def atomic_folder(folder: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield a temporary folder to fill; rename it to ``folder`` when the block ends without an error.

    Only the folder that existed at the start is ever replaced. If another process has created and filled ``folder``
    in the meantime, the new content is renamed to a free name beside it, which the error names.

    Raises DataError if ``folder`` exists and is not empty, unless ``replace``.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "new"
    >>> with atomic_folder(target) as temporary:
    ...     _ = (temporary / "a.txt").write_text("a")
    >>> sorted(path.name for path in target.iterdir())
    ['a.txt']
    """
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is not a folder; nothing was written; name another folder or move it away")
    if folder.exists() and not replace and any(folder.iterdir()):
        raise DataError(f"{folder} exists already; nothing was written; name another folder or remove it")
    try:
        folder = folder.resolve()
    except (OSError, RuntimeError) as error:  # a symlink loop: the exception type depends on Python's version
        raise DataError(f"{folder} is a symlink loop; nothing was written; move it away") from error
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
                        path.chmod(0o666 & ~_umask())  # some libraries create files that only the owner can read
                    _flush(path)
                _flush(temporary)
                _put_in_place(temporary, folder, to_retire)
                _flush(folder.parent)
        finally:
            remove(temporary)


def _put_in_place(temporary: Path, folder: Path, to_retire: os.stat_result | None) -> None:
    """Rename ``temporary`` to ``folder``, replacing only the folder identified by ``to_retire``.

    Raises DataError if something else is there; ``temporary`` is then renamed beside it.
    """
    retired = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    try:
        if to_retire is not None:  # a folder cannot be renamed over one with files in it
            with suppress(FileNotFoundError):  # removed by another process in the meantime
                folder.rename(retired)
                if not os.path.samestat(retired.stat(), to_retire):
                    retired.rename(folder)
                    raise FileExistsError(errno.EEXIST, "another process has replaced it in the meantime")
        temporary.rename(folder)  # succeeds if ``folder`` is missing or empty
    except OSError as error:
        where = f"the new content is complete in {renamed_beside(temporary, folder)}"
        if os.path.lexists(retired):
            where += f", the old content is in {renamed_beside(retired, folder)}"
        raise DataError(f"{folder} cannot be written: {error.strerror or error}; {where}") from error
    remove(retired)  # what cannot be removed is a leftover, removed by the next write


def renamed_beside(path: Path, folder: Path) -> Path:
    """Rename ``path`` to the first free name of the form ``folder``-2, ``folder``-3, ...; return it."""
    names = (folder.with_name(f"{folder.name}-{number}") for number in count(2))
    free = next(name for name in names if not os.path.lexists(name))
    path.rename(free)
    return free


def restore(folder: Path, *, is_exclusive: bool = False) -> bool:
    """Roll back an interrupted replacement of ``folder``; return whether there was one.

    A process killed after retiring the old folder and before moving the new one into place leaves such a state.
    ``is_exclusive``: the caller holds a lock, so process ids need not be checked.
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
    """Return whether the process that created a leftover is another one and still running."""
    process = int(leftover.suffixes[-2][1:])
    return process != os.getpid() and is_running(process)


def is_running(process: int) -> bool:
    """Return whether a process with this id exists on this machine."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass  # the process belongs to another user
    return True


def _umask() -> int:
    """Return the process umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _flush(path: Path) -> None:
    """Flush a file or a folder entry to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
