"""What search asks of a model: a step function, and a state whose rows can be chosen.

Rows stand sentence by sentence: row ``b * W + w`` is beam ``w`` of sentence ``b``.
"""

# B sentences still searched, W beams (rows a sentence), N = B * W rows, V vocabulary

from __future__ import annotations

from typing import Protocol, Self, TypeVar

from torch import Tensor

__all__ = ["DecodingState", "StateT", "StepFunction"]


class DecodingState(Protocol):
    """What a model remembers between two steps, one row for each beam of each sentence."""

    def select(self, rows_BW: Tensor, /) -> Self:
        """A state whose rows are ``rows_BW.flatten()`` of this one.

        A row of the matrix holds the beams of ONE sentence, so what belongs to a sentence (its encoder states, its
        cross keys and values) is never copied for each beam. Sentences that are done are missing from the matrix, the
        others keep their order; the number of beams may change too (from 1 to W after the first step). Entries are
        int64.
        """


StateT = TypeVar("StateT", bound=DecodingState)


class StepFunction(Protocol[StateT]):
    """A model, as search sees it."""

    def __call__(self, last_ids_N: Tensor, state: StateT, /) -> tuple[Tensor, StateT]:
        """Read one more symbol in every row: the logits of the symbol after it, ``(N, V)``, and the state after it."""
