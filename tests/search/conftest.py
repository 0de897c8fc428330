"""A model that is a probability tree, so that the answer of a search can be worked out beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

SYMBOLS = "_^$ABC"  # padding 0, begin 1, end 2
PAD, BOS, EOS = 0, 1, 2


@dataclass(frozen=True)
class Readings:
    """The state: which sentence each row belongs to and what it has read after the begin symbol."""

    rows: tuple[tuple[int, str], ...]

    def select(self, rows_BW: Tensor) -> Readings:
        assert rows_BW.dtype == torch.int64
        assert rows_BW.ndim == 2
        assert rows_BW.numel() > 0
        sentences = [{self.rows[row][0] for row in rows_W} for rows_W in rows_BW.tolist()]
        assert all(len(of_one_row) == 1 for of_one_row in sentences), "a row of the matrix mixes sentences"
        order = [sentence for of_one_row in sentences for sentence in of_one_row]
        assert order == sorted(set(order)), "sentences changed their order, or one stands twice"
        return Readings(tuple(self.rows[row] for row in rows_BW.flatten().tolist()))


@dataclass
class TreeModel:
    """For each sentence, the probabilities of the next symbol by what was read; where a tree says nothing, the end."""

    trees: Sequence[Mapping[str, Mapping[str, float]]]
    dtype: torch.dtype = torch.float64
    rows_per_step: list[int] = field(default_factory=list)  # a record of what the search asked for

    def start(self) -> Readings:
        return Readings(tuple((sentence, "") for sentence in range(len(self.trees))))

    def __call__(self, last_ids_N: Tensor, state: Readings) -> tuple[Tensor, Readings]:
        assert last_ids_N.shape == (len(state.rows),)
        self.rows_per_step.append(len(state.rows))
        first = all(reading == "" and last == BOS for (_, reading), last in zip(state.rows, last_ids_N, strict=True))
        if len(self.rows_per_step) > 1:
            assert not first
            pairs = zip(state.rows, last_ids_N.tolist(), strict=True)
            state = Readings(tuple((sentence, reading + SYMBOLS[last]) for (sentence, reading), last in pairs))
        else:
            assert first
        probabilities = [self.trees[sentence].get(reading, {"$": 1.0}) for sentence, reading in state.rows]
        table = [[of_row.get(token, 0.0) for token in SYMBOLS] for of_row in probabilities]
        return torch.tensor(table, dtype=self.dtype).log(), state


@pytest.fixture
def tree_model() -> Callable[..., TreeModel]:
    def build(*trees: Mapping[str, Mapping[str, float]], dtype: torch.dtype = torch.float64) -> TreeModel:
        return TreeModel(trees, dtype)

    return build


@pytest.fixture
def spell() -> Callable[[Sequence[int]], str]:
    return lambda ids: "".join(SYMBOLS[index] for index in ids)
