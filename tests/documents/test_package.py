"""Zip archives: what is not replaced keeps its bytes, and what cannot be read safely is refused in a line."""

from __future__ import annotations

import contextlib
import io
import struct
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from small_packages import docx, zipped
from transduce.documents import package as package_module
from transduce.documents import read_document
from transduce.documents.package import Package, is_package
from transduce.errors import DataError

MEMBERS = {"mimetype": b"a/b", "one.xml": b"<a>" + b"x" * 500 + b"</a>", "two/three.bin": bytes(range(256))}


def archive(*, is_streamed: bool = False) -> bytes:
    """An archive with a comment, extra fields and dates; streamed: sizes stand behind the members, in 64 bits."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for number, (name, content) in enumerate(MEMBERS.items()):
            info = zipfile.ZipInfo(name, (2001, 2, 3 + number, 4, 5, 6))
            info.comment, info.extra = b"a comment", struct.pack("<2H3s", 0x7777, 3, b"abc")
            info.compress_type = zipfile.ZIP_DEFLATED if number else zipfile.ZIP_STORED
            with file.open(info, "w", force_zip64=is_streamed) as member:
                member.write(content)
        file.comment = b"of the archive"
    return buffer.getvalue()


def tampered(data: bytes, old: bytes, new: bytes) -> bytes:
    assert old in data
    return data.replace(old, new)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_only_what_is_replaced_changes(is_streamed: bool) -> None:
    data = archive(is_streamed=is_streamed)
    package = Package(data)
    assert is_package(data)
    assert {name: package.read(name) for name in package.names} == MEMBERS
    assert package.written({}) == data
    written = package.written({"one.xml": b"<other/>" * 90})
    before, after = zipfile.ZipFile(io.BytesIO(data)), zipfile.ZipFile(io.BytesIO(written))
    assert after.testzip() is None
    assert after.comment == before.comment
    for old, new in zip(before.infolist(), after.infolist(), strict=True):
        assert (old.filename, old.date_time, old.comment, old.compress_type, old.external_attr) == (
            *(new.filename, new.date_time, new.comment, new.compress_type, new.external_attr),
        )
        assert struct.pack("<2H3s", 0x7777, 3, b"abc") in new.extra
        if old.filename != "one.xml":
            assert old.compress_size == new.compress_size
            assert before.read(old) == after.read(new)
    assert after.read("one.xml") == b"<other/>" * 90
    # The records of the others are the same bytes.
    first, last = before.infolist()[0], before.infolist()[2]
    assert written[: before.infolist()[1].header_offset] == data[: before.infolist()[1].header_offset]
    record = data[last.header_offset : before.start_dir]
    assert record in written
    assert first.header_offset == 0
    assert Package(written).written({"one.xml": MEMBERS["one.xml"], "mimetype": b"c"}) != data


@given(st.dictionaries(st.sampled_from(sorted(MEMBERS)), st.binary(max_size=40)), st.booleans())
def test_any_members_may_be_replaced(replaced: dict[str, bytes], is_streamed: bool) -> None:
    written = zipfile.ZipFile(io.BytesIO(Package(archive(is_streamed=is_streamed)).written(replaced)))
    assert {name: written.read(name) for name in written.namelist()} == {**MEMBERS, **replaced}


def test_a_comment_may_look_like_the_end() -> None:
    data = tampered(archive(), b"of the archive", b"PK\x05\x06 is no end")
    assert Package(data).names == tuple(MEMBERS)


def test_what_stands_before_the_archive_stays() -> None:
    small = zipped({"a": b"1", "b": b"2"})
    buffer = io.BytesIO(b"#!prefix\n")
    buffer.seek(0, 2)
    with zipfile.ZipFile(buffer, "a") as file:
        file.writestr("a", b"1")
    written = Package(buffer.getvalue()).written({"a": b"22"})
    assert written.startswith(b"#!prefix\n")
    assert zipfile.ZipFile(io.BytesIO(written)).read("a") == b"22"
    assert Package(small).names == ("a", "b")


@pytest.mark.parametrize("length", [0, 3, 21, 60, 200, -30, -1])
def test_a_truncated_archive_is_refused(length: int) -> None:
    with pytest.raises(DataError) as caught:
        read_document(docx("<w:p/>")[:length], "a.docx")
    assert "\n" not in str(caught.value)


@given(st.integers(0, 2_000), st.binary(min_size=1, max_size=8))
def test_damage_is_refused_or_harmless(position: int, noise: bytes) -> None:
    data = archive()
    position %= len(data)
    damaged = data[:position] + noise + data[position + len(noise) :]
    with contextlib.suppress(DataError):
        package = Package(damaged)
        for name in package.names:
            package.read(name)
        package.written({package.names[0]: b"x"})


def test_locked_and_old_documents_are_refused() -> None:
    with pytest.raises(DataError, match="has a password or is of an old format"):
        Package(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600)
    data = bytearray(zipped({"a": b"1"}))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(DataError, match="a in it is encrypted"):
        Package(bytes(data)).read("a")


def test_two_members_of_a_name_are_refused() -> None:
    with pytest.raises(DataError, match="two members of the name 'aa'"):
        Package(tampered(zipped({"aa": b"1", "bb": b"2"}), b"bb", b"aa"))


def test_names_are_names_only() -> None:
    package = Package(zipped({"../../etc/x": b"1", "/abs": b"2", "a\nb": b"3"}))
    assert package.read("../../etc/x") == b"1"
    assert zipfile.ZipFile(io.BytesIO(package.written({"/abs": b"9"}))).read("/abs") == b"9"


def test_a_bomb_is_refused_before_it_is_decompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_module, "MAX_MEMBER_BYTES", 50_000)
    monkeypatch.setattr(package_module, "MAX_READ_BYTES", 80_000)
    data = zipped({"first": b"", "large": b"0" * 60_000, "a": b"0" * 45_000, "b": b"0" * 45_000})
    with pytest.raises(DataError, match="large in it has 60,000 bytes: too many"):
        Package(data).read("large")
    package = Package(data)
    package.read("a")
    with pytest.raises(DataError, match="b in it has 45,000 bytes: too many"):
        package.read("b")
    monkeypatch.setattr(package_module, "MAX_MEMBER_BYTES", 1 << 30)
    monkeypatch.setattr(package_module, "MAX_READ_BYTES", 1 << 30)
    monkeypatch.setattr(package_module, "SMALL_BYTES", 50_000)
    assert len(Package(data).read("a")) == 45_000
    with pytest.raises(DataError, match="large in it has 60,000 bytes: too many"):
        Package(data).read("large")
    monkeypatch.undo()
    lying = tampered(data, struct.pack("<I", 60_000), struct.pack("<I", 10))
    with pytest.raises(DataError, match="damaged: large has other bytes"):
        Package(lying).read("large")


def test_unknown_compression_is_named() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_BZIP2) as file:
        file.writestr("a", b"1")
    with pytest.raises(DataError, match="compressed by method 12"):
        Package(buffer.getvalue()).read("a")
