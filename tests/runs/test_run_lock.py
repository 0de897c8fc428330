"""One writer for a run folder."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from said import naming
from transduce.errors import TrainingError
from transduce.runs.lock import LOCK_FILE, lock_holder, run_lock

pytestmark = pytest.mark.reliability

HOLD = """
import sys, time
from pathlib import Path
from transduce.runs.lock import run_lock
with run_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def hold_elsewhere(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_lock_is_there_while_it_is_held_and_gone_after(tmp_path: Path) -> None:
    with run_lock(tmp_path / "run"):
        holder = lock_holder(tmp_path / "run")
        assert holder is not None
        assert holder.process == os.getpid()
        (tmp_path / "run" / "run.json").write_text("{}")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["run.json"]
    assert lock_holder(tmp_path / "run") is None


def test_a_folder_that_stays_empty_goes_again_with_its_parents(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    for folder in ("runs/mine", "before", "before/mine"):
        with pytest.raises(KeyError), run_lock(tmp_path / folder):
            raise KeyError
    assert [path.name for path in tmp_path.rglob("*")] == ["before"]


def test_a_second_writer_is_refused_by_host_and_process_until_the_first_is_killed(tmp_path: Path) -> None:
    first = hold_elsewhere(tmp_path)
    refused = pytest.raises(TrainingError, match=naming(tmp_path, first.pid, re.compile(r"\b2\d{3}-\d\d-\d\d")))
    with refused, run_lock(tmp_path, break_lock=True):  # a lock of this machine cannot be broken
        pass
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert (tmp_path / LOCK_FILE).exists()
    with run_lock(tmp_path):
        pass
    assert not (tmp_path / LOCK_FILE).exists()


def test_the_lock_of_another_machine_holds_until_it_is_broken(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).write_text(json.dumps({"host": "elsewhere", "process": 7, "since": "2026-01-01 00:00:00"}))
    refused = pytest.raises(TrainingError, match=naming(7, "elsewhere", "--break-lock"))
    with refused, run_lock(tmp_path):
        pass
    holder = lock_holder(tmp_path)
    assert holder is not None
    assert holder.host == "elsewhere"
    with run_lock(tmp_path, break_lock=True):
        pass
    assert not (tmp_path / LOCK_FILE).exists()


@pytest.mark.parametrize("content", ["", "\0" * 99, "{", '{"host": 1}', '{"host": "elsewhere", "proc'])
def test_a_lock_that_says_nothing_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / LOCK_FILE).write_text(content)
    with run_lock(tmp_path):
        pass
    assert not (tmp_path / LOCK_FILE).exists()


@pytest.mark.parametrize("content", ["[]", "null", "\udcff", '{"host":\t', '{"version": 3}', '{"host": ' + " " * 5000])
def test_another_file_of_that_name_is_left_as_it_is(tmp_path: Path, content: str) -> None:
    path = tmp_path / LOCK_FILE
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    for break_lock in (False, True):
        refused = pytest.raises(TrainingError, match=naming(path))
        with refused, run_lock(tmp_path, break_lock=break_lock):
            pass
    assert path.read_bytes() == content.encode("utf-8", "surrogateescape")
    with pytest.raises(TrainingError):
        lock_holder(tmp_path)


def test_nothing_is_written_through_the_name_of_a_lock(tmp_path: Path) -> None:
    precious, path = tmp_path / "precious", tmp_path / "run" / LOCK_FILE
    path.parent.mkdir()
    for content in ("", "precious"):
        precious.write_text(content)
        for make, words in (
            (lambda: path.symlink_to(precious), "link"),
            (lambda: path.symlink_to(tmp_path / "nowhere"), "link"),
            (lambda: path.hardlink_to(precious), "name"),
            (lambda: os.mkfifo(path), "pipe"),
            (lambda: path.symlink_to("/dev/null"), "link"),
        ):
            make()
            with pytest.raises(TrainingError, match=naming(path, words)), run_lock(path.parent):
                pass
            assert path.is_symlink() or path.exists()
            path.unlink()
        assert precious.read_text() == content
    path.mkdir()
    with pytest.raises(TrainingError, match=naming(path, "folder")), run_lock(path.parent):
        pass
    assert not (tmp_path / "nowhere").exists()


def test_the_lock_of_another_that_came_meanwhile_stays(tmp_path: Path) -> None:
    with run_lock(tmp_path):
        (tmp_path / LOCK_FILE).unlink()
        (tmp_path / LOCK_FILE).write_text("another's")
    assert (tmp_path / LOCK_FILE).read_text() == "another's"


def test_an_error_lets_go_of_it(tmp_path: Path) -> None:
    with pytest.raises(KeyError), run_lock(tmp_path):
        raise KeyError
    with run_lock(tmp_path):
        pass


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_disk_without_locks_has_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refuse)
    with run_lock(tmp_path):
        refused = pytest.raises(TrainingError, match=naming(os.getpid(), "--break-lock"))
        with refused, run_lock(tmp_path):
            pass
    with run_lock(tmp_path):
        pass


def test_of_two_that_begin_at_once_on_such_a_disk_one_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process has created the file, but not written its name yet."""

    def refuse(*arguments: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    (tmp_path / "lock.json").touch()
    with pytest.raises(TrainingError, match=naming(tmp_path, "--break-lock")), run_lock(tmp_path):
        pass
    with run_lock(tmp_path, break_lock=True):
        pass
