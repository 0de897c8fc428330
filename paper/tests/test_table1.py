"""Table 1: measures against known quantities and against the paper's formulas."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from itertools import islice, repeat
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from messages import naming
from transduce.model.sequence_layers import Convolution, FullSelfAttention, Recurrent, SequenceLayer
from transduce_paper import ARTEFACTS, Experiments, Request, write_report
from transduce_paper.growth import crossing, exponent, per_unit
from transduce_paper.table1.compared_layers import COMPARED, ComparedLayer, cell_step, rounds_until_convergence
from transduce_paper.table1.convolutions import claims_about_convolutions, count_convolutions
from transduce_paper.table1.graph_measures import links_of, longest_chain, longest_path
from transduce_paper.table1.layer_costs import Case, count_operations, median_times_ms

ATTENTION, _, DILATED, _, _, RESTRICTED = COMPARED


# ---- fits


@given(st.floats(-3, 3), st.floats(0.01, 100))
def test_the_exponent_of_a_power_law(power: float, factor: float) -> None:
    sizes = [3, 7, 20, 100]
    assert exponent(sizes, [factor * size**power for size in sizes]) == pytest.approx(power, abs=1e-9)


@given(st.floats(-5, 5), st.floats(-100, 100))
def test_the_slope_of_a_line(slope: float, start: float) -> None:
    sizes = [1, 2, 5, 9]
    assert per_unit(sizes, [start + slope * size for size in sizes]) == pytest.approx(slope, abs=1e-9)


@pytest.mark.parametrize(("sizes", "values"), [([2], [1]), ([2, 2], [1, 3]), ([1, 2], [1])])
def test_fewer_than_two_sizes_are_refused(sizes: list[float], values: list[float]) -> None:
    with pytest.raises(ValueError, match=naming("two", "sizes")):
        exponent(sizes, values)
    with pytest.raises(ValueError, match=naming("two", "sizes")):
        per_unit(sizes, values)


def test_power_law_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match=naming("positive")):
        exponent([1, 2], [0, 1])


def test_crossings() -> None:
    sizes = [10, 20, 40, 80]
    assert crossing(sizes, [n * n for n in sizes], [37 * n for n in sizes]) == pytest.approx(37)
    assert crossing(sizes, [n * n for n in sizes], [20 * n for n in sizes]) == pytest.approx(20)
    assert crossing(sizes, [n * n for n in sizes], [100 * n for n in sizes]) is None
    assert crossing(sizes, [n * n for n in sizes], sizes) == 0
    # Above at first, then below, then above for good: the last crossing counts.
    assert crossing([1, 2, 4, 8], [2, 1, 1, 4], [1, 2, 2, 1]) == pytest.approx(4 * 2 ** (1 / 3))


# ---- chains


def test_chains_of_known_length() -> None:
    x = torch.rand(4, 4)

    def in_place() -> Tensor:
        made = x + 1
        made.mul_(2)
        return made.sum()

    def written_piecewise() -> Tensor:
        made = torch.zeros(4)
        made[0:1].copy_((x + 1)[0, 0:1])
        return made

    assert longest_chain(lambda: x) == 0
    assert longest_chain(lambda: x.t().reshape(2, 8)[0]) == 1  # reshaping a transposed tensor copies it
    assert longest_chain(lambda: x.view(16)[3:5].unsqueeze(0)) == 0
    assert longest_chain(lambda: ((x + 1) * 2).exp()) == 3
    assert longest_chain(lambda: (x + 1) @ (x * 2).exp()) == 3  # the longer of two
    assert longest_chain(in_place) == 3
    assert longest_chain(written_piecewise) == 2
    assert longest_chain(lambda: torch.arange(3)) == 0  # no input tensors


def test_a_loop_is_a_chain_and_a_tree_is_not() -> None:
    parts = list(torch.rand(16, 1).unbind())

    def by_loop() -> Tensor:
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def by_tree() -> Tensor:
        level = parts
        while len(level) > 1:
            level = [one + other for one, other in zip(level[::2], level[1::2], strict=True)]
        return level[0]

    assert (longest_chain(by_loop), longest_chain(by_tree)) == (15, 4)


def chain_of(sequence_layer: SequenceLayer, n: int) -> int:
    return longest_chain(
        lambda: sequence_layer(torch.randn(1, n, sequence_layer.d_model), torch.ones(1, n, dtype=torch.bool))
    )


@pytest.mark.parametrize("layer", COMPARED, ids=lambda layer: layer.name)
def test_only_recurrence_has_a_chain_that_grows(layer: ComparedLayer) -> None:
    of_6, of_12, of_24 = (chain_of(layer.make_countable(8), n) for n in (6, 12, 24))
    if layer.sequential == "O(n)":
        assert (of_24 - of_12) / 12 == (of_12 - of_6) / 6 > 1
    else:
        assert of_6 == of_12 == of_24


# ---- links and paths


def test_links_of_a_known_function() -> None:
    weights = torch.tensor([[1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]], dtype=torch.float64)
    links = links_of(lambda x: torch.einsum("ts,bsd->btd", weights, x).exp(), torch.rand(4, 3, dtype=torch.float64))
    assert torch.equal(links, weights > 0)


def test_links_match_the_receptive_field() -> None:
    for sequence_layer in (Convolution(4, k=3, dilation=2), FullSelfAttention(4, n_heads=2, is_causal=True)):
        torch.manual_seed(3)
        is_real = torch.ones(9, 9, dtype=torch.bool)
        links = links_of(
            lambda x, m=sequence_layer, r=is_real: m.double()(x, r), torch.randn(9, 4, dtype=torch.float64)
        )
        before, after = sequence_layer.receptive_field(9)
        offsets = (torch.arange(9).unsqueeze(0) - torch.arange(9).unsqueeze(1))[links]
        assert (-int(offsets.min()), int(offsets.max())) == (before, after)


def by_floyd_and_warshall(links: Tensor) -> list[list[float]]:
    n = len(links)
    distance = [[0 if i == j else (1 if links[i, j] else math.inf) for j in range(n)] for i in range(n)]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                distance[i][j] = min(distance[i][j], distance[i][k] + distance[k][j])
    return distance


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("is_causal", [False, True])
def test_the_longest_shortest_path_against_all_pairs(seed: int, is_causal: bool) -> None:
    links = torch.rand(7, 7, generator=torch.Generator().manual_seed(seed)) < 0.3
    if is_causal:
        links = links.tril() | torch.diag(torch.ones(6), -1).bool()
    distance = by_floyd_and_warshall(links)
    longest = max(distance[i][j] for i in range(7) for j in range(7) if j < i or not is_causal)
    assert longest_path(repeat(links), is_causal=is_causal) == (None if longest == math.inf else longest)


def test_longest_path_is_none_if_the_layers_do_not_suffice() -> None:
    to_the_next = torch.diag(torch.ones(4), -1) > 0
    assert longest_path([to_the_next] * 3, is_causal=True) is None
    assert longest_path([to_the_next] * 4, is_causal=True) == 4
    assert longest_path(repeat(to_the_next), is_causal=False) is None


@pytest.mark.parametrize("layer", COMPARED, ids=lambda layer: layer.name)
def test_the_paths_of_the_paper(layer: ComparedLayer) -> None:
    torch.manual_seed(1)
    for n in (9, 10, 28, 40):
        length = longest_path(layer.links(n, 4), is_causal=layer.make(4).is_causal)
        assert length == layer.exact_path(n), n


def test_a_broken_layer_has_other_paths() -> None:
    """Unrestricted links change the path length; without its first layer, a dilated stack never links all positions."""
    sees_all = next(ATTENTION.links(30, 4))
    assert longest_path(repeat(sees_all), is_causal=True) != RESTRICTED.exact_path(30)
    without_the_first = islice(DILATED.links(30, 4), 1, None)
    assert longest_path(without_the_first, is_causal=True) is None


def test_repeated_cell_steps_give_the_layer_output() -> None:
    torch.manual_seed(1)
    assert rounds_until_convergence(12, 8) == 12
    sequence_layer = Recurrent(6, is_causal=True, kernel="reference").double()
    step = cell_step(sequence_layer, torch.randn(5, 6, dtype=torch.float64))
    links = links_of(step, torch.randn(5, 12, dtype=torch.float64))
    assert torch.equal(links, torch.diag(torch.ones(4), -1).bool())


# ---- costs


@pytest.mark.parametrize("layer", COMPARED, ids=lambda layer: layer.name)
def test_operation_counts_match_the_layer_and_the_paper(layer: ComparedLayer) -> None:
    n, d, k, r = 32, 128, 3, 16
    count = count_operations(layer.make_countable(d), n, projections=layer.projections)
    assert count.whole == 2 * layer.make(d).multiplications(n)
    by_hand = {
        "O(n² d)": 2 * n * n * d,
        "O(n d²)": 8 * n * d * d,
        "O(k n d²)": k * n * d * d,
        "O(k n d + n d²)": k * n * d + n * d * d,
        "O(r n d)": 2 * (2 * r - 1) * n * d,
    }
    assert count.own == 2 * by_hand[layer.complexity]
    assert count.whole - count.own == (2 * 4 * n * d * d if layer.projections else 0)


def test_every_case_is_timed() -> None:
    cases = [Case(layer, n, 8) for layer in COMPARED for n in (4, 8)]
    times = median_times_ms(cases, n_repetitions=2, device=torch.device("cpu"))
    assert list(times) == cases
    assert all(0 < time_ms < 10_000 for time_ms in times.values())


# ---- the report


def test_short_report(tmp_path: Path) -> None:
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="test")
    state = torch.random.get_rng_state()
    report = ARTEFACTS["table1"](experiments, Request())
    assert torch.equal(state, torch.random.get_rng_state())
    paths = write_report(report, tmp_path / "out")
    names = {path.name for path in paths}
    assert {"table1.md", "table1.csv", "table1-costs.csv", "table1-paths.csv", "table1.svg"} <= names
    text = paths[0].read_text(encoding="utf-8")
    for printed in ("O(n² d)", "O(n d²)", "O(k n d²)", "O(r n d)", "O(log_k n)", "O(n / r)"):
        assert printed in text
    with (tmp_path / "out" / "table1-exponents.csv").open(encoding="utf-8", newline="") as lines:
        rows = {row["layer"]: row for row in csv.DictReader(lines)}
    for layer, over_n, over_d in zip(COMPARED, (2, 1, 1, 1, 1, 1), (1, 2, 2, 2, None, 1), strict=True):
        assert float(rows[layer.name]["operations without projections: n"]) == pytest.approx(over_n)
        assert over_d is None or float(rows[layer.name]["d"]) == pytest.approx(over_d)
    with (tmp_path / "out" / "table1-crossover.csv").open(encoding="utf-8", newline="") as lines:
        (row,) = csv.DictReader(lines)
    d = float(row["d"])
    assert float(row["n² d and n d²"]) == pytest.approx(d)
    assert float(row["operations without projections"]) == pytest.approx(4 * d)


# ---- convolutions


def test_operations_of_convolutions_are_those_of_the_formulas() -> None:
    n, d, k = 32, 64, 3
    counts = count_convolutions(ATTENTION, [(16, 128), (n, d)], k=k)
    assert counts.separable == [2 * n * n * d + 2 * n * d * d for n, d in counts.sizes]
    assert counts.attention == [4 * n * n * d + 8 * n * d * d for n, d in counts.sizes]
    assert counts.feed_forward == [16 * n * d * d for n, d in counts.sizes]
    assert counts.convolution == 2 * k * n * d * d
    assert counts.recurrent == {"rnn": 4 * n * d * d, "gru": 12 * n * d * d, "lstm": 16 * n * d * d}
    separable, factor = claims_about_convolutions(counts)
    assert counts.of_twice_k == 2 * counts.convolution
    assert (separable.verdict, factor.verdict) == ("agrees", "agrees")  # in O(); an LSTM has more than a convolution
    constant = replace(counts, of_twice_k=counts.convolution, separable=[10 * each for each in counts.separable])
    assert [claim.verdict for claim in claims_about_convolutions(constant)] == ["does not", "does not"]
    assert "1.50 times" in factor.found  # k / 2
