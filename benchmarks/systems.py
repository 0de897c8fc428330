"""The systems that ``train.py`` compares, with their training loops; the peers' models are in ``peers.py``.

Shapes: B sentences, S source positions, T target positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Protocol

import torch
import torch.nn.functional as F
from batches import IGNORED, PaddedBatch, open_batches, padded
from peers import ATTENTIONS, PEERS, make_peer
from torch import nn

from transduce.config import TrainingConfig, TransformerConfig
from transduce.model import Transformer
from transduce.tasks.objective import PairObjective
from transduce.training import Trainer, learning_rate

__all__ = ["CHOICES", "MICRO", "NAMES", "OURS", "TUNED", "Setup", "System", "count_parameters", "make_system"]

OURS = "transduce"
MICRO = TransformerConfig(
    n_encoder_layers=1, n_decoder_layers=1, d_model=32, d_ff=64, n_heads=2, d_k=16, d_v=16
).with_vocabulary(200, 200)  # for tests
TUNED = [f"{peer}-tuned" for peer in PEERS]  # peers with our settings
NAMES = [OURS, *PEERS, *TUNED]
CHOICES = {OURS: ["auto"], **ATTENTIONS}  # attention implementations, the default first

Pace = Callable[[int], None]  # called before each update with the target tokens so far; blocks until it may run


@dataclass(frozen=True, slots=True)
class Setup:
    """The configuration of a worker."""

    system: str  # ``OURS`` or one of ``PEERS``
    is_tuned: bool  # a peer with our settings
    attention: str  # one of ``CHOICES``
    model: TransformerConfig
    training: TrainingConfig
    store: Path
    n_threads: int

    @property
    def name(self) -> str:
        """The name in the tables."""
        return f"{self.system}-tuned" if self.is_tuned and self.system != OURS else self.system


class System(Protocol):
    """A model with its training loop."""

    n_parameters: int

    def train(self, pace: Pace) -> None:
        """Train, until ``pace`` raises."""


def make_system(setup: Setup) -> System:
    """Build a system in this process."""
    torch.manual_seed(setup.training.seed)
    return OurTraining(setup) if setup.system == OURS else PeerTraining(setup)


class OurTraining:
    """The trainer of ``transduce train``, without validation and checkpoints."""

    def __init__(self, setup: Setup) -> None:
        config, model = setup.training, Transformer(setup.model)
        self.n_parameters = count_parameters(model)
        self.trainer = Trainer(
            model=model,
            objective=PairObjective(model, config),
            batches=open_batches(setup.store, max_tokens=config.max_tokens_per_batch),
            learning_rate=lambda step: learning_rate(step, d_model=setup.model.d_model, config=config),
            config=config,
            checkpoints=setup.store / "checkpoints",
        )

    def train(self, pace: Pace) -> None:
        """Train; the trainer calls ``should_stop`` before each update."""

        def should_stop() -> bool:
            pace(self.trainer.state.tgt_tokens)
            return False

        self.trainer.should_stop = should_stop
        self.trainer.run()


class PeerTraining:
    """The usual loop of a library's users: autocast, torch's cross-entropy, torch's Adam."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.n_updates = self.n_tgt_tokens = 0
        self.model: nn.Module = make_peer(setup.system, setup.model, attention=setup.attention, is_tuned=setup.is_tuned)
        self.n_parameters = count_parameters(self.model)
        config = setup.training
        self.optimiser = torch.optim.Adam(
            self.model.parameters(),
            lr=0.0,  # set by each update
            betas=(config.adam_beta1, config.adam_beta2),
            eps=config.adam_eps,
            fused=setup.is_tuned or None,
        )

    def train(self, pace: Pace) -> None:
        """Train on the same batches as our trainer, in the same order."""
        self.model.train()
        for batch in self._batches():
            pace(self.n_tgt_tokens)
            self._update(batch)
            self.n_tgt_tokens += batch.n_tgt_tokens

    def _batches(self) -> Iterator[PaddedBatch]:
        batches = open_batches(self.setup.store, max_tokens=self.setup.training.max_tokens_per_batch)
        for epoch in count():
            for index in range(batches.n_batches(epoch)):
                yield padded(batches.batch(epoch, index))

    def _update(self, batch: PaddedBatch) -> None:
        config = self.setup.training
        self.n_updates += 1
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(self.n_updates, d_model=self.setup.model.d_model, config=config)
        self.optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=config.precision == "bf16"):
            logits_BTV = self.model(batch.src_BS, batch.tgt_in_BT)
            loss = F.cross_entropy(
                logits_BTV.flatten(0, 1),
                batch.labels_BT.flatten(),
                ignore_index=IGNORED,
                label_smoothing=config.eps_ls,
            )
        loss.backward()
        self.optimiser.step()


def count_parameters(model: nn.Module) -> int:
    """Count the trainable parameters."""
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
