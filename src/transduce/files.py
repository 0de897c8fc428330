"""Files: lines of text read as a stream, files written whole or not at all, folders with a manifest.

Lines are split on ``"\\n"`` alone: U+2028, form feeds and other Unicode separators are part of a line.
A folder with a manifest is written under a temporary name, flushed and renamed: a reader sees all of it or nothing.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import os
import re
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from transduce.errors import DataError, MissingFileError, TransduceError, quoted, shown

__all__ = [
    "MANIFEST_NAME",
    "atomic_folder",
    "bring_back",
    "decoded_lines",
    "is_leftover",
    "is_running",
    "made_folder",
    "open_binary",
    "read_json",
    "read_lines",
    "sha256_of_file",
    "verify_manifest",
    "where_looked",
    "write_json",
    "write_lines",
    "write_manifest",
    "write_text",
    "written_whole",
]

MANIFEST_NAME = "manifest.json"
BROKEN = (OSError, EOFError, lzma.LZMAError, zlib.error)  # what reading a file may come to, if it is compressed badly
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def open_binary(path: Path) -> IO[bytes]:
    """Open ``path`` for reading; ``.gz`` and ``.xz`` are decompressed on the way.

    Raises MissingFileError if there is no such file, DataError if it cannot be opened.
    """
    try:
        match path.suffix:
            case ".gz":
                return io.BufferedReader(gzip.open(path))
            case ".xz":
                return io.BufferedReader(lzma.open(path))
            case _:
                return path.open("rb")
    except FileNotFoundError as error:
        raise MissingFileError(path, where=where_looked(path)) from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


def where_looked(path: Path) -> str:
    """What a relative path is relative to, to be told beside it; "" for an absolute one.

    >>> where_looked(Path("/data/train.en"))
    ''
    """
    return "" if path.is_absolute() else f"looked in {Path.cwd()}"


def read_lines(path: Path, *, escape_invalid: bool = False) -> Iterator[str]:
    """The lines of a UTF-8 text file, without their ends, as a stream.

    A carriage return before the line end and a byte-order mark at the start of the file are dropped. Bytes that are not
    UTF-8 are an error, or with ``escape_invalid`` become lone surrogates (U+DC80 to U+DCFF), left to the caller.
    Raises DataError, with the line number, for bytes that are not UTF-8 and for broken compression.
    """
    errors = "surrogateescape" if escape_invalid else "strict"
    with open_binary(path) as stream:
        yield from decoded_lines(stream, str(path), errors=errors)


def decoded_lines(stream: Iterable[bytes], name: str, *, errors: str = "strict") -> Iterator[str]:
    """The lines of an open stream, as ``read_lines`` has them; ``name`` is what messages call it."""
    n_lines = 0
    try:
        for n_lines, raw in enumerate(stream, start=1):
            line = raw.removeprefix(BYTE_ORDER_MARK) if n_lines == 1 else raw
            yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name}:{n_lines} is not UTF-8: byte 0x{error.object[error.start]:02x} at column {error.start + 1}; "
            "convert the file to UTF-8"
        ) from error
    except BROKEN as error:
        raise DataError(f"{name} cannot be read after line {n_lines}: {error}") from error


@contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """A stream to a temporary neighbour of ``path``, renamed to it when the block ends without an error.

    A pipe or a device is written to as it is: another file in its place would be no pipe.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as stream:
            yield stream
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with made_folder(path.parent):
        try:
            with temporary.open("wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """A folder and its parents, made where they are missing; those that are empty when the block ends go again.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp())
    >>> with made_folder(place / "a" / "b"):
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


def write_text(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8, whole or not at all."""
    with written_whole(path) as stream:
        stream.write(text.encode("utf-8"))


def write_lines(path: Path, lines: Iterable[str]) -> int:
    """Write one line each, ``"\\n"`` at every end, whole or not at all; returns how many."""
    n_lines = 0
    with written_whole(path) as stream:
        for line in lines:
            stream.write(line.encode("utf-8") + b"\n")
            n_lines += 1
    return n_lines


def write_json(path: Path, value: object) -> None:
    """Write ``value`` as indented JSON, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path, *, error: type[TransduceError] = DataError) -> dict[str, Any]:
    """The JSON object in ``path``. Raises ``error`` if the file is missing, is not JSON or holds no object."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise error(f"{path} cannot be read: it is no file")  # to read a pipe would be to wait for a writer
        value = json.loads(path.read_bytes())
    except OSError as cause:
        raise error(f"{path} cannot be read: {cause.strerror or cause}") from cause
    except (ValueError, RecursionError, MemoryError) as cause:  # bytes that are not UTF-8, or brackets without end
        raise error(f"{path} is not valid JSON: {cause}") from cause
    if not isinstance(value, dict):
        raise error(f"{path} should hold a JSON object, got {type(value).__name__}")
    return value


def sha256_of_file(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def is_leftover(path: Path, *, of: str) -> bool:
    """Whether ``path`` is what a process that was killed while it wrote the folder ``of`` has left behind.

    >>> is_leftover(Path("run/.store.77.tmp"), of="store"), is_leftover(Path("run/store"), of="store")
    (True, False)
    """
    return re.fullmatch(rf"\.{re.escape(of)}\.\d+\.(tmp|old)", path.name) is not None


@contextmanager
def atomic_folder(folder: Path, *, replace: bool = False) -> Iterator[Path]:
    """A temporary folder to fill; becomes ``folder`` when the block ends without an error.

    Raises DataError if ``folder`` exists and is not empty, unless it is ours to ``replace``.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "new"
    >>> with atomic_folder(target) as temporary:
    ...     _ = (temporary / "a.txt").write_text("a")
    >>> sorted(path.name for path in target.iterdir())
    ['a.txt']
    """
    if folder.exists() and not replace and not (folder.is_dir() and not any(folder.iterdir())):
        raise DataError(f"{folder} exists already; nothing was written; name another place or remove it")
    folder = folder.resolve()
    with made_folder(folder.parent):
        yield from _filled(folder)


def _filled(folder: Path) -> Iterator[Path]:
    """The temporary folder of ``atomic_folder``, which is renamed after it."""
    bring_back(folder)
    for path in folder.parent.iterdir():
        if is_leftover(path, of=folder.name) and not _is_of_another(path):
            shutil.rmtree(path, ignore_errors=True)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        for path in temporary.rglob("*"):
            if path.is_file():
                path.chmod(0o666 & ~_umask())  # some libraries write for the owner alone
            _flush(path)
        _flush(temporary)
        if folder.exists():  # a folder cannot be renamed over one with files in it
            retired = folder.with_name(f".{folder.name}.{os.getpid()}.old")
            folder.rename(retired)
            temporary.rename(folder)
            shutil.rmtree(retired, ignore_errors=True)  # what stays is a leftover
        else:
            temporary.rename(folder)
        _flush(folder.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def bring_back(folder: Path, *, whoever_wrote: bool = False) -> bool:
    """Undo the first half of a replacement: a process was killed when the old ``folder`` had gone and no new one come.

    Whether there was something to undo. With ``whoever_wrote`` the caller knows that nobody else is at it now.
    """
    if folder.exists():
        return False
    for path in folder.parent.glob(f".{folder.name}.*.old"):
        if is_leftover(path, of=folder.name) and (whoever_wrote or not _is_of_another(path)):
            path.rename(folder)
            return True
    return False


def _is_of_another(leftover: Path) -> bool:
    """Whether another process that is still there has made it."""
    process = int(leftover.suffixes[-2][1:])
    return process != os.getpid() and is_running(process)


def is_running(process: int) -> bool:
    """Whether there is such a process on this machine."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is another user's
        return True
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


def write_manifest(folder: Path, *, exempt: Iterable[str] = ()) -> None:
    """Write ``manifest.json``: size and SHA-256 of each file in ``folder`` but the ``exempt`` ones."""
    left_out = {MANIFEST_NAME, *exempt}
    paths = sorted(path for path in folder.iterdir() if path.is_file() and path.name not in left_out)
    files = {path.name: {"bytes": path.stat().st_size, "sha256": sha256_of_file(path)} for path in paths}
    write_json(folder / MANIFEST_NAME, {"files": files})


def verify_manifest(folder: Path, *, error: type[TransduceError], required: Iterable[str] = ()) -> None:
    """Check every file of ``folder`` against its manifest.

    Raises ``error`` if the folder, the manifest, a listed file or a ``required`` one is missing,
    or if a size or a checksum differs.
    """
    if not folder.is_dir():
        raise error(f"{folder} is not a folder")
    try:
        present = {path.name for path in folder.iterdir() if path.is_file()}
    except OSError as cause:
        raise error(f"{folder} cannot be read: {cause.strerror or cause}") from cause
    required = list(required)
    for name in required:
        if name not in present:
            raise error(f"{folder} has no {name}; it is not complete")
    files = read_json(folder / MANIFEST_NAME, error=error).get("files")
    if not isinstance(files, dict) or not all(isinstance(entry, dict) for entry in files.values()):
        raise error(f"{folder / MANIFEST_NAME} should have a table 'files'")
    unlisted = [name for name in required if name not in files]
    if unlisted:
        raise error(f"{folder / MANIFEST_NAME} does not list {unlisted[0]}")
    for name, entry in files.items():
        if name not in present:  # the system is not asked for a name that a damaged manifest makes up
            raise error(f"{folder} has no {shown(name)}, which its manifest lists; it is not complete")
        _verify_file(folder / name, entry, error=error)


def _verify_file(path: Path, entry: Mapping[str, Any], *, error: type[TransduceError]) -> None:
    """Check the size and the checksum of one file against its entry in a manifest."""
    try:
        n_bytes = path.stat().st_size
        if n_bytes != entry.get("bytes"):
            raise error(f"{path} has {n_bytes:,} bytes, its manifest says {quoted(entry.get('bytes'))}")
        if sha256_of_file(path) != entry.get("sha256"):
            raise error(f"{path} is corrupt: its checksum is not the one in the manifest")
    except OSError as cause:
        raise error(f"{path} cannot be read: {cause.strerror or cause}") from cause
