"""Optimisers: Adam with the settings of section 5.3, and Muon as an option."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, assert_never, cast

from torch import Tensor, nn, optim

from transduce.config import TrainingConfig
from transduce.training.muon import Muon

__all__ = ["MuonAndAdam", "make_optimiser", "moment_names", "tensorflow_eps"]

# torch's names for the optimiser state of a weight.
ADAM_MOMENTS, MUON_MOMENTS = ("step", "exp_avg", "exp_avg_sq"), ("momentum_buffer",)


def make_optimiser(model: nn.Module, config: TrainingConfig) -> optim.Optimizer:
    """Make the configured optimiser; the caller sets the learning rate of its groups before each step."""
    match config.optimiser:
        case "adam":
            return _adam(model.parameters(), config)
        case "muon":
            matrices = _matrices_of_layers(model)
            return MuonAndAdam(model, matrices, config) if matrices else _adam(model.parameters(), config)
        case _:
            assert_never(config.optimiser)


def tensorflow_eps(eps: float, beta2: float, step: int) -> float:
    """Return the epsilon with which torch's Adam makes TensorFlow's update at a step, counted from 1.

    torch adds epsilon to sqrt(v / (1 - beta2^t)), TensorFlow to sqrt(v) ("epsilon hat" of Kingma and Ba, 2015, section
    2), so that its first updates are smaller.

    >>> tensorflow_eps(1e-5, 0.75, 1)
    2e-05
    """
    return eps / math.sqrt(1 - beta2**step)


def moment_names(optimiser: optim.Optimizer, weight: Tensor) -> tuple[str, ...]:
    """Return the names of the optimiser state of a weight."""
    is_muon = isinstance(optimiser, MuonAndAdam) and any(weight is matrix for matrix in optimiser.matrices)
    return MUON_MOMENTS if is_muon else ADAM_MOMENTS


class MuonAndAdam(optim.Optimizer):
    """Muon (Jordan et al., 2024) for the matrices of the layers, Adam for embeddings, output, biases and norms.

    Deviates: the paper uses Adam for all weights. Muon's updates are scaled to the typical RMS of Adam's, 0.2 times
    the learning rate, so that both share one schedule.
    """

    def __init__(self, model: nn.Module, matrices: list[nn.Parameter], config: TrainingConfig) -> None:
        self.matrices = matrices
        others = [weight for weight in model.parameters() if all(weight is not matrix for matrix in self.matrices)]
        super().__init__([{"params": self.matrices}, {"params": others}], {})
        muon = Muon(self.matrices, weight_decay=config.weight_decay)
        self._optimisers = (muon, _adam(others, config))
        self.param_groups = [group for optimiser in self._optimisers for group in optimiser.param_groups]
        for optimiser in self._optimisers:
            optimiser.state = self.state  # both share one state dict

    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Update all weights."""
        for optimiser in self._optimisers:
            optimiser.step()


def _adam(weights: Iterable[nn.Parameter], config: TrainingConfig) -> optim.Adam:
    """Make a fused Adam with decoupled weight decay on matrices only, not on biases and norms."""
    weights = list(weights)
    matrices, vectors = [w for w in weights if w.ndim > 1], [w for w in weights if w.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return optim.Adam(
        groups,
        lr=0.0,
        betas=(config.adam_beta1, config.adam_beta2),
        eps=config.adam_eps,
        decoupled_weight_decay=True,
        fused=True,
    )


def _matrices_of_layers(model: nn.Module) -> list[nn.Parameter]:
    """Return the weights of all linear maps in the layer stacks, each once: stacks may be nested, as experts are."""
    stacks = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    linears = [module for stack in stacks for module in stack.modules() if isinstance(module, nn.Linear)]
    return list(dict.fromkeys(cast(nn.Parameter, linear.weight) for linear in linears))
