"""A stateful objective resumes exactly."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from said import naming
from transduce.errors import CheckpointError
from transduce.loss import LossSum, cross_entropy
from transduce.preferences.policies import PolicyObjective
from transduce.preferences.rankings import DirectPreference
from transduce.training import Stateful, Trainer
from transduce.training.gradients import PartlyFrozen, restoring_state


class Controlled:
    """Cross-entropy times a factor that depends on earlier losses, like the controller of a penalty."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.factor = model, torch.ones((), dtype=torch.float64)

    def __call__(self, batch: Any, update: int) -> LossSum:
        loss = cross_entropy(self.model(batch.x_ND), self.model.outer, batch.targets_N, eps_ls=0.0, smoothing="uniform")
        scaled = dataclasses.replace(loss, loss_nats=loss.loss_nats * self.factor)
        self.factor = 0.9 * self.factor + 0.1 * loss.nll_nats / loss.n_tokens
        return scaled

    def state(self) -> dict[str, Tensor]:
        return {"factor": self.factor}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self.factor = state["factor"]


def controlled(make_trainer: Any, folder: Path, **settings: Any) -> Trainer[Any]:
    trainer = make_trainer(checkpoints=folder, **settings)
    trainer.objective = objective = Controlled(trainer.model)
    trainer.accumulator._loss_of = objective
    assert isinstance(objective, Stateful)
    return trainer


def test_a_resumed_objective_remembers(make_trainer: Any, tmp_path: Path) -> None:
    whole = controlled(make_trainer, tmp_path / "whole", max_updates=8)
    whole.run()
    controlled(make_trainer, tmp_path / "halves", max_updates=4).run()
    second = controlled(make_trainer, tmp_path / "halves", max_updates=8)
    second.resume(tmp_path / "halves" / "update-00000004")
    assert float(second.objective.factor) not in (1.0, float(whole.objective.factor))
    second.run()
    assert torch.equal(second.objective.factor, whole.objective.factor)
    for ours, theirs in zip(second.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_a_share_without_rows_leaves_the_state(
    make_trainer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process whose share of a batch is empty evaluates another one, for the collective calls alone."""
    trainer = controlled(make_trainer, tmp_path)
    trainer.accumulator._objective = trainer.objective
    monkeypatch.setattr(trainer.accumulator, "batch_of", lambda shard: None)
    gradient = trainer.accumulator.accumulate([(0, 0), (0, 1)], update=0)
    assert gradient is not None
    assert (gradient.losses_nats, gradient.norm, float(trainer.objective.factor)) == ((0.0, 0.0), 0.0, 1.0)


class Referring(Controlled):
    """With a part of its state that never changes, and is not to be copied."""

    def state(self) -> dict[str, Tensor]:
        raise AssertionError("only checkpoints have all of it")

    def changing_state(self) -> dict[str, Tensor]:
        return super().state()

    def load_changing_state(self, state: Mapping[str, Tensor]) -> None:
        super().load_state(state)


def test_what_is_undone_copies_only_what_changes() -> None:
    objective = Referring(nn.Identity())
    with restoring_state(objective, lambda: True):
        objective.factor = objective.factor * 2
    assert float(objective.factor) == 1.0
    assert issubclass(DirectPreference, PartlyFrozen)
    assert issubclass(PolicyObjective, PartlyFrozen)


def test_an_objective_without_a_state_writes_no_file(make_trainer: Any, tmp_path: Path) -> None:
    make_trainer(checkpoints=tmp_path, max_updates=4).run()
    names = {path.name for path in (tmp_path / "update-00000004").iterdir()}
    assert names == {"model.safetensors", "optimizer.safetensors", "state.json", "manifest.json"}


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_state_is_under_the_manifest(is_gone: bool, make_trainer: Any, tmp_path: Path) -> None:
    controlled(make_trainer, tmp_path, max_updates=4).run()
    path = tmp_path / "update-00000004" / "objective.safetensors"
    path.unlink() if is_gone else path.write_bytes(b"")
    with pytest.raises(CheckpointError, match=naming(path.parent, "objective.safetensors")):
        controlled(make_trainer, tmp_path, max_updates=8).resume(path.parent)
