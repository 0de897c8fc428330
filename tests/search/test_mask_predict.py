"""Mask-predict on a model that is a table: what is masked again, which length is taken, the plain case of one pass."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from transduce.errors import SearchError
from transduce.search import PassCounts, mask_predict

OPTIONS = {"mask_id": 1, "eos_id": 2, "pad_id": 0, "suppressed_ids": (0, 1)}
PAD, MASK, EOS, A, B, C = range(6)


class Table:
    """Predicts A B C ... at each place; how sure it is depends on the place and on the left neighbour being known."""

    def __init__(self, certain: dict[int, float], unsure: dict[int, float]) -> None:
        self.certain, self.unsure, self.seen = certain, unsure, list[list[list[int]]]()

    def __call__(self, ids_NT: Tensor) -> Tensor:
        self.seen.append(ids_NT.tolist())
        logits_NTV = torch.full((*ids_NT.shape, 6), -9.0, dtype=torch.float64)
        for row, ids in enumerate(ids_NT.tolist()):
            for place in range(len(ids)):
                knows = place == 0 or ids[place - 1] != MASK
                p = (self.certain if knows else self.unsure).get(place % 3, 0.6)
                right, wrong = (A, B, C)[place % 3], (B, C, A)[place % 3]
                logits_NTV[row, place, right], logits_NTV[row, place, wrong] = math.log(p), math.log(1 - p)
        return logits_NTV


def test_one_pass_takes_the_best_token_at_each_place() -> None:
    model, counts = Table({0: 0.9, 1: 0.9, 2: 0.9}, {0: 0.9, 1: 0.4, 2: 0.7}), PassCounts()
    [best] = mask_predict(model, torch.tensor([[3]]), n_iterations=1, counts=counts, **OPTIONS)
    assert best.ids == (A, C, C)  # the second is wrong: its neighbour was not known
    assert model.seen == [[[MASK, MASK, MASK, EOS]]]
    assert best.log_prob == pytest.approx(math.log(0.9 * 0.6 * 0.7), abs=1e-2)
    assert best.score == pytest.approx(best.log_prob / 3)
    assert (best.is_finished, counts.passes, counts.tokens, counts.sentences) == (True, 1, 4, 1)


def test_the_least_probable_tokens_are_predicted_again() -> None:
    model, counts = Table({0: 0.9, 1: 0.8, 2: 0.95}, {0: 0.9, 1: 0.4, 2: 0.7}), PassCounts()
    [best] = mask_predict(model, torch.tensor([[3]]), n_iterations=3, counts=counts, **OPTIONS)
    # 3 (3 - 1) / 3 = 2 are masked, the second (0.6) and the third (0.7); then 1, the third (0.7; the second has 0.8).
    assert model.seen == [[[MASK, MASK, MASK, EOS]], [[A, MASK, MASK, EOS]], [[A, B, MASK, EOS]]]
    assert best.ids == (A, B, C)
    assert best.log_prob == pytest.approx(math.log(0.9 * 0.8 * 0.95), abs=1e-2)
    assert counts.passes == 3


def test_a_token_that_is_not_masked_keeps_its_probability() -> None:
    model = Table({0: 0.9, 1: 0.5, 2: 0.9}, {0: 0.9, 1: 0.8, 2: 0.3})
    [best] = mask_predict(model, torch.tensor([[3]]), n_iterations=2, **OPTIONS)  # 3 (2 - 1) / 2 = 1 is masked
    assert model.seen[1] == [[A, B, MASK, EOS]]
    assert best.log_prob == pytest.approx(math.log(0.9 * 0.8 * 0.9), abs=1e-2)


def test_the_length_with_the_greatest_mean_is_taken() -> None:
    model = Table({0: 0.9, 1: 0.6, 2: 0.99}, {0: 0.99, 1: 0.6, 2: 0.99})
    lengths_BR = torch.tensor([[2, 3, 1], [3, 2, 0], [2, 0, 0]])
    outputs = mask_predict(model, lengths_BR, n_iterations=1, **OPTIONS)
    assert [best.ids for best in outputs] == [(A,), (A, B, C), (A, B)]
    assert model.seen[0][4:6] == [[MASK, MASK, EOS, PAD], [EOS, PAD, PAD, PAD]]
    alone = [mask_predict(model, lengths_BR[row : row + 1], n_iterations=1, **OPTIONS)[0] for row in range(3)]
    assert alone == outputs


def test_short_outputs_are_done_early() -> None:
    model, counts = Table({0: 0.9}, {}), PassCounts()
    mask_predict(model, torch.tensor([[1]]), n_iterations=10, counts=counts, **OPTIONS)
    assert counts.passes == 1


def test_mistakes_are_named() -> None:
    model = Table({0: 0.9}, {})
    with pytest.raises(ValueError, match="n_iterations"):
        mask_predict(model, torch.tensor([[1]]), n_iterations=0, **OPTIONS)
    with pytest.raises(ValueError, match="lengths_BR"):
        mask_predict(model, torch.tensor([[1], [0]]), n_iterations=1, **OPTIONS)
    with pytest.raises(SearchError, match="sentence 0"):
        mask_predict(lambda ids: torch.full((*ids.shape, 6), math.nan), torch.tensor([[1]]), n_iterations=1, **OPTIONS)
