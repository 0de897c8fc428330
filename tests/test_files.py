"""Lines, atomic writing, manifests."""

from __future__ import annotations

import errno
import gzip
import lzma
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import pytest

from said import naming
from transduce.errors import CheckpointError, DataError
from transduce.files import (
    UnverifiedFile,
    atomic_folder,
    descriptor_named,
    open_regular,
    read_json,
    read_lines,
    verified_except,
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
    path.write_bytes(pack(content + b"\n"))  # a final line end adds no line
    assert list(read_lines(path)) == ODD_LINES


def test_all_streams_of_an_xz_file_are_read_or_refused(tmp_path: Path) -> None:
    one, two = lzma.compress(b"one\n" * 1000), lzma.compress(b"two\n" * 100_000)
    path = tmp_path / "text.xz"
    for content in (one + two, one + bytes(8) + two + bytes(4)):  # with padding
        path.write_bytes(content)
        assert list(read_lines(path)) == ["one"] * 1000 + ["two"] * 100_000
    for damaged in (
        one + b"\0" * 3 + b"x",
        one + bytes([two[0] ^ 1]) + two[1:],
        one + two[:-1],
        one + two[:40],
        one[:-1],
        b"",
    ):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=naming(path, re.compile(r"\bline \d+"))):
            list(read_lines(path))


def test_windows_line_ends_and_a_byte_order_mark_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "windows.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n\xef\xbb\xbfthree")
    assert list(read_lines(path)) == ["one", "two", "\ufeffthree"]
    path.write_bytes(b"")
    assert list(read_lines(path)) == []


def test_bytes_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    path = tmp_path / "latin1.txt"
    path.write_bytes(b"fine\nB\xe4r\n")
    with pytest.raises(DataError, match=naming(f"{path}:2", "UTF-8", "0xe4", "column 2")):
        list(read_lines(path))


def test_broken_compression_is_named(tmp_path: Path) -> None:
    for suffix, pack in ((".gz", gzip.compress), (".xz", lzma.compress)):
        path = tmp_path / f"cut{suffix}"
        path.write_bytes(pack(b"line\n" * 10_000)[:-20])
        with pytest.raises(DataError, match=naming(path, re.compile(r"\bline [1-9]\d*"))):
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
    with pytest.raises(DataError, match=naming(target, "exists")):
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
    with pytest.raises(CheckpointError, match=naming(folder / "manifest.json", "notes")):
        verify_manifest(folder, error=CheckpointError, required=("notes",))
    write_text(folder / "a", "alphb")
    with pytest.raises(CheckpointError, match=naming(folder / "a", "corrupt")):
        verify_manifest(folder, error=CheckpointError)
    write_text(folder / "a", "alph")
    with pytest.raises(CheckpointError, match=naming(folder / "a", 4, 5)):
        verify_manifest(folder, error=CheckpointError)
    write_json(folder / "manifest.json", {"files": {"../a": {"bytes": 4, "sha256": ""}}})
    with pytest.raises(CheckpointError, match=naming(folder, "no", "../a")):
        verify_manifest(folder, error=CheckpointError)


@pytest.fixture
def folder_with_large_file(tmp_path: Path) -> Path:
    write_text(tmp_path / "large", "weights" * 100_000)
    write_text(tmp_path / "small", "settings")
    write_manifest(tmp_path)
    return tmp_path


def large_file(folder: Path, *, required: Sequence[str] = ()) -> UnverifiedFile:
    return verified_except(folder, large="large", error=CheckpointError, required=required)


def damage(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def test_a_large_file_is_verified_while_it_is_read(folder_with_large_file: Path) -> None:
    folder, steps = folder_with_large_file, list[str]()
    with large_file(folder, required=["small"]).verified_while_read():
        steps.append("read")
    with (
        pytest.raises(CheckpointError, match=naming("needed")),
        large_file(folder).verified_while_read(),
    ):
        raise CheckpointError("a tensor that is needed")
    damage(folder / "large")
    with (
        pytest.raises(CheckpointError, match=naming(folder / "large", "checksum")),
        large_file(folder).verified_while_read(),
    ):
        steps.append("read")
    with (
        pytest.raises(CheckpointError, match=naming(folder / "large", "checksum")),
        large_file(folder).verified_while_read(),
    ):
        raise ValueError("of the damage")
    with pytest.raises(KeyboardInterrupt), large_file(folder).verified_while_read():
        raise KeyboardInterrupt
    assert steps == ["read", "read"]


def test_all_else_is_verified_before_a_large_file_is_read(folder_with_large_file: Path) -> None:
    folder = folder_with_large_file

    def refused(*facts: object, required: tuple[str, ...] = ()) -> None:
        with (
            pytest.raises(CheckpointError, match=naming(*facts)),
            large_file(folder, required=required).verified_while_read(),
        ):
            pytest.fail("read")

    refused(folder, "other", required=("other",))
    with (folder / "large").open("a") as stream:
        stream.write("!")
    refused(folder / "large", "700,001", "700000")
    (folder / "large").unlink()
    refused(folder, "large")
    (folder / "large").symlink_to("small")
    refused(folder / "large", "link")
    damage(folder / "small")
    refused(folder / "small", "checksum")


def test_manifests_of_before_and_of_now_are_read_and_of_the_future_refused(tmp_path: Path) -> None:
    write_text(tmp_path / "a", "alpha")
    write_manifest(tmp_path)
    manifest = tmp_path / "manifest.json"
    now = read_json(manifest)
    assert (now["format"], list(now["files"])) == (1, ["a"])
    before = {"files": now["files"]}
    write_json(manifest, before)
    content = manifest.read_bytes()
    verify_manifest(tmp_path, error=CheckpointError, required=("a",))
    assert manifest.read_bytes() == content
    for number in (2, -1, True, "1", None, 1.0):
        write_json(manifest, before | {"format": number})
        with pytest.raises(CheckpointError, match=naming(manifest, "format", repr(number), "0 to 1")):
            verify_manifest(tmp_path, error=CheckpointError, only=["a"])
    for number in (0, 1):  # both formats check their entries
        write_json(manifest, {"format": number, "files": {"a": before["files"]["a"] | {"bytes": 4}}})
        with pytest.raises(CheckpointError, match=naming(tmp_path / "a", 5, 4)):
            verify_manifest(tmp_path, error=CheckpointError)
        write_json(manifest, {"format": number, **before["files"]})
        with pytest.raises(CheckpointError, match=naming(manifest, "'files'")):
            verify_manifest(tmp_path, error=CheckpointError)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b"null", b"[" * 100_000])
def test_json_that_is_no_object_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=naming(path)):
        read_json(path)


@pytest.mark.parametrize("mode", ["rb", "ab", "a+b"])
@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "folder", "device"])
def test_what_is_no_regular_file_is_not_opened(tmp_path: Path, mode: Literal["rb", "ab", "a+b"], kind: str) -> None:
    path, target = tmp_path / "path", tmp_path / "target"
    match kind:
        case "link":
            target.write_text("precious")
            path.symlink_to(target)
        case "dangling link":
            path.symlink_to(target)
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            path = Path("/dev/null")
    with pytest.raises(DataError, match=naming(path, kind.split()[-1])):
        open_regular(path, mode)
    assert target.exists() == (kind == "link")
    assert kind != "link" or target.read_text() == "precious"


def test_a_link_that_comes_between_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, target = tmp_path / "path", tmp_path / "target"
    path.symlink_to(target)
    monkeypatch.setattr("transduce.files.regular.require_regular", lambda path, **options: None)
    with pytest.raises(OSError, match=naming(path, os.strerror(errno.ELOOP))):
        open_regular(path, "ab")
    assert not target.exists()


def test_a_file_is_made_where_there_is_none(tmp_path: Path) -> None:
    for content in (b"one\n", b"one\ntwo\n"):
        with open_regular(tmp_path / "path", "ab") as stream:
            stream.write(content.splitlines(keepends=True)[-1])
        assert (tmp_path / "path").read_bytes() == content
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "nowhere")


@pytest.mark.parametrize("write", [write_text, lambda path, text: write_json(path, {"a": text})])
def test_nothing_is_written_through_a_temporary_name(tmp_path: Path, write: Callable[[Path, str], None]) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    (tmp_path / f".out.{os.getpid()}.tmp").symlink_to(target)
    write(tmp_path / "out", "new")
    assert target.read_text() == "precious"
    assert not (tmp_path / "out").is_symlink()
    assert "new" in (tmp_path / "out").read_text()


@pytest.mark.parametrize("write", [write_text, lambda path, text: write_json(path, {"a": text})])
@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444])
def test_a_replaced_file_keeps_its_permissions(tmp_path: Path, write: Callable[[Path, str], None], mode: int) -> None:
    path = tmp_path / "private"
    path.write_text("old")
    path.chmod(mode)
    write(path, "new")
    assert "new" in path.read_text()
    assert path.stat().st_mode & 0o777 == mode


def test_json_takes_the_place_of_a_link_or_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("precious")
    for make in (lambda path: path.symlink_to(tmp_path / "target"), os.mkfifo):
        path = tmp_path / "out.json"
        make(path)
        write_json(path, {"a": 1})
        assert read_json(path) == {"a": 1}
        path.unlink()
    assert (tmp_path / "target").read_text() == "precious"


@pytest.mark.parametrize("has_folder", [False, True])
def test_a_folder_that_somebody_else_fills_meanwhile_stays(tmp_path: Path, has_folder: bool) -> None:
    target = tmp_path / "folder"
    if has_folder:
        target.mkdir()

    def write() -> None:
        with atomic_folder(target) as temporary:
            write_text(temporary / "a", "ours")
            target.mkdir(exist_ok=True)
            (target / "theirs").write_text("precious")

    taken = re.compile(rf"{re.escape(str(target))}(?![\w-])")
    for name in ("folder-2", "folder-3"):
        with pytest.raises(DataError, match=naming(taken, "Directory not empty", tmp_path / name)):
            write()
        assert (tmp_path / name / "a").read_text() == "ours"
        assert [path.name for path in target.iterdir()] == ["theirs"]
        shutil.rmtree(target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder-2", "folder-3"]


def test_an_empty_folder_that_came_meanwhile_is_filled(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "folder") as temporary:
        write_text(temporary / "a", "ours")
        (tmp_path / "folder").mkdir()
    assert [path.name for path in tmp_path.rglob("*")] == ["folder", "a"]


def test_only_the_folder_that_was_there_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    (target / "old").write_text("old")

    def write() -> None:
        with atomic_folder(target, replace=True) as temporary:
            write_text(temporary / "a", "ours")
            target.rename(tmp_path / "moved")
            target.mkdir()
            (target / "theirs").write_text("precious")

    taken = re.compile(rf"{re.escape(str(target))}(?![\w-])")
    with pytest.raises(DataError, match=naming(taken, "another", tmp_path / "folder-2")):
        write()
    assert (target / "theirs").read_text() == "precious"
    assert (tmp_path / "moved" / "old").read_text() == "old"
    assert (tmp_path / "folder-2" / "a").read_text() == "ours"


def test_a_file_is_not_replaced_by_a_folder(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("precious")
    for replace in (False, True):
        with (
            pytest.raises(DataError, match=naming(tmp_path / "folder", "not a folder")),
            atomic_folder(tmp_path / "folder", replace=replace),
        ):
            pass
    assert (tmp_path / "folder").read_text() == "precious"


def test_what_has_a_temporary_name_already_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("precious")
    for suffix in ("tmp", "old"):
        (tmp_path / f".folder.{os.getpid()}.{suffix}").symlink_to(tmp_path / "precious")
    with atomic_folder(tmp_path / "folder") as temporary:
        write_text(temporary / "a", "ours")
    assert (tmp_path / "precious" / "file").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "precious"]


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no names of open descriptors")
@pytest.mark.parametrize("is_linked", [False, True])
def test_what_names_a_descriptor_is_gone_on_with_and_never_replaced(tmp_path: Path, is_linked: bool) -> None:
    (tmp_path / "target").write_text("of before\n")
    with (tmp_path / "target").open("ab", buffering=0) as target:
        path = Path(f"/dev/fd/{target.fileno()}")
        if is_linked:  # as /dev/stdout is one
            (tmp_path / "stdout").symlink_to(path)
            path = tmp_path / "stdout"
        write_text(path, "new\n")
        target.write(b"of after\n")
        assert path.is_symlink() or not is_linked
    assert (tmp_path / "target").read_text() == "of before\nnew\nof after\n"
    assert descriptor_named(tmp_path / "target") is None
    assert len(list(tmp_path.iterdir())) == 1 + is_linked


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no names of open descriptors")
def test_a_descriptor_that_is_only_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("of before")
    with (tmp_path / "target").open("rb") as target, pytest.raises(OSError, match=naming(f"/dev/fd/{target.fileno()}")):
        write_text(Path(f"/dev/fd/{target.fileno()}"), "new")
    assert (tmp_path / "target").read_text() == "of before"


def test_a_folder_cannot_be_a_link_to_itself(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for replace in (True, False):
        with (
            pytest.raises((DataError, OSError), match=naming(tmp_path / "loop")),
            atomic_folder(tmp_path / "loop", replace=replace),
        ):
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["loop"]
