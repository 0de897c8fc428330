"""A model given as a probability tree, so that the results of a search can be computed by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

TOKENS = "_^$ABC"  # padding 0, BOS 1, EOS 2
PAD, BOS, EOS = 0, 1, 2


@dataclass(frozen=True)
class Prefixes:
    """The decoding state: the sentence and the prefix (without BOS) of each row."""

    rows: tuple[tuple[int, str], ...]

    def select(self, rows_BW: Tensor) -> Prefixes:
        assert rows_BW.dtype == torch.int64
        assert rows_BW.ndim == 2
        assert rows_BW.numel() > 0
        sentences = [{self.rows[row][0] for row in rows_W} for rows_W in rows_BW.tolist()]
        assert all(len(of_one_row) == 1 for of_one_row in sentences), "a row of the matrix mixes sentences"
        order = [sentence for of_one_row in sentences for sentence in of_one_row]
        assert order == sorted(set(order)), "sentences changed their order, or one stands twice"
        return Prefixes(tuple(self.rows[row] for row in rows_BW.flatten().tolist()))

    def rewind(self, n_N: Tensor) -> Prefixes:
        assert n_N.shape == (len(self.rows),)
        assert all(0 <= n <= len(prefix) for (_, prefix), n in zip(self.rows, n_N.tolist(), strict=True))
        kept = zip(self.rows, n_N.tolist(), strict=True)
        return Prefixes(tuple((sentence, prefix[: len(prefix) - n]) for (sentence, prefix), n in kept))


@dataclass
class TreeModel:
    """For each sentence, the next-token probabilities of each prefix; EOS after prefixes that are not in the tree."""

    trees: Sequence[Mapping[str, Mapping[str, float]]]
    dtype: torch.dtype = torch.float64
    rows_per_step: list[int] = field(default_factory=list)  # the batch size of each step of the search

    def start(self) -> Prefixes:
        return Prefixes(tuple((sentence, "") for sentence in range(len(self.trees))))

    def __call__(self, last_ids_N: Tensor, state: Prefixes) -> tuple[Tensor, Prefixes]:
        assert last_ids_N.shape == (len(state.rows),)
        self.rows_per_step.append(len(state.rows))
        first = all(prefix == "" and last == BOS for (_, prefix), last in zip(state.rows, last_ids_N, strict=True))
        if len(self.rows_per_step) > 1:
            assert not first
            pairs = zip(state.rows, last_ids_N.tolist(), strict=True)
            state = Prefixes(tuple((sentence, prefix + TOKENS[last]) for (sentence, prefix), last in pairs))
        else:
            assert first
        probabilities = [self.trees[sentence].get(prefix, {"$": 1.0}) for sentence, prefix in state.rows]
        table = [[row.get(token, 0.0) for token in TOKENS] for row in probabilities]
        return torch.tensor(table, dtype=self.dtype).log(), state

    def extend(self, ids_NT: Tensor, state: Prefixes, n_new_N: Tensor | None = None) -> tuple[Tensor, Prefixes]:
        """Read several tokens; BOS is part of the prefix, so that it can be taken back."""
        assert ids_NT.shape[0] == len(state.rows)
        self.rows_per_step.append(len(state.rows))
        n_new = [ids_NT.shape[1]] * len(state.rows) if n_new_N is None else n_new_N.tolist()
        tables, rows = [], []
        for (sentence, prefix), ids, n in zip(state.rows, ids_NT.tolist(), n_new, strict=True):
            assert 0 <= n <= len(ids)
            spelled = [prefix + "".join(TOKENS[index] for index in ids[: end + 1]) for end in range(len(ids))]
            assert all(each[:1] == "^" for each in spelled[:n])
            undefined = dict.fromkeys(TOKENS, math.nan)
            of_row = [
                self.trees[sentence].get(each[1:], {"$": 1.0}) if place < n else undefined
                for place, each in enumerate(spelled)
            ]
            tables.append([[row.get(token, 0.0) for token in TOKENS] for row in of_row])
            rows.append((sentence, prefix + "".join(TOKENS[index] for index in ids[:n])))
        return torch.tensor(tables, dtype=self.dtype).log(), Prefixes(tuple(rows))


@pytest.fixture
def tree_model() -> Callable[..., TreeModel]:
    def build(*trees: Mapping[str, Mapping[str, float]], dtype: torch.dtype = torch.float64) -> TreeModel:
        return TreeModel(trees, dtype)

    return build


@pytest.fixture
def spell() -> Callable[[Sequence[int]], str]:
    return lambda ids: "".join(TOKENS[index] for index in ids)
