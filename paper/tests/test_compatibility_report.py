"""The report on compatibility functions: its runs, its costs, its claims; the short form end to end."""

from __future__ import annotations

from pathlib import Path

import pytest

from transduce.config import TransformerConfig
from transduce_paper import Experiments, Request, RunRecord, write_report
from transduce_paper.compatibility import (
    D_KS,
    FUNCTIONS,
    LENGTHS,
    Cost,
    Function,
    _claims,
    _draw,
    compatibility_experiment,
    cost_of_function,
    make_compatibility_report,
    megabytes_of_pairs,
)


@pytest.fixture
def experiments(tmp_path: Path) -> Experiments:
    return Experiments(tmp_path / "runs", tmp_path / "work", scale="test")


def test_short_report(experiments: Experiments, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report = make_compatibility_report(experiments, Request())
    assert report.table().column("function") == ["scaled", "dot"]
    assert report.table("-differences").column("function") == ["dot"]
    perplexities = report.table().column("PPL, d_k = 8")
    (percent,) = report.table("-differences").column("PPL, %")  # of geometric means, which differ little
    assert percent == pytest.approx(100 * (perplexities[1] / perplexities[0] - 1), abs=1)
    assert report.table("-costs").column("relative to scaled")[0] == 1.0
    assert "compatibility.svg" in {path.name for path in write_report(report, tmp_path / "out")}


def test_the_runs_differ_in_function_d_k_and_seed_only(tmp_path: Path) -> None:
    experiments = Experiments(tmp_path, tmp_path, scale="cpu")
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


class Scored(RunRecord):
    """A record of which only perplexity and BLEU count."""

    def __init__(self, perplexity: float, last_fall: float | None) -> None:
        object.__setattr__(self, "dev_perplexity", perplexity)
        object.__setattr__(self, "last_fall", last_fall)
        object.__setattr__(self, "test_scores", {"sacrebleu": {"score": 100 / perplexity}})


def records_of(
    perplexities: dict[Function, tuple[float, float]], *, last_fall: float | None = 0.001
) -> dict[tuple[Function, int], list[RunRecord]]:
    """Make two seeds, 0.02 apart, of each function from its perplexity at the smallest d_k and at all others."""
    return {
        (function, d_k): [Scored(value - 0.01, last_fall), Scored(value + 0.01, last_fall)]
        for function, (at_small, at_others) in perplexities.items()
        for d_k, value in zip(D_KS, (at_small, at_others, at_others, at_others), strict=True)
    }


def costs_of(ms_of_additive: float) -> dict[tuple[Function, int, int], Cost]:
    """Make costs of 1 ms and 1 MB for all functions but the additive."""
    return {
        (function, d_k, length): Cost(
            ms_of_additive if function == "additive" else 1.0, 9.0 if function == "additive" else 1.0
        )
        for function in FUNCTIONS
        for d_k in D_KS
        for length in LENGTHS
    }


def test_verdicts_follow_from_the_intervals(tmp_path: Path) -> None:
    as_in_the_paper = records_of({"scaled": (9, 9), "dot": (9, 12), "additive": (9, 8), "bilinear": (9, 8)})
    assert [claim.verdict for claim in _claims(as_in_the_paper, costs_of(5.0))] == ["agrees"] * 4
    otherwise = records_of({"scaled": (9, 9), "dot": (10, 9), "additive": (9, 10), "bilinear": (9, 9)})
    verdicts = [claim.verdict for claim in _claims(otherwise, costs_of(0.5))]
    assert verdicts == ["does not", "does not", "does not", "cannot tell"]
    equal = records_of(dict.fromkeys(FUNCTIONS, (9, 9)))
    verdicts = [claim.verdict for claim in _claims(equal, costs_of(5.0))]
    assert verdicts == ["agrees", "cannot tell", "agrees", "cannot tell"]
    for fall in (0.01, None):
        perplexities: dict[Function, tuple[float, float]]
        perplexities = {"scaled": (9, 9), "dot": (9, 12), "additive": (9, 8), "bilinear": (9, 8)}
        untrained = records_of(perplexities, last_fall=fall)
        verdicts = [claim.verdict for claim in _claims(untrained, costs_of(5.0))]
        no = "not trained to the end"
        assert verdicts == [no, no, "agrees", no]
    pytest.importorskip("matplotlib")
    _draw(as_in_the_paper, tmp_path / "compatibility.svg")
    assert "95 % intervals" in (tmp_path / "compatibility.svg").read_text(encoding="utf-8")
