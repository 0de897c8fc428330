"""Packed weights are written once and mapped afterwards; a file that is not what it should be is not believed."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from transduce.config import GreedySearchConfig
from transduce.errors import CheckpointError
from transduce.files import UnverifiedFile, remove
from transduce.inference.engine import Engine, Request
from transduce.inference.engines import make_engine
from transduce.inference.folder import read_model_folder
from transduce.inference.native import packed_files
from transduce.inference.native.binding import library
from transduce.inference.native.engine import NativeEngine
from transduce.inference.native.model import NativeModel
from transduce.text import EOS_ID

pytestmark = pytest.mark.skipif(library() is None, reason="the engine in C was not compiled")

KILLED = """
import os, signal, sys
from pathlib import Path
from transduce.inference.engines import make_engine
from transduce.inference.folder import read_model_folder
from transduce.inference.native import packed_files
from transduce.inference.native.model import NativeModel

def save(self, path, key, save=NativeModel.save):
    save(self, path, key)
    os.truncate(path, 1000)
    os.kill(os.getpid(), signal.SIGKILL)

NativeModel.save, packed_files.MIN_BYTES = save, 0
make_engine(read_model_folder(Path(sys.argv[1]), device="cpu").stored)
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of packed weights, of models of any size."""
    monkeypatch.setattr(packed_files, "MIN_BYTES", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = packed_files.cache_folder()
    assert folder is not None
    return folder


def loaded(model: Path) -> Engine:
    engine = make_engine(read_model_folder(model, device="cpu").stored)
    assert isinstance(engine, NativeEngine)
    return engine


def output(engine: Engine) -> object:
    return engine.hypotheses([Request(9, [5, 6, 7, EOS_ID])], GreedySearchConfig())


def test_a_file_is_mapped_and_a_damaged_one_is_written_again(
    micro_model: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed, init = list[str](), NativeModel.__init__
    monkeypatch.setattr(
        NativeModel, "__init__", lambda self, *a, **options: (packed.append(""), init(self, *a, **options))[1]
    )
    expected = output(loaded(micro_model))
    [file] = cache.iterdir()
    good = file.read_bytes()
    assert output(loaded(micro_model)) == expected
    assert len(packed) == 1
    for damaged in (good[:-1], good[:100], b"", good[:5000] + bytes([good[5000] ^ 1]) + good[5001:]):
        file.write_bytes(damaged)
        before = len(packed)
        assert output(loaded(micro_model)) == expected
        assert len(packed) == before + 1
        assert [path.read_bytes() for path in cache.iterdir()] == [good]


def test_a_process_that_is_killed_leaves_nothing_that_is_believed(micro_model: Path, cache: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(micro_model)], check=False)
    assert done.returncode == -signal.SIGKILL
    [left] = cache.iterdir()
    assert left.suffix == ".tmp"
    expected = output(loaded(micro_model))
    [file] = cache.iterdir()  # what was left is removed
    assert file.suffix == packed_files.ENDING
    assert output(loaded(micro_model)) == expected


def test_damaged_weights_leave_no_file(micro_model: Path, cache: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(micro_model, tmp_path / "copy"))
    weights = copy / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 64]))
    with pytest.raises(CheckpointError, match="checksum"):
        loaded(copy)
    assert not cache.exists()
    weights.write_bytes(whole)
    expected = output(loaded(micro_model))
    assert output(loaded(copy)) == expected


def test_an_interruption_at_the_end_of_the_checksum_leaves_no_file(
    micro_model: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: UnverifiedFile, *_: object) -> Iterator[None]:
        yield
        raise KeyboardInterrupt

    monkeypatch.setattr(UnverifiedFile, "verified_while_read", contextmanager(interrupted))
    with pytest.raises(KeyboardInterrupt):
        loaded(micro_model)
    assert not cache.exists()


def test_files_of_versions_that_did_not_wait_for_the_checksum_are_written_again(
    micro_model: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded(micro_model)
    [file] = cache.iterdir()
    good = file.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(packed_files, "KEY", "{}")
        loaded(micro_model)
    assert file.read_bytes() != good
    loaded(micro_model)
    assert file.read_bytes() == good


def test_it_works_where_nothing_can_be_written(micro_model: Path, cache: Path) -> None:
    expected = output(loaded(micro_model))
    remove(cache)
    cache.write_bytes(b"no folder")
    assert output(loaded(micro_model)) == expected


def test_it_works_for_a_user_without_a_home_folder(
    micro_model: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    expected = output(loaded(micro_model))
    remove(cache)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", unknown)
    assert output(loaded(micro_model)) == expected


def test_only_the_last_files_are_kept(micro_model: Path, cache: Path) -> None:
    cache.mkdir(parents=True)
    for number in range(packed_files.N_KEPT):
        (cache / f"{number}{packed_files.ENDING}").touch()
    loaded(micro_model)
    names = {path.name for path in cache.iterdir()}
    assert len(names) == packed_files.N_KEPT
    assert len({f"{number}{packed_files.ENDING}" for number in range(packed_files.N_KEPT)} & names) == len(names) - 1
