"""Checkpoints are atomic and verified; anything that does not fit is refused with a one-line error."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from said import naming, says
from transduce.errors import CheckpointError, TrainingError
from transduce.files import remove, write_manifest
from transduce.model.weights_file import read_tensors, write_tensors
from transduce.training import (
    average_weights,
    averaged_checkpoints,
    checkpoint_folders,
    newest_complete,
    read_run_settings,
    read_state,
    set_aside_misnamed,
)
from transduce.training.averaging import remove_old_checkpoints
from transduce.training.checkpoint import MODEL_FILE, OPTIMISER_FILE, STATE_FILE, checkpoint_path

pytestmark = pytest.mark.reliability

MakeTrainer = Callable[..., Any]


@pytest.fixture
def saved(make_trainer: MakeTrainer) -> Path:
    trainer = make_trainer(max_updates=4)
    trainer.run()
    return checkpoint_folders(trainer.checkpoints)[-1]


@pytest.mark.parametrize("name", [MODEL_FILE, OPTIMISER_FILE, STATE_FILE, "manifest.json"])
@pytest.mark.parametrize("damage", ["missing", "cut", "flipped"])
def test_a_damaged_checkpoint_is_refused(make_trainer: MakeTrainer, saved: Path, name: str, damage: str) -> None:
    path = saved / name
    content = path.read_bytes()
    match damage:
        case "missing":
            path.unlink()
        case "cut":
            path.write_bytes(content[: len(content) // 2])
        case "flipped":
            middle = len(content) // 2
            path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    with pytest.raises(CheckpointError, match=naming(saved, name)):
        make_trainer().resume(saved)


def test_another_model_s_checkpoint_is_refused(make_trainer: MakeTrainer, saved: Path) -> None:
    trainer = make_trainer()
    trainer.model.extra = torch.nn.Parameter(torch.zeros(1))
    with pytest.raises(CheckpointError, match=naming("extra")):
        trainer.resume(saved)
    trainer = make_trainer()
    trainer.model.outer = torch.nn.Parameter(torch.zeros(5, 3))
    with pytest.raises(CheckpointError, match=naming("outer", "(5, 4)", "(5, 3)")):
        trainer.resume(saved)


def test_a_checkpoint_holds_tensors_and_json_only(saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == sorted(
        [MODEL_FILE, OPTIMISER_FILE, STATE_FILE, "manifest.json"]
    )
    assert json.loads((saved / STATE_FILE).read_text())["update"] == 4


def test_the_average_is_the_mean_of_each_weight(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(max_updates=6, checkpoint_every_updates=2)
    trainer.run()
    paths = checkpoint_folders(trainer.checkpoints)
    assert len(paths) == 3
    averaged = average_weights(paths)
    for name in averaged:
        each = torch.stack([read_tensors(path / MODEL_FILE)[name] for path in paths])
        torch.testing.assert_close(averaged[name], each.mean(0).float(), rtol=1e-6, atol=1e-7)
    with pytest.raises(CheckpointError, match=naming("no checkpoint")):
        average_weights([])


def test_an_unfinished_checkpoint_is_not_seen(saved: Path) -> None:
    (saved.parent / ".update-00000009.123.tmp").mkdir()
    assert checkpoint_folders(saved.parent)[-1] == saved


def test_a_checkpoint_keeps_what_its_run_was_begun_with(make_trainer: MakeTrainer, saved: Path) -> None:
    assert read_run_settings(saved) is None  # as in earlier versions, or without run settings
    run_settings = {"config": {"training": {"seed": 1}}, "torch": "2.13.0"}
    trainer = make_trainer(max_updates=8, run_settings=run_settings)
    trainer.resume(saved)
    trainer.run()
    newest = checkpoint_folders(trainer.checkpoints)[-1]
    assert read_run_settings(newest) == run_settings
    assert read_state(newest).update == 8
    (newest / STATE_FILE).write_text((newest / STATE_FILE).read_text().replace('"seed": 1', '"seed": 7'))
    with pytest.raises(CheckpointError, match=naming("state.json")):
        read_run_settings(newest)
    values = json.loads((newest / STATE_FILE).read_text())
    (newest / STATE_FILE).write_text(json.dumps(values | {"begun_with": [1]}))
    write_manifest(newest)
    with pytest.raises(CheckpointError, match=naming("state.json", "'begun_with'", "[1]")):
        read_run_settings(newest)


def test_the_name_of_a_checkpoint_is_its_update(saved: Path) -> None:
    copy = saved.with_name("update-00000030")
    shutil.copytree(saved, copy)
    with pytest.raises(CheckpointError, match=naming(copy, "copy", 4)):
        read_state(copy)
    messages: list[str] = []
    assert newest_complete(saved.parent, messages.append) == saved
    assert len(messages) == 1
    assert says(messages[0], re.compile("^warning: "), copy, "copy", 4)
    with pytest.raises(CheckpointError, match=naming(copy, "copy")):
        averaged_checkpoints(saved.parent, 2)
    set_aside_misnamed(saved.parent, messages.append)
    assert checkpoint_folders(saved.parent)[-1] == saved
    assert read_state(saved.parent / "passed-over-update-00000030").update == 4


def test_checkpoints_stand_in_the_order_of_their_updates(tmp_path: Path) -> None:
    for update in (99_999_999, 100_000_000, 2):
        checkpoint_path(tmp_path, update).mkdir()
    assert [int(path.name[7:]) for path in checkpoint_folders(tmp_path)] == [2, 99_999_999, 100_000_000]


def test_only_what_a_killed_process_left_is_swept_away(make_trainer: MakeTrainer, saved: Path) -> None:
    for name in (".update-00000009.123.tmp", ".update-00000009.old", ".update-notes", ".update-00000009.tmp.txt"):
        (saved.parent / name).mkdir()
    remove_old_checkpoints(saved.parent, keep=5, best_update=None)
    assert sorted(path.name for path in saved.parent.glob(".*")) == [".update-00000009.tmp.txt", ".update-notes"]


def test_what_came_meanwhile_in_the_place_of_a_checkpoint_stays(
    make_trainer: MakeTrainer, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process creates a folder of that name while the checkpoint is written."""

    def meanwhile(path: Path, tensors: Any) -> None:
        (checkpoint_path(saved.parent, 5) / "theirs").mkdir(parents=True, exist_ok=True)
        write_tensors(path, tensors)

    monkeypatch.setattr("transduce.training.checkpoint.write_tensors", meanwhile)
    trainer = make_trainer(max_updates=5, validate=None)
    trainer.resume(saved)
    kept = saved.parent / "update-00000005-2"
    with pytest.raises(TrainingError, match=naming("Directory not empty", kept, "update-00000005", "--resume")):
        trainer.run()
    assert (checkpoint_path(saved.parent, 5) / "theirs").is_dir()
    assert read_state(kept).update == 5


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_is_no_checkpoint_makes_room_for_one_and_stays(
    make_trainer: MakeTrainer, saved: Path, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "precious").mkdir()
    for _ in range(2):
        path = checkpoint_path(saved.parent, 5)
        remove(path)
        match kind:
            case "folder":
                shutil.copytree(saved, path)
                (path / "notes.txt").write_text("precious")
            case "file":
                path.write_text("precious")
            case _:
                path.symlink_to(tmp_path / "precious")
        trainer = make_trainer(max_updates=5, validate=None)
        trainer.resume(saved)
        trainer.run()
        assert read_state(path).update == 5
        assert sorted(each.name for each in path.iterdir()) == sorted(
            [MODEL_FILE, OPTIMISER_FILE, STATE_FILE, "manifest.json"]
        )
    asides = ["passed-over-update-00000005", "passed-over-update-00000005-2"]
    assert sorted(each.name for each in saved.parent.glob("passed-*")) == asides
    assert list((tmp_path / "precious").iterdir()) == []


@pytest.mark.parametrize(
    "header",
    [
        "[]",
        '{"a": 1}',
        '{"a": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}}',
        '{"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}',
        '{"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}',
        '{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}',
        '{"a": {"dtype": "F32", "shape": [99999999999999], "data_offsets": [0, 399999999999996]}}',
        "[" * 100_000,
    ],
)
def test_headers_that_lie_are_refused(tmp_path: Path, header: str) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode() + bytes(8))
    with pytest.raises(CheckpointError, match=naming(tmp_path / "x.safetensors")):
        read_tensors(path)


@pytest.mark.parametrize("content", [b"", b"\0" * 8, b"\xff" * 100, (2).to_bytes(8, "little")])
def test_what_is_no_safetensors_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match=naming(tmp_path / "x.safetensors")):
        read_tensors(tmp_path / "x.safetensors")


def test_a_run_does_not_hang_on_the_checkpoint_that_it_went_on_from(make_trainer: MakeTrainer, saved: Path) -> None:
    """If moments were memory-mapped, truncating the file would kill the process."""
    trainer = make_trainer(max_updates=8)
    trainer.resume(saved)
    for name in (MODEL_FILE, OPTIMISER_FILE):
        os.truncate(saved / name, 0)
    assert trainer.run() == "max_updates"
