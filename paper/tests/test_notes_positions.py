"""The three positional encodings: known properties, by formula or by loops."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import pytest
import torch

from transduce.model import sinusoid
from transduce_paper import Experiments
from transduce_paper.notes.position_options import (
    OPTIONS,
    cosine_with_word,
    distance_of_neighbours,
    error_of_best_map,
    fractions,
    integers,
    min_distance,
    no_positions,
    shift_after_layer_norm,
    shift_of_position,
    spread_of_products,
)
from transduce_paper.notes.positions import make_positions, new_model
from transduce_paper.report import Table

D = 16


def frequencies() -> list[float]:
    return [10000 ** (-2 * i / D) for i in range(D // 2)]


@pytest.mark.parametrize("n", [2, 7, 40])
def test_distance_of_neighbours_matches_the_formulas(n: int) -> None:
    assert distance_of_neighbours(integers, n, D) == pytest.approx(math.sqrt(D))
    assert distance_of_neighbours(fractions, n, D) == pytest.approx(math.sqrt(D) / (n - 1))
    sines = math.sqrt(sum(2 - 2 * math.cos(w) for w in frequencies()))
    assert distance_of_neighbours(sinusoid, n, D) == pytest.approx(sines)


def test_only_fractions_depend_on_the_sentence_length() -> None:
    assert shift_of_position(integers, 50, D) == shift_of_position(sinusoid, 50, D) == 0
    assert shift_of_position(fractions, 50, D) == pytest.approx(math.sqrt(D) * (5 / 9 - 5 / 49))


@pytest.mark.parametrize("name", list(OPTIONS))
def test_min_distance_matches_all_pairs(name: str) -> None:
    rows = OPTIONS[name](30, D).tolist()
    assert min_distance(OPTIONS[name], 30, D) == pytest.approx(
        min(math.dist(one, other) for one, other in combinations(rows, 2)), rel=1e-6
    )


def test_equal_positions_have_distance_zero() -> None:
    assert min_distance(no_positions, 5, D) == 0


def test_product_of_sinusoids_depends_on_the_offset_only() -> None:
    encoding_TD = sinusoid(60, D)
    for offset in (1, 5, 20):
        expected = sum(math.cos(offset * w) for w in frequencies())
        assert float(encoding_TD[30] @ encoding_TD[30 + offset]) == pytest.approx(expected)
        assert spread_of_products(sinusoid, 60, D, offset) < 1e-12
        assert spread_of_products(integers, 60, D, offset) > 0.5
        assert spread_of_products(fractions, 60, D, offset) > 0.5


def test_only_sinusoids_have_a_linear_shift() -> None:
    assert error_of_best_map(sinusoid, 100, D, 5) < 1e-10
    # p + 5 is no multiple of p: the best factor is sum p (p + 5) / sum p^2.
    before, after = range(95), range(5, 100)
    factor = sum(p * q for p, q in zip(before, after, strict=True)) / sum(p * p for p in before)
    error = math.sqrt(
        sum((factor * p - q) ** 2 for p, q in zip(before, after, strict=True)) / sum(q * q for q in after)
    )
    assert error_of_best_map(integers, 100, D, 5) == pytest.approx(error)
    assert error > 0.01


def test_layer_norm_removes_equal_elements() -> None:
    words_ND = torch.randn(20, D, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert shift_after_layer_norm(integers(100, D)[-1], words_ND) < 1e-10
    assert shift_after_layer_norm(fractions(100, D)[-1], words_ND) < 1e-10
    assert shift_after_layer_norm(sinusoid(100, D)[-1], words_ND) > 0.2


def test_cosine_with_word_by_hand() -> None:
    words_ND = torch.tensor([[3.0, 4.0], [1.0, 0.0]])
    encoding_TD = torch.tensor([[0.0, 0.0], [1.0, 1.0]])
    # (4, 5) with (3, 4): 32 / (5 sqrt(41)); (2, 1) with (1, 0): 2 / sqrt(5).
    expected = [1.0, (32 / (5 * math.sqrt(41)) + 2 / math.sqrt(5)) / 2]
    assert cosine_with_word(encoding_TD, words_ND).tolist() == pytest.approx(expected)


def test_without_positions_the_model_ignores_word_order() -> None:
    """Without positions, permuting the tokens permutes the states and changes nothing else."""
    ids_1T = torch.tensor([[5, 9, 7, 6, 8]])
    order = torch.tensor([3, 1, 4, 0, 2])
    for positions, sees_order in ((no_positions, False), (sinusoid, True), (integers, True)):
        torch.manual_seed(2)
        model = new_model(12, positions)
        difference = (model(ids_1T[:, order]) - model(ids_1T)[order]).abs().max()
        assert (difference > 1e-2) == sees_order


def test_short_report(tmp_path: Path) -> None:
    part = make_positions(Experiments(tmp_path, tmp_path, scale="test"))
    by_length, properties, learned = (section for section in part.blocks() if isinstance(section, Table))
    assert [row[:2] for row in by_length.rows] == [(name, n) for name in OPTIONS for n in (10, 50)]
    assert len(properties.rows) == 5
    assert [row[0] for row in learned.rows] == ["none", *OPTIONS]
    assert all(0 <= cell <= 1 for row in learned.rows for cell in row[1:] if isinstance(cell, float))
