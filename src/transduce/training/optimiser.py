"""Adam as the paper sets it. Section 5.3."""

from __future__ import annotations

from torch import nn, optim

from transduce.config import TrainingConfig

__all__ = ["make_optimiser"]


def make_optimiser(model: nn.Module, config: TrainingConfig) -> optim.Adam:
    """Adam over every weight, one fused pass an update; the learning rate is set before each."""
    return optim.Adam(
        model.parameters(),
        lr=0.0,
        betas=(config.adam_beta1, config.adam_beta2),
        eps=config.adam_eps,
        fused=True,
    )
