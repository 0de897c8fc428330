"""Checkpoints are whole, checked and mended by nobody: what does not fit is refused in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from transduce.errors import CheckpointError
from transduce.training import average_weights, checkpoint_folders
from transduce.training.checkpoint import MODEL_FILE, OPTIMISER_FILE, STATE_FILE, read_tensors

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
    with pytest.raises(CheckpointError) as caught:
        make_trainer().resume(saved)
    assert "\n" not in str(caught.value)
    assert str(saved) in str(caught.value)


def test_another_model_s_checkpoint_is_refused(make_trainer: MakeTrainer, saved: Path) -> None:
    trainer = make_trainer()
    trainer.model.extra = torch.nn.Parameter(torch.zeros(1))
    with pytest.raises(CheckpointError, match="lacks tensor extra"):
        trainer.resume(saved)
    trainer = make_trainer()
    trainer.model.outer = torch.nn.Parameter(torch.zeros(5, 3))
    with pytest.raises(CheckpointError, match=r"tensor outer has shape \(5, 4\), the model wants \(5, 3\)"):
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
    with pytest.raises(CheckpointError, match="no checkpoint to average"):
        average_weights([])


def test_an_unfinished_checkpoint_is_not_seen(saved: Path) -> None:
    (saved.parent / ".update-00000009.123.tmp").mkdir()
    assert checkpoint_folders(saved.parent)[-1] == saved
