"""The report on compatibility functions: its runs, its costs, its claims; the short form end to end."""

from __future__ import annotations

from pathlib import Path

import pytest

from transduce.config import TransformerConfig
from transduce.paper import Experiments, Request, write_report
from transduce.paper.compatibility import (
    D_KS,
    FUNCTIONS,
    Function,
    _similar_then_better,
    compatibility_experiment,
    cost_of_function,
    make_compatibility_report,
    megabytes_of_pairs,
)
from transduce.paper.intervals import Interval


@pytest.fixture
def experiments(tmp_path: Path) -> Experiments:
    return Experiments(tmp_path / "runs", tmp_path / "work", scale="cpu")


def test_short_report(experiments: Experiments, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report = make_compatibility_report(experiments, Request(is_short=True))
    assert report.table().column("function") == ["scaled", "dot"]
    assert report.table("-differences").column("function") == ["dot"]
    perplexities = report.table().column("PPL, d_k = 8")
    assert report.table("-differences").column("PPL, difference") == pytest.approx([perplexities[1] - perplexities[0]])
    assert report.table("-costs").column("relative to scaled")[0] == 1.0
    assert "compatibility.svg" in {path.name for path in write_report(report, tmp_path / "out")}


def test_the_runs_differ_in_function_d_k_and_seed_only(experiments: Experiments) -> None:
    runs = [compatibility_experiment(experiments, f, d_k, seed) for f in FUNCTIONS for d_k in D_KS for seed in (1, 2)]
    assert len({run.name for run in runs}) == len(runs) == 32
    for run in runs:
        model = run.config.model
        assert isinstance(model, TransformerConfig)
        assert (model.compatibility, f"dk{model.d_k}", f"seed{run.config.training.seed}") == tuple(
            run.name.split("-")[1:]
        )
    same = [run.config.model.model_copy(update={"compatibility": "scaled", "d_k": 8}) for run in runs]
    assert all(model == same[0] for model in same)


def test_additive_attention_keeps_d_k_times_the_scores() -> None:
    scaled, additive = (cost_of_function(function, 64, 48) for function in ("scaled", "additive"))
    scores_mb = 8 * 2 * 48 * 48 * 4 / 1e6
    assert additive.kept_mb > 64 * scores_mb
    assert scaled.kept_mb < 8 * scores_mb
    assert min(scaled.milliseconds, additive.milliseconds) > 0


@pytest.mark.parametrize("function", FUNCTIONS)
def test_kept_memory_is_the_counted_one_and_what_grows_with_positions(function: Function) -> None:
    """Besides the pairs at most q, k, v, the output of each and one product of each width are kept."""
    d_k, length = 16, 96
    of_positions_mb = 8 * 2 * length * d_k * 4 / 1e6
    rest_mb = cost_of_function(function, d_k, length).kept_mb - megabytes_of_pairs(function, d_k, length)
    assert 0.9 * of_positions_mb < rest_mb < 6 * of_positions_mb


@pytest.mark.parametrize(
    ("small", "large", "expected"),
    [
        (Interval(0.1, 0.5), Interval(-2.0, 0.5), True),
        (Interval(-0.9, 0.5), Interval(-2.0, 0.5), False),  # better at small d_k, too
        (Interval(0.1, 0.5), Interval(2.0, 0.5), False),
        (Interval(0.1, 0.5), Interval(-0.2, 0.5), None),
    ],
)
def test_similar_and_then_better(small: Interval, large: Interval, expected: bool | None) -> None:
    assert _similar_then_better(small, large) is expected
