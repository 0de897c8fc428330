"""The interface of search to models: a step function, and a decoding state whose rows can be selected.

Rows are grouped by sentence: row ``b * W + w`` is beam ``w`` of sentence ``b``.

Shapes: B active sentences, W beams of each, N = B W rows of the decoding batch, V vocabulary.
"""

from __future__ import annotations

from typing import Protocol, Self, TypeVar

from torch import Tensor

__all__ = ["DecodingState", "StateT", "StepFunction"]


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
