"""The interface of search to models: a step function, and a decoding state whose rows can be selected.

Speculative decoding also needs ``extend``, which reads several tokens of each row, and states that can be rewound.

Rows are grouped by sentence: row ``b * W + w`` is beam ``w`` of sentence ``b``.

Shapes: B active sentences, W beams of each, N = B W rows of the decoding batch, T new tokens of a row,
V vocabulary.
"""

from __future__ import annotations

from typing import Protocol, Self, TypeVar

from torch import Tensor

__all__ = ["DecodingState", "ExtendFunction", "RewindableState", "RewindableT", "StateT", "StepFunction"]


class DecodingState(Protocol):
    """A model's state between two decoding steps, with one row for each beam of each sentence."""

    def select(self, rows_BW: Tensor, /) -> Self:
        """The state of the rows ``rows_BW.flatten()``, which are int64.

        Each row of the matrix holds the beams of one sentence, so data of a sentence (encoder states, keys and values
        of cross-attention) need no copy per beam. Sentences that are done are left out, the others keep their order;
        the number of beams may change (from 1 to W after the first step).
        """


StateT = TypeVar("StateT", bound=DecodingState)


class StepFunction(Protocol[StateT]):
    """One decoding step of a model."""

    def __call__(self, last_ids_N: Tensor, state: StateT, /) -> tuple[Tensor, StateT]:
        """Read one token of every row; return next-token logits, ``(N, V)``, and the next state."""


class RewindableState(DecodingState, Protocol):
    """A state from which the last tokens of each row can be taken back."""

    def rewind(self, n_N: Tensor, /) -> Self:
        """The state before the last ``n_N[n]`` tokens of row n."""


RewindableT = TypeVar("RewindableT", bound=RewindableState)


class ExtendFunction(Protocol[RewindableT]):
    """A decoding step of several tokens."""

    def __call__(
        self, ids_NT: Tensor, state: RewindableT, n_new_N: Tensor | None = None, /
    ) -> tuple[Tensor, RewindableT]:
        """Read the first ``n_new_N[n]`` of T tokens of row n (None: all); next-token logits after each, (N, T, V)."""
