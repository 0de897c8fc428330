"""Lines, atomic writing, manifests."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest

from transduce.errors import CheckpointError, DataError
from transduce.files import (
    atomic_folder,
    read_json,
    read_lines,
    verify_manifest,
    write_json,
    write_lines,
    write_manifest,
    write_text,
)

pytestmark = pytest.mark.reliability

ODD_LINES = [
    "plain",
    "",
    "  blanks  ",
    "form\x0cfeed",
    "sep\u2028arator",
    "next\x85line",
    "tab\t",
    "nul\0",
    "🐕 犬",
    "cr\rin",
]


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_lines_end_at_line_feeds_alone(tmp_path: Path, suffix: str) -> None:
    content = "\n".join(ODD_LINES).encode()
    pack = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[suffix]
    path = tmp_path / f"lines.txt{suffix}"
    path.write_bytes(pack(content))
    assert list(read_lines(path)) == ODD_LINES
    path.write_bytes(pack(content + b"\n"))  # a last line end makes no further line
    assert list(read_lines(path)) == ODD_LINES


def test_windows_line_ends_and_a_byte_order_mark_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "windows.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n\xef\xbb\xbfthree")
    assert list(read_lines(path)) == ["one", "two", "\ufeffthree"]
    path.write_bytes(b"")
    assert list(read_lines(path)) == []


def test_bytes_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    path = tmp_path / "latin1.txt"
    path.write_bytes(b"fine\nB\xe4r\n")
    with pytest.raises(DataError, match=r"latin1\.txt:2 is not UTF-8: byte 0xe4 at column 2"):
        list(read_lines(path))


def test_broken_compression_is_named(tmp_path: Path) -> None:
    for suffix, pack in ((".gz", gzip.compress), (".xz", lzma.compress)):
        path = tmp_path / f"cut{suffix}"
        path.write_bytes(pack(b"line\n" * 10_000)[:-20])
        with pytest.raises(DataError, match=f"cut{suffix} cannot be read after line"):
            list(read_lines(path))


def test_written_lines_come_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "out.txt"
    assert write_lines(path, ODD_LINES) == len(ODD_LINES)
    assert list(read_lines(path)) == ODD_LINES


def test_a_failed_writer_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    write_text(path, "old")

    def lines() -> object:
        yield "new"
        raise RuntimeError("out of ideas")

    with pytest.raises(RuntimeError, match="out of ideas"):
        write_lines(path, lines())  # type: ignore[arg-type]
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "folder"

    def fill(text: str, *, fails: bool, replace: bool) -> None:
        with atomic_folder(target, replace=replace) as temporary:
            write_text(temporary / "a", text)
            if fails:
                raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        fill("first", fails=True, replace=False)
    assert list(tmp_path.iterdir()) == []
    fill("first", fails=False, replace=False)
    with pytest.raises(DataError, match="exists already"):
        fill("second", fails=False, replace=False)
    with pytest.raises(RuntimeError, match="power cut"):
        fill("second", fails=True, replace=True)
    assert (target / "a").read_text() == "first"
    fill("second", fails=False, replace=True)
    assert (target / "a").read_text() == "second"
    assert list(tmp_path.iterdir()) == [target]


def test_a_manifest_holds_its_folder_together(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    write_text(folder / "a", "alpha")
    write_text(folder / "notes", "free")
    write_manifest(folder, exempt=("notes",))
    verify_manifest(folder, error=CheckpointError, required=("a",))
    write_text(folder / "notes", "changed at will")
    verify_manifest(folder, error=CheckpointError, required=("a",))
    with pytest.raises(CheckpointError, match="does not list notes"):
        verify_manifest(folder, error=CheckpointError, required=("notes",))
    write_text(folder / "a", "alphb")
    with pytest.raises(CheckpointError, match="corrupt"):
        verify_manifest(folder, error=CheckpointError)
    write_text(folder / "a", "alph")
    with pytest.raises(CheckpointError, match="4 bytes, its manifest says 5"):
        verify_manifest(folder, error=CheckpointError)
    write_json(folder / "manifest.json", {"files": {"../a": {"bytes": 4, "sha256": ""}}})
    with pytest.raises(CheckpointError, match=r"no \.\./a"):
        verify_manifest(folder, error=CheckpointError)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b"null", b"[" * 100_000])
def test_json_that_is_no_object_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"x\.json"):
        read_json(path)
