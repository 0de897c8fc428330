"""Damaged and malicious archives and packages: correct text or a one-line error, and nothing written elsewhere."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import re
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fuzzing.damage import BYTES

from said import naming, says
from transduce.corpora import debian_packages, unpacking
from transduce.corpora.corpus import Corpus, RemoteFile, Text
from transduce.corpora.debian_packages import read_control_field, read_files
from transduce.corpora.getting import get_corpus
from transduce.corpora.unpacking import regular_files, unpack
from transduce.errors import DataError

pytestmark = pytest.mark.reliability

EDITS = [BYTES[name] for name in ("flip_a_bit", "truncate", "zero_a_range", "swap_two_blocks", "grow")]
MEMBERS = {"a.en": "dev/a.en", "a.de": "dev/a.de", "b.en": "dev/b.sgm"}
Compress = Callable[[bytes], bytes]


def _text(draw: Random, n_lines: int) -> bytes:
    words = "the dog a cat sleeps runs house and of in small great Vogel über Straße".split()
    return "".join(" ".join(draw.choices(words, k=draw.randint(3, 20))) + "\n" for _ in range(n_lines)).encode()


def _tar(members: Mapping[str, bytes | tarfile.TarInfo]) -> bytes:
    """Files by their content, and whatever else by its header alone."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
            else:
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _good_tar() -> bytes:
    """Wanted texts, and one after them that is not."""
    draw = Random(7)
    sgm = b'<doc>\n<seg id="1">A  dog.</seg>\n</doc>\n'
    return _tar({"dev/a.en": _text(draw, 300), "dev/a.de": _text(draw, 300), "./dev/b.sgm": sgm, "x": _text(draw, 400)})


def _entry(name: str, kind: bytes = tarfile.REGTYPE, **fields: Any) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type = kind
    for field, value in fields.items():
        setattr(entry, field, value)
    return entry


def _header(name: str, kind: bytes, size: int, **fields: Any) -> bytes:
    """Of an entry, with a size that need not be true."""
    return _entry(name, kind, size=size, **fields).tobuf(tarfile.GNU_FORMAT)


END = bytes(1024)


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _refused(archive: Path, members: Mapping[str, str], folder: Path) -> str:
    """Return the one-line error for an archive; nothing is written."""
    with pytest.raises(DataError) as caught:
        unpack(archive, members, folder)
    assert _files(folder) == {}
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(archive))
    assert len(message) < 1000
    return message


# Damage


def _holds(compress: Compress, n_cases: int, folder: Path) -> dict[str, int]:
    """Damage an archive in many ways: unpacking gives the correct text or nothing."""
    good = compress(_good_tar())
    archive, out = folder / "a.tgz", folder / "out"
    archive.write_bytes(good)
    unpack(archive, MEMBERS, folder / "right")
    right = _files(folder / "right")
    assert right["b.en"] == b"A dog.\n"
    counts = {"refused": 0, "the same": 0}
    for seed in range(n_cases):
        damaged = EDITS[seed % len(EDITS)](good, Random(seed))
        archive.write_bytes(damaged)
        shutil.rmtree(out, ignore_errors=True)
        try:
            unpack(archive, MEMBERS, out)
        except DataError as error:
            assert "\n" not in str(error), seed  # noqa: PT017
            assert _files(out) == {}, seed
            counts["refused"] += 1
        else:
            assert _files(out) == right, seed
            counts["the same"] += 1
    return counts


def test_a_damaged_tgz_is_refused_or_the_same(tmp_path: Path) -> None:
    assert _holds(gzip.compress, 150, tmp_path)["refused"] > 100


@pytest.mark.slow
@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"])
def test_1500_damaged_archives(compress: Compress, tmp_path: Path) -> None:
    assert _holds(compress, 1500, tmp_path)["refused"] > 1000


@pytest.mark.parametrize(("place", "message"), [(-1, "Incorrect length"), (-5, "CRC check failed")])
def test_the_trailer_of_gzip_is_compared(place: int, message: str, tmp_path: Path) -> None:
    content = bytearray(gzip.compress(_good_tar()))
    content[place] ^= 1
    (tmp_path / "a.tgz").write_bytes(content)
    assert message in _refused(tmp_path / "a.tgz", MEMBERS, tmp_path / "out")


def test_a_tar_without_compression_has_whole_headers_and_an_end(tmp_path: Path) -> None:
    """Its content has no sums; that is for published checksums."""
    good, archive, out = _good_tar(), tmp_path / "a.tar", tmp_path / "out"
    last = good.index(b"x\0\0\0")
    for damaged, message in [
        (good[:last], "unexpected end of data"),
        (good[: last + 100], "unexpected end of data"),
        (good[: last + 700], "unexpected end of data"),
        (good[:last] + b"y" + good[last + 1 :], "invalid entry"),
        (good + good, "data after the end marker"),
        (good.rstrip(b"\0") + b"\0" * 100, "unexpected end of data"),
    ]:
        archive.write_bytes(damaged)
        assert message in _refused(archive, MEMBERS, out)


def test_a_compressed_member_is_read_to_its_end(tmp_path: Path) -> None:
    for name, content in {"a.gz": gzip.compress(b"A dog.\n" * 99), "a.xz": lzma.compress(b"A dog.\n" * 99)}.items():
        place = len(content) - (6 if name == "a.gz" else 20)
        damaged = content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]
        (tmp_path / "a.tar").write_bytes(_tar({name: damaged}))
        assert says(_refused(tmp_path / "a.tar", {name: name}, tmp_path / "out"), "a.tar", name)


def test_what_a_killed_process_was_unpacking_goes(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = tmp_path / "out" / f".unpacking.{gone.pid}.tmp"
    other = tmp_path / "out" / f".unpacking.{os.getppid()}.tmp"
    for folder in (left, other):
        folder.mkdir(parents=True)
    (tmp_path / "a.tgz").write_bytes(gzip.compress(_good_tar()))
    unpack(tmp_path / "a.tgz", MEMBERS, tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {*MEMBERS, other.name}


# Checksums that are not published


def _corpus(address: str) -> Corpus:
    members = {"small/train.en": "dev/a.en", "small/train.de": "dev/a.de"}
    return Corpus(
        "small", ("en", "de"), size="", licence="", source="a test", train=(Text("small", "train"),),
        remote=(RemoteFile(address, members),),
    )  # fmt: skip


def test_the_checksum_of_a_copy_is_recorded_when_all_of_it_was_good(tmp_path: Path) -> None:
    corpus = _corpus("https://example.org/a.tgz")
    copies, data = tmp_path / "copies", tmp_path / "data"
    ledger = data / "downloads" / "checksums.json"
    copies.mkdir()
    good = gzip.compress(_good_tar())
    (copies / "a.tgz").write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(DataError, match=naming(copies / "a.tgz")):
        get_corpus(corpus, data, from_folder=copies)
    assert not ledger.exists()
    (copies / "a.tgz").write_bytes(good)
    assert get_corpus(corpus, data, from_folder=copies) == {"train": 300}
    assert list(json.loads(ledger.read_text())) == ["https://example.org/a.tgz"]

    shutil.rmtree(data / "small")
    (copies / "a.tgz").write_bytes(gzip.compress(_tar({"dev/a.en": b"other\n", "dev/a.de": b"anderes\n"})))
    with pytest.raises(DataError, match=naming("a.tgz", re.compile(r"sha256:\w+"), re.compile(r"sha256:\w+"))):
        get_corpus(corpus, data, from_folder=copies)
    assert not (data / "small").exists()


@pytest.mark.parametrize("entry", [3, [], "x", None, {"sha256": 7}, {}, {"sha256": "a\nb"}])
def test_a_ledger_with_an_odd_entry(entry: object, tmp_path: Path) -> None:
    address = "https://example.org/a.tgz"
    ledger = tmp_path / "data" / "downloads" / "checksums.json"
    ledger.parent.mkdir(parents=True)
    ledger.write_text(json.dumps({address: entry}))
    (tmp_path / "a.tgz").write_bytes(gzip.compress(_good_tar()))
    if entry is None:
        assert get_corpus(_corpus(address), tmp_path / "data", from_folder=tmp_path) == {"train": 300}
        return
    with pytest.raises(DataError, match=naming("checksums.json")):
        get_corpus(_corpus(address), tmp_path / "data", from_folder=tmp_path)


# Malicious archives


WANTED = {"in/a.en": "a.en"}
HUGE = 10**12


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_header("a.en", tarfile.REGTYPE, HUGE), "unexpected end"),
        (_header("b.en", tarfile.REGTYPE, HUGE) + _tar({"a.en": b"a\n"}), "unexpected end"),
        (_header("a.en", tarfile.GNUTYPE_LONGNAME, HUGE), "a header claims 1,000,000,000"),
        (_header("a.en", tarfile.XHDTYPE, HUGE), "a header claims 1,000,000,000"),
        (_header("a.en", tarfile.XGLTYPE, 8 << 20) + bytes(9 << 20), "a header claims 8,388"),
        (_header("a.en", tarfile.REGTYPE, -HUGE) + END, "an entry overlaps the one before it"),
        (_header("a.en", tarfile.DIRTYPE, -512) + END, "has no a.en"),
        (_header("a.en", tarfile.XHDTYPE, -512) + END, "a header claims -512 bytes"),
        (_tar({"a.en": _entry("a.en", tarfile.SYMTYPE, linkname="/etc/passwd")}), "has no a.en"),
        (_tar({"a.en": _entry("a.en", tarfile.LNKTYPE, linkname="/etc/passwd")}), "has no a.en"),
        (_tar({"a.en": _entry("a.en", tarfile.FIFOTYPE)}), "has no a.en"),
        (_tar({"a.en": _entry("a.en", tarfile.CHRTYPE, devmajor=1, devminor=5)}), "has no a.en"),
        (_tar({"a.en": _entry("a.en", tarfile.DIRTYPE)}), "has no a.en"),
        (_tar(dict.fromkeys(("../a.en", "/a.en", "a.en/", "././a.en", "b/../a.en", "a.en\n"), b"x")), "has no a.en"),
        (_header("././@LongLink", tarfile.GNUTYPE_LONGNAME, 6) + b"../../" + bytes(506) + END, "cannot be unpacked"),
        (_header("p", tarfile.XHDTYPE, 0) * 5000 + _tar({"a.en": b"a\n"}), "cannot be unpacked: maximum recursion"),
        (b"PK\x03\x04" + bytes(600), "cannot be unpacked"),
        (bytes(10), "unexpected end"),
        (END, "has no a.en"),
    ],
)
def test_headers_that_lie(content: bytes, message: str, tmp_path: Path) -> None:
    for name, compress in {"a.tar": bytes, "a.tgz": gzip.compress}.items():
        (tmp_path / name).write_bytes(compress(content))
        assert message in _refused(tmp_path / name, WANTED, tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"a.tar", "a.tgz", "out"}


def _pax(headers: Mapping[str, str], content: bytes = b"a\n") -> bytes:
    entry = _entry("a.en", size=len(content), pax_headers=dict(headers))
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "headers",
    [
        {"size": str(HUGE)},
        {"size": "-1"},
        {"size": "9" * 5000},
        {"size": "x\ny"},
        {"path": "../../a.en"},
        {"path": "/a.en"},
        {"path": "b\0"},
        {"GNU.sparse.size": str(HUGE), "GNU.sparse.map": "0,2"},
        {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(HUGE)},
        {"GNU.sparse.map": "x", "GNU.sparse.size": "1"},
    ],
)
def test_extended_headers_that_lie(headers: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(_pax(headers))
    _refused(tmp_path / "a.tar", WANTED, tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"a.tar", "out"}


def test_a_file_with_holes_is_no_text(tmp_path: Path) -> None:
    header = bytearray(_header("a.en", tarfile.GNUTYPE_SPARSE, 0))
    header[483:495] = f"{HUGE:o}".rjust(11, "0").encode() + b"\0"
    header[148:156] = b" " * 8
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    (tmp_path / "a.tar").write_bytes(bytes(header) + END)
    assert says(_refused(tmp_path / "a.tar", WANTED, tmp_path / "out"), "a.en")


def test_a_member_that_comes_twice(tmp_path: Path) -> None:
    one, again, other = (_tar({"a.en": text})[:1024] for text in (b"a\n", b"a\n", b"b\n"))
    (tmp_path / "a.tar").write_bytes(one + again + END)
    unpack(tmp_path / "a.tar", WANTED, tmp_path / "same")
    assert _files(tmp_path / "same") == {"in/a.en": b"a\n"}
    (tmp_path / "a.tar").write_bytes(one + other + END)
    assert says(_refused(tmp_path / "a.tar", WANTED, tmp_path / "out"), "a.en", "twice")


@pytest.mark.parametrize("name", ["a.en", "b.en", "a.sgm"])
def test_an_archive_that_would_fill_the_disk(name: str, tmp_path: Path) -> None:
    """Whether that is in a wanted member, in another, or in one line of one."""
    n_bytes = unpacking.MIN_ALLOWANCE + (64 << 20)
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=1) as stream:
        stream.write(_header(name, tarfile.REGTYPE, n_bytes))
        for _ in range(n_bytes >> 20):
            stream.write(bytes(1 << 20))
        stream.write(END)
    (tmp_path / "a.tgz").write_bytes(buffer.getvalue())
    message = _refused(tmp_path / "a.tgz", {"x": "a.sgm" if name == "a.sgm" else "a.en"}, tmp_path / "out")
    assert says(message, "16,777,216" if name == "a.sgm" else "too many")


def test_an_archive_of_entries_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MAX_ENTRIES", 100)
    (tmp_path / "a.tar").write_bytes(_tar({f"{n}.en": b"" for n in range(101)}))
    assert says(_refused(tmp_path / "a.tar", WANTED, tmp_path / "out"), 100)


def test_entries_are_not_kept(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(_tar({f"{n}.en": b"x" for n in range(50)}))
    with (tmp_path / "a.tar").open("rb") as stream:
        files = regular_files(stream, tmp_path / "a.tar", limit=1 << 20)
        assert [name for name, _ in files] == [f"{n}.en" for n in range(50)]


# Packages


needs_dpkg = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="no dpkg-deb")
CONTROL = b"Package: dog\nVersion: 1:2-3\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: a dog\n big\n"
PAGES = {f"./usr/share/dog/{n}.html": _text(Random(n), 60) for n in range(5)}


def _ar(members: list[tuple[str, bytes]], *, sizes: Mapping[str, str] | None = None) -> bytes:
    """An ar archive, with sizes in its headers that need not be true."""
    written = b"!<arch>\n"
    for name, content in members:
        size = (sizes or {}).get(name, str(len(content)))
        written += f"{name:<16}{'0':<12}{'0':<6}{'0':<6}{'100644':<8}{size:<10}".encode() + b"`\n" + content
        written += b"\n" * (len(content) % 2)
    return written


def _zstd(content: bytes) -> bytes:
    return subprocess.run(["zstd", "-c", "--check", "-q"], input=content, capture_output=True, check=True).stdout


def _deb(
    data: bytes | None = None, *, compress: Compress = lzma.compress, ending: str = ".xz", control: bytes = CONTROL
) -> list[tuple[str, bytes]]:
    members = _tar({"./": _entry("./", tarfile.DIRTYPE, mode=0o755), **PAGES}) if data is None else data
    return [
        ("debian-binary", b"2.0\n"),
        ("control.tar.xz", lzma.compress(_tar({"./control": control}))),
        (f"data.tar{ending}", compress(members)),
    ]


@needs_dpkg
@pytest.mark.parametrize(
    ("compress", "ending"),
    [
        (lzma.compress, ".xz"),
        (gzip.compress, ".gz"),
        pytest.param(_zstd, ".zst", marks=pytest.mark.skipif(shutil.which("zstd") is None, reason="no zstd")),
    ],
)
@pytest.mark.parametrize("n_cases", [12, pytest.param(300, marks=pytest.mark.slow)])
def test_a_damaged_package_is_refused_or_the_same(
    compress: Compress, ending: str, n_cases: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian_packages, "READ_TIMEOUT_S", 3)  # dpkg-deb never ends on some of the last kind
    good, deb = _ar(_deb(compress=compress, ending=ending)), tmp_path / "a.deb"
    deb.write_bytes(good)
    right = read_files(deb, bool)
    assert right == {name.removeprefix("./"): text for name, text in PAGES.items()}
    for seed in range(n_cases):
        edit = [*EDITS, BYTES["drop_a_part"], BYTES["change_bytes"]][seed % 7]
        deb.write_bytes(edit(good, Random(seed)))
        try:
            found = read_control_field(deb, "Version"), read_files(deb, bool)
        except DataError as error:
            assert "\n" not in str(error), seed  # noqa: PT017
        else:
            assert found == ("1:2-3", right), seed


def _package(tmp_path: Path, *members: tuple[str, bytes], sizes: Mapping[str, str] | None = None) -> Path:
    deb = tmp_path / "a.deb"
    deb.write_bytes(_ar(list(members), sizes=sizes))
    return deb


def _refused_package(deb: Path) -> str:
    with pytest.raises(DataError) as caught:
        read_files(deb, bool)
    assert {path.name for path in deb.parent.iterdir()} == {"a.deb"}
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 1000
    return message


@needs_dpkg
@pytest.mark.parametrize("size", ["0", "1", "9999999999", "-1", "x", "", "1e3", "99999999999999999999"])
@pytest.mark.parametrize("name", ["debian-binary", "control.tar.xz", "data.tar.xz"])
def test_a_package_whose_sizes_lie(name: str, size: str, tmp_path: Path) -> None:
    deb = tmp_path / "a.deb"
    deb.write_bytes(_ar(_deb(), sizes={name: size}))
    assert says(_refused_package(deb), deb)


@needs_dpkg
def test_a_package_without_a_part(tmp_path: Path) -> None:
    for n in range(3):
        members = _deb()
        del members[n]
        assert says(_refused_package(_package(tmp_path, *members)), "a.deb")
    assert says(_refused_package(_package(tmp_path)), "a.deb")


@pytest.mark.parametrize("first", ["", "printf something;"])
def test_a_dpkg_deb_that_hangs(first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So does what it has started."""
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "dpkg-deb"
    script.write_text(f"#!/bin/sh\n{first} sleep 600 & echo $! > '{tmp_path}/child'; sleep 600\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(debian_packages, "READ_TIMEOUT_S", 0.5)
    (tmp_path / "a.deb").touch()
    with pytest.raises(DataError, match=naming("a.deb", "dpkg-deb", "0.5 s")):
        read_files(tmp_path / "a.deb", bool)
    child = int((tmp_path / "child").read_text())
    until = time.monotonic() + 20
    while _is_alive(child):
        assert time.monotonic() < until
        time.sleep(0.05)


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


@needs_dpkg
def test_links_and_devices_of_a_package_are_left_out(tmp_path: Path) -> None:
    kinds = {
        "link": _entry("./link", tarfile.SYMTYPE, linkname=str(tmp_path)),
        "hard": _entry("./hard", tarfile.LNKTYPE, linkname="/etc/passwd"),
        "pipe.html": _entry("./pipe.html", tarfile.FIFOTYPE),
        "zero.html": _entry("./zero.html", tarfile.CHRTYPE, devmajor=1, devminor=5),
    }
    deb = _package(tmp_path, *_deb(_tar({**kinds, "./link/a.html": b"text"})))
    assert read_files(deb, bool) == {"link/a.html": b"text"}
    assert [path.name for path in tmp_path.iterdir()] == ["a.deb"]


@needs_dpkg
@pytest.mark.parametrize("second", ["./a", "a", "c/./d"])
def test_a_package_with_one_path_for_two_files(second: str, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in ("./a", "./c/d", second):
            archive.addfile(_entry(name))
    assert says(_refused_package(_package(tmp_path, *_deb(buffer.getvalue()))), "a.deb", "twice")


@needs_dpkg
def test_a_package_that_would_fill_the_disk(tmp_path: Path) -> None:
    n_bytes = unpacking.MIN_ALLOWANCE + (64 << 20)
    huge = _header("./a.html", tarfile.REGTYPE, n_bytes) + bytes(n_bytes) + END
    deb = _package(tmp_path, *_deb(huge, compress=lambda content: lzma.compress(content, preset=0)))
    del huge
    assert says(_refused_package(deb), deb, "too many")


@needs_dpkg
def test_what_a_package_says_of_itself(tmp_path: Path) -> None:
    members = _deb(control=CONTROL + b"Homepage:\n\tone\n two\nX: caf\xe9\n")
    deb = _package(tmp_path, *members)
    assert read_control_field(deb, "version") == "1:2-3"
    assert read_control_field(deb, "Homepage") == "one\n two"
    assert read_control_field(deb, "X") == "caf\ufffd"
    assert read_control_field(deb, "ackage") == ""
    control = ("control.tar.xz", lzma.compress(_tar({"./other": b"x"})))
    assert read_control_field(_package(tmp_path, members[0], control, members[2]), "Version") == ""
    huge = ("control.tar.xz", lzma.compress(_tar({"./control": bytes(unpacking.MIN_ALLOWANCE + (9 << 20))}), preset=0))
    with pytest.raises(DataError, match=naming("a.deb", "too many")):
        read_control_field(_package(tmp_path, members[0], huge, members[2]), "Version")
