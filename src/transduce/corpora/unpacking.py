"""Unpack the listed members of a .tar or .tgz as a stream; SGML becomes plain lines. Columns of tables in a .zip.

An archive is always read to its last byte, because compressed data ends with the checksum that reveals damage. Only
then are the texts moved to their final paths.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import os
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from transduce.errors import DataError, shown
from transduce.files import (
    READ_ERRORS,
    XzStreams,
    atomic_write,
    decoded_lines,
    open_binary,
    remove,
    remove_leftovers,
    write_lines,
)

__all__ = ["allowance", "check_compressed", "copy_whole", "regular_files", "segments", "unpack", "unpack_columns"]

# Limit of the unpacked bytes: text compresses 3 to 10 times, archives made to fill a disk 1,000 times and more.
MAX_EXPANSION = 100
MIN_ALLOWANCE = 64 << 20

MAX_ENTRIES = 1_000_000
MAX_READ_BYTES = 4 << 20  # in one read by tarfile, which trusts the sizes in headers
MAX_SEGMENT_BYTES = 16 << 20
CHUNK_BYTES = 1 << 20
TAR_BLOCK = 512
STAGE = "unpacking"  # .unpacking.PID.tmp in a data folder: texts whose archive has not been read completely

_DECOMPRESSORS: Mapping[bytes, Callable[[IO[bytes]], IO[bytes]]] = {
    b"\x1f\x8b": lambda stream: io.BufferedReader(gzip.GzipFile(fileobj=stream, mode="rb")),
    b"BZh": lambda stream: io.BufferedReader(bz2.BZ2File(stream)),
    b"\xfd7zXZ\0": lambda stream: io.BufferedReader(XzStreams(stream)),
}


def unpack(archive: Path, members: Mapping[str, str], folder: Path) -> None:
    """Extract the ``members`` of an archive (path below ``folder`` -> name in the archive): all of them or none.

    Other members are not written, and paths in the archive are not used. Members ending in ``.sgm`` become plain text,
    see ``segments``; compressed members are verified.

    Raises DataError, and writes nothing, if the archive is damaged, exceeds ``allowance`` or lacks a member.
    """
    name_of_member = {member: name for name, member in members.items()}
    sha256_sums: dict[str, str] = {}
    with archive.open("rb") as stream, _stage(folder) as stage:
        for entry, content in regular_files(stream, archive, limit=allowance(archive)):
            member = entry.removeprefix("./")
            if member not in name_of_member:
                continue
            if member in sha256_sums:
                if hashlib.file_digest(content, "sha256").hexdigest() != sha256_sums[member]:  # type: ignore[arg-type]
                    where = f"{archive}: {shown(member)}"
                    raise DataError(f"{where} occurs twice with different text; remove the archive and get it again")
                continue
            with _HashingReader(content) as reader:
                _write_text(stage / name_of_member[member], reader, where=f"{archive}: {member}")
                sha256_sums[member] = reader.sha256()
        missing = sorted(name_of_member.keys() - sha256_sums)
        if missing:
            raise DataError(f"{archive} has no {', '.join(missing)}; it is incomplete or of another version")
        for name in members:
            check_compressed(stage / name, named=f"{archive}: {members[name]}")
        _move(stage, folder, members)


def _move(stage: Path, folder: Path, names: Iterable[str]) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (stage / name).replace(folder / name)


def unpack_columns(archive: Path, members: Mapping[str, str], folder: Path) -> None:
    """Write columns of the tab-separated files in a .zip (path below ``folder`` -> FILE:N, column N): all or none.

    A row whose first two columns occurred before is left out; further ones, such as attributions, do not count.

    Raises DataError, and writes nothing, if the archive is damaged, exceeds ``allowance`` or lacks a file, or if a row
    has fewer than two columns or is not UTF-8.
    """
    with _stage(folder) as stage:
        for name, member in members.items():
            file, _, column = member.rpartition(":")
            (stage / name).parent.mkdir(parents=True, exist_ok=True)
            write_lines(stage / name, (row[int(column) - 1] for row in _unique_rows(archive, file)))
        _move(stage, folder, members)


def _unique_rows(archive: Path, file: str) -> Iterator[list[str]]:
    seen = set[tuple[str, ...]]()
    try:
        with zipfile.ZipFile(archive) as entries:
            if file not in entries.namelist():
                raise DataError(f"{archive} has no {file}; it is incomplete or of another version")
            if entries.getinfo(file).file_size > allowance(archive):
                raise DataError(f"{archive}: {file} has more than {allowance(archive):,} bytes, too many for its size")
            with entries.open(file) as content:
                for number, line in enumerate(decoded_lines(content, f"{archive}: {file}"), start=1):
                    row = line.split("\t")
                    if len(row) < 2:
                        raise DataError(
                            f"{archive}: {file}:{number} has no tab; expected a sentence TAB its translation"
                        )
                    if (key := tuple(row[:2])) not in seen:
                        seen.add(key)
                        yield row
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, *READ_ERRORS) as error:  # also an encrypted one
        raise DataError(f"{archive} cannot be unpacked: {shown(str(error))}; remove it and get it again") from error


def allowance(archive: Path) -> int:
    """Return the limit of an archive's unpacked bytes: 100 times its size plus 64 MiB."""
    return MIN_ALLOWANCE + MAX_EXPANSION * archive.stat().st_size


def regular_files(stream: IO[bytes], archive: Path, *, limit: int) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield (name, content) of the regular files in a tar archive, compressed or not, in archive order.

    Folders, links, devices and sparse files are skipped. Damage at the end is only raised after the last file, so
    contents must not be used before the iterator is exhausted.

    Raises DataError naming ``archive`` if it is damaged or truncated, or holds more than ``limit`` bytes.
    """
    tape = _Tape(stream, archive, limit=limit)
    try:
        with tarfile.TarFile(fileobj=tape) as entries:  # type: ignore[arg-type]  # it needs only read, tell and seek
            n_entries = 0
            while (entry := entries.next()) is not None:
                entries.members.clear()  # type: ignore[attr-defined]  # else the list grows with the archive
                n_entries += 1
                if n_entries > MAX_ENTRIES:
                    raise tape.damage(f"it has more than {MAX_ENTRIES:,} entries")
                if entry.isfile() and not entry.issparse():
                    content = entries.extractfile(entry)
                    assert content is not None  # true of regular files
                    with content:
                        yield entry.name, content
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:  # invalid headers
        raise tape.damage(str(error)) from error
    tape.require_end()


def check_compressed(path: Path, *, named: str | None = None) -> None:
    """Verify a ``.gz`` or ``.xz`` file by reading it to its end. Raises DataError if it is damaged."""
    if path.suffix not in (".gz", ".xz"):
        return
    try:
        with open_binary(path) as stream:
            while stream.read(CHUNK_BYTES):
                pass
    except READ_ERRORS as error:
        raise DataError(f"{named or path} is damaged: {shown(str(error))}; remove it and get it again") from error


class _Tape:
    """Forward-only view of an archive's decompressed bytes, up to a limit.

    It reports damage if tarfile seeks backwards, reads beyond the end, or reads more at once than a header needs.
    """

    def __init__(self, stream: IO[bytes], archive: Path, *, limit: int) -> None:
        self._archive = archive
        self._limit = limit
        self._position = 0
        self._last = b""
        try:
            head = stream.peek(max(map(len, _DECOMPRESSORS)))  # type: ignore[attr-defined]  # a BufferedReader
        except OSError as error:
            raise self.damage(str(error)) from error
        if not head:
            raise self.damage("empty file")
        opened = (open_(stream) for magic, open_ in _DECOMPRESSORS.items() if head.startswith(magic))
        self._stream = next(opened, stream)

    def tell(self) -> int:
        """Return the number of bytes read."""
        return self._position

    def seek(self, position: int) -> None:
        """Skip forward to a position."""
        if position < self._position:
            raise self.damage("an entry overlaps the one before it")
        while position > self._position:
            self.read(min(CHUNK_BYTES, position - self._position))

    def read(self, n_bytes: int) -> bytes:
        """Read exactly ``n_bytes``."""
        if not 0 <= n_bytes <= MAX_READ_BYTES:
            raise self.damage(f"a header claims {n_bytes:,} bytes")
        self._last = self._read(n_bytes)
        if len(self._last) < n_bytes:
            raise self.damage(f"unexpected end of data after {self._position:,} unpacked bytes")
        return self._last

    def require_end(self) -> None:
        """Require the end marker: after the last entry only zeros, at least one block of them."""
        if self._last.count(0) != TAR_BLOCK:
            raise self.damage(f"invalid entry before unpacked byte {self._position:,}")
        while rest := self._read(CHUNK_BYTES):
            if rest.count(0) != len(rest):
                raise self.damage(f"data after the end marker, before unpacked byte {self._position:,}")

    def damage(self, reason: str) -> DataError:
        """Return the error to raise for a damaged archive."""
        return DataError(f"{self._archive} cannot be unpacked: {shown(reason)}; remove it and get it again")

    def _read(self, n_bytes: int) -> bytes:
        try:
            content = self._stream.read(n_bytes)
        except READ_ERRORS as error:
            raise self.damage(str(error)) from error
        self._position += len(content)
        if self._position > self._limit:
            raise self.damage(f"it holds more than {self._limit:,} bytes, too many for text of its size")
        return content


class _HashingReader(io.RawIOBase):
    """Stream that computes the SHA-256 of the bytes read from it."""

    def __init__(self, content: IO[bytes]) -> None:
        self._content = content
        self._sum = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        part = self._content.read(len(buffer))
        buffer[: len(part)] = part
        self._sum.update(part)
        return len(part)

    def sha256(self) -> str:
        return self._sum.hexdigest()


@contextmanager
def _stage(folder: Path) -> Iterator[Path]:
    """Create a temporary folder in ``folder`` for unverified texts; remove those left by killed processes."""
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder / STAGE)
    stage = folder / f".{STAGE}.{os.getpid()}.tmp"
    stage.mkdir()
    try:
        yield stage
    finally:
        remove(stage)


def _write_text(path: Path, content: io.RawIOBase, *, where: str) -> None:
    buffered = io.BufferedReader(content, CHUNK_BYTES)
    if where.endswith(".sgm"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_lines(path, segments(_bounded_lines(buffered, where=where), where=where))
    else:
        copy_whole(buffered, path)
    buffered.detach()


def _bounded_lines(stream: IO[bytes], *, where: str) -> Iterator[bytes]:
    """Yield the lines of a stream. Raises DataError for one longer than MAX_SEGMENT_BYTES."""
    number = 0
    while line := stream.readline(MAX_SEGMENT_BYTES + 1):
        number += 1
        if len(line) > MAX_SEGMENT_BYTES:
            raise DataError(f"{where}:{number} has more than {MAX_SEGMENT_BYTES:,} bytes, too many for a test set line")
        yield line


def segments(lines: Iterable[bytes], *, where: str) -> Iterator[str]:
    """Yield the text of each ``<seg ...>...</seg>`` in a shared task's test set, which has one segment a line.

    Whitespace becomes single spaces; entities stay unresolved, as in sacreBLEU's copies of these sets. Raises
    DataError, with the line number, for a segment that is not UTF-8 or does not end on its line.

    >>> list(segments([b'<doc id="a">', b'<seg id="1"> A  dog &amp; a cat. </seg>'], where="a.sgm"))
    ['A dog &amp; a cat.']
    """
    for number, raw in enumerate(lines, start=1):
        if not raw.startswith(b"<seg "):
            continue
        try:
            text, end, _ = raw.decode("utf-8").rpartition("</seg>")
        except UnicodeDecodeError as error:
            raise DataError(f"{where}:{number} is not UTF-8: byte 0x{error.object[error.start]:02x}") from error
        if not end:
            raise DataError(f"{where}:{number}: the segment does not end on its line")
        yield " ".join(text.partition(">")[2].split())


def copy_whole(content: IO[bytes], path: Path) -> None:
    """Copy a stream to ``path`` atomically."""
    with atomic_write(path) as copy:
        shutil.copyfileobj(content, copy, CHUNK_BYTES)
