"""Files: lines of text read as a stream, files written whole or not at all, folders with a manifest.

Lines are split on ``"\\n"`` alone: U+2028, form feeds and other Unicode separators are part of a line.
A folder with a manifest is written under a temporary name, flushed and renamed: a reader sees all of it or nothing.
Files of folders that transduce writes are regular files: links among them are not followed, pipes not waited for.
Those of a model folder may be links, as tools make them that keep large files in one place: it is read only.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import shutil
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, Any, Literal, cast

from transduce.errors import DataError, MissingFileError, TransduceError, quoted, shown

__all__ = [
    "LONGEST_LINE",
    "MANIFEST_NAME",
    "CutLine",
    "Migration",
    "XzStreams",
    "atomic_folder",
    "bring_back",
    "decoded_lines",
    "descriptor_named",
    "is_leftover",
    "is_running",
    "made_folder",
    "migrated",
    "open_binary",
    "open_in_place",
    "open_regular",
    "raw_lines",
    "read_json",
    "read_lines",
    "remove",
    "renamed_beside",
    "require_regular",
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
INCOMPLETE = "it is not complete; bring the file back from a copy, or make the folder anew"
LONGEST_LINE = 4 << 20  # bytes that are held of one line, as many as a long novel has; a sentence has some hundred
BEGINNING = 1000  # bytes that are kept of a line beyond that where it is not refused
SKIPPED_AT_A_TIME = 1 << 20  # bytes of its rest
BROKEN = (OSError, EOFError, lzma.LZMAError, zlib.error)  # what reading a file may come to, if it is compressed badly
MOST_LINKS = 40  # that lead to one another, as for the system
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Migration = Callable[[dict[str, Any]], dict[str, Any]]  # the values of one format to those of the next

# What keeps an open from following a link, from waiting for the other end of a pipe, and from taking a terminal.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_WARILY = _NO_LINK | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
_FLAGS = {
    "rb": os.O_RDONLY,
    "ab": os.O_WRONLY | os.O_APPEND | os.O_CREAT,
    "a+b": os.O_RDWR | os.O_APPEND | os.O_CREAT,
    "x+b": os.O_RDWR | os.O_CREAT | os.O_EXCL,
}


def open_binary(path: Path) -> IO[bytes]:
    """Open ``path`` for reading; ``.gz`` and ``.xz`` are decompressed on the way.

    Raises MissingFileError if there is no such file, DataError if it cannot be opened.
    """
    try:
        match path.suffix:
            case ".gz":
                return io.BufferedReader(gzip.open(path))
            case ".xz":
                return io.BufferedReader(XzStreams(path.open("rb")), io.DEFAULT_BUFFER_SIZE)
            case _:
                return path.open("rb")
    except FileNotFoundError as error:
        raise MissingFileError(path, where=where_looked(path)) from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


class XzStreams(io.RawIOBase):
    """All streams of an .xz file, one after the other.

    ``lzma.open`` takes a stream whose header is damaged for the end of the file, if there was one before it.
    """

    def __init__(self, compressed: IO[bytes]) -> None:
        self._compressed, self._stream, self._rest = compressed, lzma.LZMADecompressor(), b""
        self._is_between = False  # a stream has ended and none begun

    def readable(self) -> bool:
        """As every input."""
        return True

    def close(self) -> None:
        """Close the file, too."""
        self._compressed.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """The next bytes; 0 at the end. Raises LZMAError for damaged streams and EOFError for one that is cut."""
        while True:
            if self._stream.eof:
                self._rest, self._stream = self._stream.unused_data, lzma.LZMADecompressor(lzma.FORMAT_XZ)
                self._is_between = True
            if not self._rest and self._stream.needs_input:
                self._rest = self._compressed.read(io.DEFAULT_BUFFER_SIZE)
                if not self._rest:
                    if self._is_between:
                        return 0
                    raise EOFError("compressed file ended before the end-of-stream marker was reached")
            if self._is_between:
                self._rest = self._rest.lstrip(b"\0")  # padding
                self._is_between = not self._rest
                if self._is_between:
                    continue
            content, self._rest = self._stream.decompress(self._rest, len(buffer)), b""
            if content:
                buffer[: len(content)] = content
                return len(content)


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
        descriptor = os.open(path, _FLAGS[mode] | (_WARILY & ~_NO_LINK if may_be_link else _WARILY), 0o666)
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


def remove(path: Path) -> None:
    """Remove a file, a link or a folder with all that is in it; what cannot be removed stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def where_looked(path: Path) -> str:
    """What a relative path is relative to, to be told beside it; "" for an absolute one.

    >>> where_looked(Path("/data/train.en"))
    ''
    """
    return "" if path.is_absolute() else f"looked in {Path.cwd()}"


class CutLine(str):
    """The beginning of a line that is longer than ``LONGEST_LINE``; the rest was not held."""

    __slots__ = ()


def raw_lines(stream: IO[bytes]) -> Iterator[tuple[bytes, bool]]:
    """The lines of an open stream with their ends, and whether each is all of it.

    Of a line longer than ``LONGEST_LINE`` that much is given, and the rest is read and forgotten: a small compressed
    file may hold one of any length.
    """
    while raw := stream.readline(LONGEST_LINE + 1):
        is_whole = raw.endswith(b"\n") or len(raw) <= LONGEST_LINE
        yield raw, is_whole
        while not is_whole:
            rest = stream.readline(SKIPPED_AT_A_TIME)
            is_whole = not rest or rest.endswith(b"\n")


def read_lines(path: Path, *, escape_invalid: bool = False) -> Iterator[str]:
    """The lines of a UTF-8 text file, without their ends, as a stream.

    A carriage return before the line end and a byte-order mark at the start of the file are dropped. Bytes that are not
    UTF-8 are an error, or with ``escape_invalid`` become lone surrogates (U+DC80 to U+DCFF), left to the caller; so is
    a line longer than ``LONGEST_LINE``, or a ``CutLine``.
    Raises DataError, with the line number, for such lines and for broken compression.
    """
    errors = "surrogateescape" if escape_invalid else "strict"
    with open_binary(path) as stream:
        yield from decoded_lines(stream, str(path), errors=errors)


def decoded_lines(stream: IO[bytes], name: str, *, errors: str = "strict") -> Iterator[str]:
    """The lines of an open stream, as ``read_lines`` has them; ``name`` is what messages call it."""
    n_lines = 0
    try:
        for n_lines, (raw, is_whole) in enumerate(raw_lines(stream), start=1):
            line = raw.removeprefix(BYTE_ORDER_MARK) if n_lines == 1 else raw
            if is_whole:
                yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", errors)
            elif errors == "strict":
                raise DataError(
                    f"{name}:{n_lines} is longer than {LONGEST_LINE:,} bytes; a line is a sentence or some, so split it"
                )
            else:
                yield CutLine(line[:BEGINNING].decode("utf-8", errors))
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

    A pipe, a device or what ``/dev/stdout`` names is written to as it is: another file in its place would be no pipe.
    """
    in_place = open_in_place(path)
    if in_place is not None:
        try:
            with in_place as stream:
                yield stream
        except OSError as error:
            error.filename = error.filename or str(path)
            raise
        return
    with _replacement(path) as stream:
        yield stream


def open_in_place(path: Path) -> IO[bytes] | None:
    """A stream to what is written as it is, never replaced: a pipe, a device, a descriptor; None for all else.

    Where ``/dev/stdout`` leads to a file, it goes on after what is there: others may write to the same stream.
    """
    descriptor = descriptor_named(path)
    if descriptor is not None:
        return open(os.dup(descriptor), "wb")
    return path.open("wb") if path.exists() and not path.is_file() and not path.is_dir() else None


def descriptor_named(path: Path) -> int | None:
    """The number of the open descriptor that ``/dev/stdout``, ``/dev/fd/3`` or a link to these names."""
    folders = {"/dev/fd", os.path.realpath("/proc/self/fd")}
    for _ in range(MOST_LINKS):
        if path.name.isdecimal() and os.path.realpath(path.parent) in folders and path.exists():
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return None


@contextmanager
def _replacement(path: Path) -> Iterator[IO[bytes]]:
    """A stream to a new file beside ``path``, which takes its place when the block ends without an error."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with made_folder(path.parent):
        remove(temporary)
        try:
            with temporary.open("xb") as stream:  # new, so that nothing is written through a link of that name
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
        except OSError as error:
            error.filename = error.filename or str(path)  # a write that fails for want of room names no file
            raise
        finally:
            remove(temporary)


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
    """Write ``value`` as indented JSON, whole or not at all, in place of whatever was there."""
    with _replacement(path) as stream:
        stream.write((json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8"))


def read_json(path: Path, *, error: type[TransduceError] = DataError, may_be_link: bool = False) -> dict[str, Any]:
    """The JSON object in ``path``.

    Raises ``error`` if the file is missing, is no regular one, is not JSON or holds no object. With ``may_be_link`` a
    link to a regular file is one, too.
    """
    try:
        with open_regular(path, error=error, may_be_link=may_be_link) as stream:
            value = json.loads(stream.read())
    except OSError as cause:
        raise error(f"{path} cannot be read: {cause.strerror or cause}") from cause
    except (ValueError, RecursionError, MemoryError) as cause:  # bytes that are not UTF-8, or brackets without end
        raise error(f"{path} is not valid JSON: {cause}") from cause
    if not isinstance(value, dict):
        raise error(f"{path} should hold a JSON object, got {type(value).__name__}")
    return value


def migrated(
    values: Mapping[str, Any],
    migrations: Sequence[Migration],
    *,
    where: Path,
    first: int = 0,
    error: type[TransduceError] = DataError,
) -> dict[str, Any]:
    """The values of a JSON file as the newest format has them, without the number of their format (``format``).

    ``migrations[n]`` makes what format ``first + n + 1`` has of what format ``first + n`` had. A file without a number
    is of format 0, of before there were numbers. Raises ``error`` if the number is not known.

    >>> migrated({"colour": "red"}, [lambda values: {"color": values["colour"]}], where=Path("paint.json"))
    {'color': 'red'}
    """
    newest, found = first + len(migrations), values.get("format", 0)
    if type(found) is not int or not first <= found <= newest:
        raise error(f"{where} has format {quoted(found)}, this version reads formats {first} to {newest}")
    now = {name: value for name, value in values.items() if name != "format"}
    for migrate in migrations[found - first :]:
        now = migrate(now)
    return now


def sha256_of_file(path: Path) -> str:
    """The SHA-256 of a regular file's bytes, in hexadecimal."""
    with open_regular(path) as stream:
        return _sha256(stream)


def _sha256(stream: IO[bytes]) -> str:
    return hashlib.file_digest(cast(io.BufferedReader, stream), "sha256").hexdigest()


def is_leftover(path: Path, *, of: str) -> bool:
    """Whether ``path`` is what a process that was killed while it wrote the folder ``of`` has left behind.

    >>> is_leftover(Path("run/.store.77.tmp"), of="store"), is_leftover(Path("run/store"), of="store")
    (True, False)
    """
    return re.fullmatch(rf"\.{re.escape(of)}\.\d+\.(tmp|old)", path.name) is not None


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
    with made_folder(folder.parent):
        bring_back(folder)
        for path in folder.parent.iterdir():
            if is_leftover(path, of=folder.name) and not _is_of_another(path):
                remove(path)
        to_retire = folder.stat() if replace and folder.exists() else None
        temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
        temporary.mkdir()
        try:
            yield temporary
            for path in temporary.rglob("*"):
                if path.is_file():
                    path.chmod(0o666 & ~_umask())  # some libraries write for the owner alone
                _flush(path)
            _flush(temporary)
            _put_in_place(temporary, folder, to_retire)
            _flush(folder.parent)
        except OSError as error:
            error.filename = error.filename or str(folder)
            raise
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


def bring_back(folder: Path, *, whoever_wrote: bool = False) -> bool:
    """Undo the first half of a replacement: a process was killed when the old ``folder`` had gone and no new one come.

    Whether there was something to undo. With ``whoever_wrote`` the caller knows that nobody else is at it now.
    """
    if os.path.lexists(folder):
        return False
    for path in sorted(folder.parent.iterdir()):
        is_old = path.suffix == ".old" and is_leftover(path, of=folder.name) and not path.is_symlink()
        if is_old and (whoever_wrote or not _is_of_another(path)):
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


def verify_manifest(
    folder: Path,
    *,
    error: type[TransduceError],
    required: Iterable[str] = (),
    only: Iterable[str] | None = None,
    may_be_links: bool = False,
) -> None:
    """Check every file of ``folder`` against its manifest, or ``only`` some.

    Raises ``error`` if the folder, the manifest, a listed file or a ``required`` one is missing or no regular file,
    or if a size or a checksum differs. With ``may_be_links`` links to regular files are such files, too.
    """
    required, present = [*required, *(only or ())], _names_in(folder, error=error)
    for name in (*required, MANIFEST_NAME):
        if name not in present:
            raise error(f"{folder} has no {name}; {INCOMPLETE}")
    files = read_json(folder / MANIFEST_NAME, error=error, may_be_link=may_be_links).get("files")
    if not isinstance(files, dict) or not all(isinstance(entry, dict) for entry in files.values()):
        raise error(f"{folder / MANIFEST_NAME} should have a table 'files'")
    unlisted = [name for name in required if name not in files]
    if unlisted:
        raise error(f"{folder / MANIFEST_NAME} does not list {unlisted[0]}")
    for name in files if only is None else only:
        if name not in present:  # the system is not asked for a name that a damaged manifest makes up
            raise error(f"{folder} has no {shown(name)}, which its manifest lists; {INCOMPLETE}")
        _verify_file(folder / name, files[name], error=error, may_be_link=may_be_links)


def _names_in(folder: Path, *, error: type[TransduceError]) -> set[str]:
    """What is in a folder."""
    if not folder.is_dir():
        raise error(f"{folder} is not a folder")
    try:
        return {path.name for path in folder.iterdir()}
    except OSError as cause:
        raise error(f"{folder} cannot be read: {cause.strerror or cause}") from cause


def _verify_file(path: Path, entry: Mapping[str, Any], *, error: type[TransduceError], may_be_link: bool) -> None:
    """Check the size and the checksum of one file against its entry in a manifest."""
    try:
        with open_regular(path, error=error, may_be_link=may_be_link) as stream:
            n_bytes = os.fstat(stream.fileno()).st_size
            if n_bytes != entry.get("bytes"):
                raise error(f"{path} has {n_bytes:,} bytes, its manifest says {quoted(entry.get('bytes'))}")
            if _sha256(stream) != entry.get("sha256"):
                raise error(f"{path} is corrupt: its checksum is not the one in the manifest")
    except OSError as cause:
        raise error(f"{path} cannot be read: {cause.strerror or cause}") from cause
