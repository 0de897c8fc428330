"""A zip archive in which some members are replaced, and every other byte stays.

Only members with new bytes are compressed; the others keep their record as it is: compressed bytes, date, flags, extra
fields. Nothing is written to disk, so names of members are names only. The format is that of PKWARE's APPNOTE 6.3.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from transduce.documents.document import MAX_TEXT_BYTES
from transduce.errors import DataError, quoted, shown

__all__ = ["Package", "has_type", "is_package"]

MAX_MEMBER_BYTES = 256 << 20  # of a member that is read, and of all of them
MAX_READ_BYTES = 1 << 30
MAX_RATIO, SMALL_BYTES = 250, 4 << 20  # of a member above some size: the XML of large tables has about 50
MAX_ARCHIVE_BYTES, MAX_MEMBERS = 0xFFFFFFFE, 0xFFFE  # sizes and offsets have 32 bits, numbers 16

_LOCAL = struct.Struct("<4s5H3I2H")  # signature, version, flags, method, time, date, crc, sizes, lengths
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END_64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR_64 = struct.Struct("<4sIQI")
_STORED, _DEFLATED = 0, 8
_ENCRYPTED, _HAS_DESCRIPTOR, _UTF_8 = 1, 8, 0x800  # flags
_ZIP_64 = 1  # the extra field with sizes and offset of 64 bits
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


@dataclass(frozen=True, slots=True)
class _Member:
    """An entry of the central directory."""

    record: bytes  # as it is there
    flags: int
    method: int
    crc: int
    compressed_bytes: int
    n_bytes: int
    offset: int  # of its local record


def is_package(data: bytes) -> bool:
    """Whether bytes begin as a zip archive does."""
    return data.startswith(b"PK\x03\x04")


def has_type(media_type: str) -> Callable[[bytes], bool]:
    """Return what tells whether an archive begins with a member that names a type, as OpenDocument and EPUB have it."""
    return lambda data: is_package(data) and data.startswith(b"mimetype" + media_type.encode(), 30)


class Package:
    """A zip archive. Raises DataError for bytes that are none, and for encrypted and damaged ones."""

    def __init__(self, data: bytes) -> None:
        if data.startswith(_OLE):
            raise DataError("it has a password or is of an old format (.doc, .ppt, .xls); save it anew without one")
        self._data = data
        self._members: dict[str, _Member] = {}
        self._n_read = 0
        try:
            self._read_directory()
        except struct.error:
            raise _damaged("its list of members is cut off") from None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its members, in the order of its list."""
        return tuple(self._members)

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def read(self, name: str, *, is_large: bool = False) -> bytes:
        """Return the bytes of a member. Raises DataError if it is damaged or too large.

        ``is_large``: it may have more than MAX_TEXT_BYTES.
        """
        member = self._members[name]
        if member.flags & _ENCRYPTED:
            raise DataError(f"{shown(name)} in it is encrypted; save the document without a password")
        self._n_read += member.n_bytes
        is_bomb = member.n_bytes > max(SMALL_BYTES, MAX_RATIO * member.compressed_bytes)
        most = MAX_MEMBER_BYTES if is_large else min(MAX_TEXT_BYTES, MAX_MEMBER_BYTES)
        if is_bomb or member.n_bytes > most or self._n_read > MAX_READ_BYTES:
            raise DataError(f"{shown(name)} in it has {member.n_bytes:,} bytes: too many for the texts of a document")
        start = self._data_start(name)
        stored = self._data[start : start + member.compressed_bytes]
        if member.method == _DEFLATED:
            decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
            try:
                content = decompressor.decompress(stored, member.n_bytes + 1)
            except zlib.error:
                raise _damaged(f"{shown(name)} cannot be decompressed") from None
        elif member.method == _STORED:
            content = stored
        else:
            raise DataError(f"{shown(name)} in it is compressed by method {member.method}; save the document anew")
        if len(content) != member.n_bytes or zlib.crc32(content) != member.crc:
            raise _damaged(f"{shown(name)} has other bytes than its sum says")
        return content

    def written(self, replaced: Mapping[str, bytes]) -> bytes:
        """Return the archive with other bytes in some members; with none, it is the same."""
        if not replaced:
            return self._data
        order = sorted(self._members, key=lambda name: self._members[name].offset)
        ends = [self._members[name].offset for name in order[1:]] + [self._directory_start]
        pieces, length = [self._data[: self._members[order[0]].offset]], self._members[order[0]].offset
        records = dict[str, bytes]()
        for name, end in zip(order, ends, strict=True):
            member = self._members[name]
            local = self._data[member.offset : end]
            changed = member
            if name in replaced:
                local, changed = self._compressed(name, replaced[name])
            records[name] = _moved(changed, length)
            pieces.append(local)
            length += len(local)
        directory = b"".join(records[name] for name in self._members)
        if length + len(directory) > MAX_ARCHIVE_BYTES:
            raise DataError(f"with its translations it would have {length:,} bytes: too many for one document")
        n_members = len(self._members)
        end_record = _END.pack(b"PK\x05\x06", 0, 0, n_members, n_members, len(directory), length, len(self._comment))
        return b"".join([*pieces, directory, end_record, self._comment])

    def _read_directory(self) -> None:
        """Read the list of members, which stands at the end."""
        data = self._data
        end = _end_of_archive(data)
        _, disk, first_disk, _, n_members, n_bytes, start, _ = _END.unpack_from(data, end)
        self._comment = data[end + _END.size :]
        if data.startswith(b"PK\x06\x07", max(0, end - _LOCATOR_64.size)):
            _, _, at, _ = _LOCATOR_64.unpack_from(data, end - _LOCATOR_64.size)
            if not data.startswith(b"PK\x06\x06", at):
                raise _damaged("its list of members is not where its end says")
            *_, n_members, n_bytes, start = _END_64.unpack_from(data, at)
        if disk or first_disk:
            raise DataError("it is a part of an archive of several files; save the document anew")
        if n_members > MAX_MEMBERS:
            raise DataError(f"it has {n_members:,} members: too many for one document")
        self._directory_start, position = start, start
        for _ in range(n_members):
            position = self._read_member(position)
        if position != start + n_bytes or not self._members:
            raise _damaged("its list of members is not as long as its end says")
        if len({member.offset for member in self._members.values()}) < n_members:
            raise _damaged("two of its members are in one place")

    def _read_member(self, position: int) -> int:
        """Read an entry of the list of members, and return the position after it."""
        fields: list[int]
        signature, _, _, *fields = _CENTRAL.unpack_from(self._data, position)
        flags, method, _, _, crc, compressed, full, n_name, n_extra, n_comment, *_, offset = fields
        if signature != b"PK\x01\x02":
            raise _damaged("its list of members is not where its end says")
        name_start = position + _CENTRAL.size
        raw_name = self._data[name_start : name_start + n_name]
        name = raw_name.decode("utf-8" if flags & _UTF_8 else "cp437", "replace")
        extra = self._data[name_start + n_name : name_start + n_name + n_extra]
        full, compressed, offset = _with_64_bits(extra, full, compressed, offset)
        end = name_start + n_name + n_extra + n_comment
        if end > self._directory_start + len(self._data) or offset >= self._directory_start:
            raise _damaged(f"{shown(name)} is outside it")
        if name in self._members:
            raise DataError(f"it has two members of the name {quoted(name)}; save the document anew")
        record = self._data[position:end]
        self._members[name] = _Member(record, flags, method, crc, compressed, full, offset)
        return end

    def _data_start(self, name: str) -> int:
        """Return where the compressed bytes of a member begin."""
        offset = self._members[name].offset
        if not self._data.startswith(b"PK\x03\x04", offset) or offset + _LOCAL.size > len(self._data):
            raise _damaged(f"{shown(name)} is not where its list of members says")
        lengths: tuple[int, int] = struct.unpack_from("<2H", self._data, offset + _LOCAL.size - 4)
        return offset + _LOCAL.size + sum(lengths)

    def _compressed(self, name: str, content: bytes) -> tuple[bytes, _Member]:
        """Return the local record of a member with other bytes, and its entry, but for the offset."""
        member = self._members[name]
        stored = content
        if member.method == _DEFLATED:
            compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
            stored = compressor.compress(content) + compressor.flush()
        start = self._data_start(name)
        head = self._data[member.offset : start]
        signature, version, flags, method, time, date, *_, n_name, _ = _LOCAL.unpack_from(head)
        flags &= ~_HAS_DESCRIPTOR
        crc, sizes = zlib.crc32(content), (len(stored), len(content))
        extra = _without_64_bits(head[_LOCAL.size + n_name :])
        local = _LOCAL.pack(signature, version, flags, method, time, date, crc, *sizes, n_name, len(extra))
        changed = _Member(member.record, member.flags & ~_HAS_DESCRIPTOR, method, crc, *sizes, 0)
        return local + head[_LOCAL.size : _LOCAL.size + n_name] + extra + stored, changed


def _end_of_archive(data: bytes) -> int:
    """Return where the last record begins, after which there is only a comment."""
    end = len(data)
    while (end := data.rfind(b"PK\x05\x06", max(0, len(data) - _END.size - 0xFFFF), end)) >= 0:
        record = data[end : end + _END.size]
        if len(record) == _END.size and end + _END.size + _END.unpack(record)[-1] == len(data):
            return end
    raise _damaged("it is cut off") if is_package(data) else DataError("it is no zip archive; save it anew")


def _damaged(reason: str) -> DataError:
    return DataError(f"it is damaged: {reason}; copy it again or save it anew")


def _moved(member: _Member, offset: int) -> bytes:
    """Return the entry of a member whose local record is at an offset."""
    fields = list(_CENTRAL.unpack_from(member.record))
    n_name, n_extra = fields[10], fields[11]
    rest = member.record[_CENTRAL.size :]
    extra = _without_64_bits(rest[n_name : n_name + n_extra])
    fields[3] = member.flags
    fields[7:10] = member.crc, member.compressed_bytes, member.n_bytes
    fields[11], fields[16] = len(extra), offset
    return _CENTRAL.pack(*fields) + rest[:n_name] + extra + rest[n_name + n_extra :]


def _fields(extra: bytes) -> list[tuple[int, bytes]]:
    """Return the extra fields of a record: their kind, and all their bytes. What is no field has kind -1."""
    fields, position = list[tuple[int, bytes]](), 0
    while position + 4 <= len(extra):
        kind, n_bytes = struct.unpack_from("<2H", extra, position)
        fields.append((kind, extra[position : position + 4 + n_bytes]))
        position += 4 + n_bytes
    return [*fields, (-1, extra[position:])]


def _without_64_bits(extra: bytes) -> bytes:
    return b"".join(field for kind, field in _fields(extra) if kind != _ZIP_64)


def _with_64_bits(extra: bytes, *values: int) -> list[int]:
    """Return the values of a record; those of 0xFFFFFFFF stand in an extra field."""
    position, (wide, *_) = 4, [*(field for kind, field in _fields(extra) if kind == _ZIP_64), b""]
    found = list[int]()
    for value in values:
        if value == 0xFFFFFFFF:
            (value,) = struct.unpack_from("<Q", wide, position)
            position += 8
        found.append(value)
    return found
