"""Recall of the first symbol after noise, by one recurrent or Transformer layer: gradients and accuracy by distance.

Shapes: B sequences, T positions, D d_model, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from transduce.loss import LossSum
from transduce.model import LinearOutput, PaddingInfo, SinusoidalPositions, Stack, TokenEmbedding, initialise
from transduce.model.sequence_layers import Recurrent
from transduce.text import SPECIAL_TOKENS
from transduce_paper.notes.tiny import BATCH_SIZE, TINY, LanguageBatch, ListedBatches, Rows, seeded, train

__all__ = ["KINDS", "N_SYMBOLS", "Kind", "Reader", "Recall", "RecallSizes", "gradient_by_distance", "recall"]

Kind = Literal["rnn", "lstm", "gru", "transformer"]
KINDS: tuple[Kind, ...] = get_args(Kind)

N_SYMBOLS, N_NOISE = 8, 8  # the symbol to recall is never a noise token
FIRST_SYMBOL, FIRST_NOISE = len(SPECIAL_TOKENS), len(SPECIAL_TOKENS) + N_SYMBOLS
VOCABULARY_SIZE = FIRST_NOISE + N_NOISE
PEAK_LR = 4e-3


@dataclass(frozen=True, slots=True)
class RecallSizes:
    """Distances, and numbers of updates, validations and tested sequences."""

    tested_distances: tuple[int, ...]  # ascending; training has all distances up to the last
    n_updates: int
    n_validations: int
    n_tested: int

    @property
    def longest(self) -> int:
        """Return the longest distance of training and test."""
        return self.tested_distances[-1]


@dataclass(frozen=True, slots=True)
class Recall:
    """What one model did, from initialisation to the end of its training."""

    gradients_before: tuple[float, ...]  # at distances 1, 2, ..., relative to distance 1; at initialisation
    gradients_after: tuple[float, ...]  # the same after training
    accuracies: tuple[float, ...]  # at each tested distance; chance is 1 / N_SYMBOLS
    n_updates_to_learn: int | None  # until the loss at the longest distance is half that of guessing; None: never


class Reader(nn.Module):
    """One causal layer over token embeddings: the states of all positions, and an output layer over tokens.

    The Transformer's layer has a feed-forward network, residual connections, norms and positions besides attention.
    """

    def __init__(self, kind: Kind) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(VOCABULARY_SIZE, TINY.d_model)
        self.positions = SinusoidalPositions(TINY.d_model)
        self.layer = (
            Stack(replace(TINY, n_layers=1))
            if kind == "transformer"
            else Recurrent(TINY.d_model, cell=kind, is_causal=True)
        )
        self.output = LinearOutput(TINY.d_model, VOCABULARY_SIZE)
        initialise(self)

    def last_states(self, x_BTD: Tensor) -> Tensor:
        """Return the state of the last position, (B, D), given token embeddings."""
        n_sentences, n_positions, _ = x_BTD.shape
        if isinstance(self.layer, Recurrent):
            is_real_BT = torch.ones(n_sentences, n_positions, dtype=torch.bool)
            states_BTD: Tensor = self.layer(x_BTD, is_real_BT)
            return states_BTD[:, -1]
        padding = PaddingInfo.without_padding(n_sentences, n_positions, x_BTD.device)
        x_ND = x_BTD.flatten(0, 1) + self.positions(padding.position_N, n_positions).to(x_BTD.dtype)
        states_ND: Tensor = self.layer(x_ND, padding)
        return states_ND.view(n_sentences, n_positions, -1)[:, -1]

    def loss(self, batch: LanguageBatch) -> LossSum:
        """Return the cross-entropy of the symbols to recall, summed over the batch."""
        return self.output.loss(self.last_states(self.embedding(batch.ids_BT)), batch.targets_N)


def recall(kind: Kind, seed: int, sizes: RecallSizes) -> Recall:
    """Train a model to recall the first symbol of sequences of random length, and measure it before and after."""
    generator = torch.Generator().manual_seed(seed)
    with seeded(seed):
        model = Reader(kind)
    distances = torch.randint(1, sizes.longest + 1, (sizes.n_updates,), generator=generator).tolist()
    batches = ListedBatches([_sequences(BATCH_SIZE, each, generator) for each in distances], recall_batch)
    tests = [recall_batch(_sequences(sizes.n_tested, each, generator)) for each in sizes.tested_distances]
    before = gradient_by_distance(model, tests[-1])
    curve = train(
        model,
        lambda batch, _: model.loss(batch),
        batches,
        peak_lr=PEAK_LR,
        dev_nats=lambda: float(model.loss(tests[-1]).nll_nats) / sizes.n_tested,
        n_validations=sizes.n_validations,
    )
    return Recall(
        before,
        gradient_by_distance(model, tests[-1]),
        tuple(_accuracy(model, test) for test in tests),
        next((update for update, nats in curve if nats < log(N_SYMBOLS) / 2), None),
    )


def recall_batch(rows: Rows) -> LanguageBatch:
    """Return sequences of one length, whose targets are their first tokens."""
    ids_BT = torch.tensor(rows)
    return LanguageBatch(ids_BT, ids_BT[:, 0])


def gradient_by_distance(model: Reader, batch: LanguageBatch) -> tuple[float, ...]:
    """Return the gradient of the loss with respect to the embedding at each distance from the end, from 1.

    They are norms, averaged over the sequences and relative to distance 1; computed in double precision, in which even
    gradients of 1e-300 are not zero.
    """
    model.double()
    x_BTD = model.embedding(batch.ids_BT).detach().requires_grad_()
    loss = model.output.loss(model.last_states(x_BTD), batch.targets_N).loss_nats
    (gradient_BTD,) = torch.autograd.grad(loss, x_BTD)
    model.float()
    norms = gradient_BTD.norm(dim=-1).mean(dim=0).flip(0).tolist()
    return tuple(norm / norms[1] for norm in norms[1:])


@torch.no_grad()
def _accuracy(model: Reader, batch: LanguageBatch) -> float:
    logits_BV = model.output.logits(model.last_states(model.embedding(batch.ids_BT)))
    return float((logits_BV.argmax(dim=1) == batch.targets_N).double().mean())


def _sequences(n_sequences: int, distance: int, generator: torch.Generator) -> Sequence[Sequence[int]]:
    """Return random sequences: a symbol, then ``distance`` noise tokens."""
    first = torch.randint(FIRST_SYMBOL, FIRST_NOISE, (n_sequences, 1), generator=generator)
    noise = torch.randint(FIRST_NOISE, VOCABULARY_SIZE, (n_sequences, distance), generator=generator)
    rows: list[list[int]] = torch.cat((first, noise), dim=1).tolist()
    return rows
