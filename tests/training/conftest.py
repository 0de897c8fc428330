"""A toy task: a small network trained on fixed batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from transduce.config import TrainingConfig
from transduce.training import LossSum, Trainer, Validation, cross_entropy


@dataclass(frozen=True)
class ToyBatch:
    x_ND: Tensor
    targets_N: Tensor

    def tensors(self) -> dict[str, Tensor]:
        return {"x_ND": self.x_ND, "targets_N": self.targets_N}


class ToyBatches:
    """Four batches of different sizes per epoch, in an order that depends on the epoch."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(7)
        self.x = torch.randn(20, 6, dtype=torch.float64, generator=generator)
        self.targets = torch.randint(5, (20,), generator=generator)
        self.parts = [slice(0, 8), slice(8, 11), slice(11, 17), slice(17, 20)]

    def n_batches(self, epoch: int) -> int:
        return len(self.parts)

    def n_rows(self, epoch: int, index: int) -> int:
        return len(self.batch(epoch, index).targets_N)

    def n_tokens(self, epoch: int, index: int) -> tuple[int, int]:
        return self.n_rows(epoch, index), self.n_rows(epoch, index)

    def batch(self, epoch: int, index: int, *, part: int = 0, n_parts: int = 1) -> ToyBatch:
        rows = self.parts[(index + epoch) % len(self.parts)]
        return ToyBatch(self.x[rows][part::n_parts], self.targets[rows][part::n_parts])

    def largest(self, epoch: int) -> list[int]:
        return [0]

    def name(self, epoch: int, index: int) -> str:
        return f"toy batch {index} of epoch {epoch}"


class ToyModel(nn.Module):
    def __init__(self, p_drop: float) -> None:
        super().__init__()
        self.inner = nn.Linear(6, 4)
        self.outer = nn.Parameter(torch.randn(5, 4))
        self.dropout = nn.Dropout(p_drop)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(torch.tanh(self.inner(x)))


MakeTrainer = Callable[..., Trainer[ToyBatch]]


@pytest.fixture
def make_trainer(tmp_path: Path) -> MakeTrainer:
    def make(*, p_drop: float = 0.0, batches: Any = None, **settings: Any) -> Trainer[ToyBatch]:
        torch.manual_seed(0)
        model = ToyModel(p_drop).double()
        options = {name: settings.pop(name) for name in list(settings) if name in Trainer.__init__.__annotations__}
        options.setdefault("checkpoints", tmp_path / "checkpoints")
        fields = {"max_updates": 8, "validate_every_updates": 3, "checkpoint_every_updates": 4, "log_every_updates": 2}
        config = TrainingConfig(**{**fields, **settings})

        def objective(batch: ToyBatch, update: int) -> LossSum:
            return cross_entropy(
                model(batch.x_ND), model.outer, batch.targets_N, eps_ls=config.eps_ls, smoothing=config.smoothing
            )

        def validate(should_stop: Callable[[], bool]) -> Validation:
            batches = [ToyBatches().batch(0, index) for index in range(4)]
            losses = [objective(batch, 0) for batch in batches]
            return Validation(sum(float(loss.nll_nats) for loss in losses) / sum(loss.n_tokens for loss in losses))

        options.setdefault("objective", objective)
        options.setdefault("learning_rate", lambda step: 0.05 / step**0.5)
        return Trainer(
            model=model,
            batches=batches or ToyBatches(),
            config=config,
            **{"validate": validate, **options},
        )

    return make
