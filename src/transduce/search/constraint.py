"""What an output may go on with: grammar, a closed list of forms, brackets that must match."""

# N rows, V vocabulary, T symbols so far, the begin symbol included

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

__all__ = ["Constraint", "blocked_symbols"]


class Constraint(Protocol):
    """A function from what an output is so far to the symbols that may come next.

    It is asked for every beam at every step, about prefixes that it has allowed: one that remembers what it found for
    the shorter prefix has little to do. Its answer must depend on its arguments alone.
    """

    def __call__(self, sentence: int, prefix: tuple[int, ...], /) -> Sequence[int]:
        """Ids that may follow ``prefix``, which is without the begin symbol; ``sentence`` counts from 0."""


def blocked_symbols(
    constraint: Constraint, sentences_N: Tensor, ids_NT: Tensor, is_alive_N: Tensor, /, *, vocab_size: int
) -> Tensor:
    """(N, V), true for the symbols that may not come next. Rows that are not alive are not asked about.

    >>> only_after_itself = lambda sentence, prefix: prefix[-1:] or [3]
    >>> ids, alive = torch.tensor([[1, 0], [1, 2]]), torch.tensor([True, True])
    >>> blocked_symbols(only_after_itself, torch.tensor([0, 0]), ids, alive, vocab_size=3).tolist()
    [[False, True, True], [True, True, False]]
    """
    is_blocked_NV = torch.ones(len(ids_NT), vocab_size, dtype=torch.bool)
    rows = zip(sentences_N.tolist(), ids_NT.tolist(), is_alive_N.tolist(), strict=True)
    for row, (sentence, ids, is_alive) in enumerate(rows):
        allowed = constraint(sentence, tuple(ids[1:])) if is_alive else range(vocab_size)
        is_blocked_NV[row, list(allowed)] = False
    return is_blocked_NV.to(ids_NT.device)
