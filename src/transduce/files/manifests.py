"""Manifests: the size and SHA-256 of each file in a folder, in ``manifest.json``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import IO, Any

from transduce.errors import TransduceError, quoted, shown
from transduce.files.json_files import Migration, migrated, read_json, write_json
from transduce.files.regular import open_regular, sha256_of_file, sha256_of_stream

__all__ = [
    "MANIFEST_NAME", "UnverifiedFile", "verified_except", "verify_manifest", "write_manifest",
]  # fmt: skip

MANIFEST_NAME = "manifest.json"
INCOMPLETE = "it is incomplete; restore the file from a copy, or create the folder again"
MIGRATIONS: tuple[Migration, ...] = (lambda values: values,)  # format 1 only added the format number


def write_manifest(folder: Path, *, exempt: Iterable[str] = ()) -> None:
    """Write ``manifest.json`` with the size and SHA-256 of each file in ``folder`` except the ``exempt`` ones."""
    excluded = {MANIFEST_NAME, *exempt}
    paths = sorted(path for path in folder.iterdir() if path.is_file() and path.name not in excluded)
    files = {path.name: {"bytes": path.stat().st_size, "sha256": sha256_of_file(path)} for path in paths}
    write_json(folder / MANIFEST_NAME, {"format": len(MIGRATIONS), "files": files})


def verify_manifest(
    folder: Path,
    *,
    error: type[TransduceError],
    required: Iterable[str] = (),
    only: Iterable[str] | None = None,
) -> None:
    """Check the files of ``folder``, all or ``only`` some, against its manifest.

    Raises ``error`` if the folder, the manifest, a listed or a ``required`` file is missing or not a regular file, if
    the manifest has an unknown format, or if a size or checksum differs.
    """
    for name, entry in _entries(folder, required, error=error, only=only).items():
        _verify_file(folder / name, entry, error=error, may_be_link=False)


@dataclass(frozen=True, slots=True)
class UnverifiedFile:
    """A large file of a folder whose other files agree with the manifest."""

    path: Path
    entry: Mapping[str, Any]  # of the manifest
    error: type[TransduceError]
    may_be_link: bool

    @contextmanager
    def verified_while_read(self) -> Iterator[None]:
        """A context that reads the file while its checksum is computed in another thread.

        A wrong checksum raises ``error`` at the end of the context, also in place of an exception in it, which read an
        unchecked file.
        """
        is_over, faults = Event(), list[BaseException]()
        with _open_with_size(self.path, self.entry, error=self.error, may_be_link=self.may_be_link) as stream:

            def check() -> None:
                try:
                    _verify_checksum(stream, self.path, self.entry, error=self.error, should_stop=is_over.is_set)
                except BaseException as fault:
                    faults.append(fault)

            thread = Thread(target=check)
            thread.start()
            try:
                yield
            except BaseException as error:
                if not isinstance(error, Exception):  # such as an interrupt
                    is_over.set()
                raise
            finally:
                thread.join()
                if faults and not is_over.is_set():
                    raise faults[0]


def verified_except(
    folder: Path, *, large: str, error: type[TransduceError], required: Iterable[str] = (), may_be_links: bool = False
) -> UnverifiedFile:
    """Check the files of ``folder`` except a large one, which is returned. Errors are those of ``verify_manifest``.

    ``may_be_links`` also accepts links to regular files.
    """
    entries = _entries(folder, [large, *required], error=error, may_be_links=may_be_links)
    file = UnverifiedFile(folder / large, entries.pop(large), error, may_be_links)
    for name, other in entries.items():
        _verify_file(folder / name, other, error=error, may_be_link=may_be_links)
    return file


def _entries(
    folder: Path,
    required: Iterable[str],
    *,
    error: type[TransduceError],
    only: Iterable[str] | None = None,
    may_be_links: bool = False,
) -> dict[str, dict[str, Any]]:
    """Return the entries of a manifest, all or ``only`` some, by the names of the files, which exist."""
    only = None if only is None else list(only)
    required, present = [*required, *(only or ())], _names_in(folder, error=error)
    for name in (*required, MANIFEST_NAME):
        if name not in present:
            raise error(f"{folder} has no {name}; {INCOMPLETE}")
    path = folder / MANIFEST_NAME
    values = read_json(path, error=error, may_be_link=may_be_links)
    files = migrated(values, MIGRATIONS, where=path, error=error).get("files")
    if not isinstance(files, dict) or not all(isinstance(entry, dict) for entry in files.values()):
        raise error(f"{path} should have a table 'files'")
    unlisted = [name for name in required if name not in files]
    if unlisted:
        raise error(f"{path} does not list {unlisted[0]}")
    names = files if only is None else only
    for name in names:
        if name not in present:  # checked first, so that no invalid name from a damaged manifest reaches the system
            raise error(f"{folder} has no {shown(name)}, which its manifest lists; {INCOMPLETE}")
    return {name: files[name] for name in names}


def _names_in(folder: Path, *, error: type[TransduceError]) -> set[str]:
    """Return the names in a folder. Raises ``error`` if it cannot be read."""
    if not folder.is_dir():
        raise error(f"{folder} is not a folder")
    try:
        return {path.name for path in folder.iterdir()}
    except OSError as cause:
        raise error(f"{folder} cannot be read: {cause.strerror or cause}") from cause


def _verify_file(path: Path, entry: Mapping[str, Any], *, error: type[TransduceError], may_be_link: bool) -> None:
    """Check the size and checksum of one file against its manifest entry."""
    with _open_with_size(path, entry, error=error, may_be_link=may_be_link) as stream:
        _verify_checksum(stream, path, entry, error=error)


def _open_with_size(
    path: Path, entry: Mapping[str, Any], *, error: type[TransduceError], may_be_link: bool
) -> IO[bytes]:
    """Open a file that has the size of its manifest entry."""
    try:
        stream = open_regular(path, error=error, may_be_link=may_be_link)
    except OSError as cause:
        raise error(f"{path} cannot be read: {cause.strerror or cause}") from cause
    n_bytes = os.fstat(stream.fileno()).st_size
    if n_bytes != entry.get("bytes"):
        stream.close()
        raise error(f"{path} has {n_bytes:,} bytes, its manifest says {quoted(entry.get('bytes'))}")
    return stream


def _verify_checksum(
    stream: IO[bytes],
    path: Path,
    entry: Mapping[str, Any],
    *,
    error: type[TransduceError],
    should_stop: Callable[[], bool] = lambda: False,
) -> None:
    """Check the checksum of an open file against its manifest entry."""
    try:
        sha256 = sha256_of_stream(stream, should_stop=should_stop)
    except OSError as cause:
        raise error(f"{path} cannot be read: {cause.strerror or cause}") from cause
    if sha256 != entry.get("sha256"):
        raise error(f"{path} is corrupt: its checksum differs from the manifest")
