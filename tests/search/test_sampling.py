"""Sampling: distributions by definition, and frequencies of draws."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from said import naming
from transduce.errors import SearchError
from transduce.search.draws import draw, sampling_log_probs
from transduce.search.sampling import Sampling

LOGITS = st.lists(st.floats(-8, 8), min_size=1, max_size=9)


def by_definition(logits: list[float], sampling: Sampling) -> list[float]:
    """The distribution, in plain Python."""
    if sampling.temperature == 0:
        best = max(range(len(logits)), key=lambda id: (logits[id], -id))
        return [float(id == best) for id in range(len(logits))]
    weights = [math.exp((logit - max(logits)) / sampling.temperature) for logit in logits]
    order = sorted(range(len(logits)), key=lambda id: (-logits[id], id))[: sampling.top_k]
    kept, total = set[int](), sum(weights[id] for id in order)
    for id in order:
        if sampling.top_p is None or sum(weights[each] for each in kept) / total < sampling.top_p - 1e-7:
            kept.add(id)
    norm = sum(weights[id] for id in kept)
    return [weights[id] / norm if id in kept else 0.0 for id in range(len(logits))]


@given(LOGITS, st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.none() | st.integers(1, 9), st.none() | st.floats(0.1, 1.0))
def test_the_distribution_is_that_of_the_definition(
    logits: list[float], temperature: float, top_k: int | None, top_p: float | None
) -> None:
    logits = torch.tensor(logits).double().mul(64).round().div(64).tolist()  # ties are exact
    sampling = Sampling(temperature, top_k, top_p)
    got = sampling_log_probs(torch.tensor([logits], dtype=torch.float64), sampling).exp()[0].tolist()
    expected = by_definition(logits, sampling)
    near_the_edge = top_p is not None and any(
        abs(partial - top_p) < 1e-6 for partial in torch.tensor(sorted(expected, reverse=True)).cumsum(0).tolist()
    )
    if not near_the_edge:
        assert got == pytest.approx(expected, abs=1e-9)


def test_frequencies_are_the_probabilities() -> None:
    """Chi-square with 4 degrees of freedom: above 18.5 once in a thousand."""
    probabilities = torch.tensor([0.4, 0.3, 0.2, 0.07, 0.03])
    n, generator = 20_000, torch.Generator().manual_seed(5)
    drawn = draw(probabilities.log().expand(n, -1), [generator] * n)
    counts = torch.bincount(drawn, minlength=5)
    expected = n * probabilities
    assert float(((counts - expected) ** 2 / expected).sum()) < 18.5


@given(st.integers(0, 1000), st.integers(1, 5))
def test_only_possible_tokens_are_drawn(seed: int, n_possible: int) -> None:
    log_probs = torch.full((1, 9), -math.inf)
    log_probs[0, 2 : 2 + n_possible] = -math.log(n_possible)
    drawn = draw(log_probs, [torch.Generator().manual_seed(seed)])
    assert 2 <= int(drawn) < 2 + n_possible


def test_a_row_draws_what_it_draws_alone() -> None:
    log_probs = torch.randn(4, 20).log_softmax(1)
    together = draw(log_probs, [torch.Generator().manual_seed(seed) for seed in range(4)])
    alone = [draw(log_probs[n : n + 1], [torch.Generator().manual_seed(n)]) for n in range(4)]
    assert together.tolist() == torch.cat(alone).tolist()


@pytest.mark.parametrize(
    ("values", "facts"),
    [((-1.0,), ("temperature", -1.0)), ((1.0, 0), ("top_k", 0)), ((1.0, None, 0.0), ("top_p", 0.0)),
     ((math.nan,), ("temperature", "nan")), ((1.0, None, 1.5), ("top_p", 1.5))],
)  # fmt: skip
def test_values_that_make_no_distribution(values: tuple[float, ...], facts: tuple[object, ...]) -> None:
    with pytest.raises(SearchError, match=naming(*facts)):
        Sampling(*values)  # type: ignore[arg-type]
