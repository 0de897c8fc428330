"""The chapter on alignment: its short form end to end, its runs beside the recipes, and its finding on known points."""

from __future__ import annotations

from pathlib import Path

import pytest

from transduce.config import RunConfig
from transduce.corpora import read_rankings
from transduce.recipes import read_recipe
from transduce_paper import Experiments
from transduce_paper.notes.alignment import Point, _finding, make_alignment
from transduce_paper.notes.alignment.judging import best_of_n_kl, win_rate
from transduce_paper.notes.alignment.pipeline import (
    STAGES,
    Stage,
    base,
    direct_preference,
    fine_tuned,
    policy,
    reward_model,
)


def flat(config: RunConfig) -> dict[str, object]:
    return {f"{table}.{name}": value for table, fields in config.model_dump().items() for name, value in fields.items()}


@pytest.mark.parametrize("stage", list(STAGES))
def test_the_runs_are_those_of_the_recipes(stage: str, tmp_path: Path) -> None:
    run = Stage(Experiments(tmp_path / "runs", tmp_path / "work", scale="cpu"), 1).of(stage)
    assert flat(run.config) == flat(read_recipe(Path(f"alignment/{stage}")))


def test_each_stage_starts_from_the_one_before(tmp_path: Path) -> None:
    stage = Stage(Experiments(tmp_path / "runs", tmp_path / "work", scale="cpu"), 2)
    assert fine_tuned(stage).starts_from == base(stage)
    assert base(stage).name == "alignment-base-seed1"
    for run in (reward_model(stage), direct_preference(stage, 0.1), policy(stage, 0.05)):
        assert run.starts_from == fine_tuned(stage)
        assert run.name.endswith("-seed2")
    assert policy(stage, 0.05).rated_by == reward_model(stage)
    assert policy(stage, 0.05).name != policy(stage, 0.2).name


@pytest.mark.slow
def test_the_short_form_is_made_again_from_its_records(tmp_path: Path) -> None:
    part, again = (
        make_alignment(Experiments(tmp_path / "runs", tmp_path / work, scale="test")) for work in ("work", "elsewhere")
    )
    comparison = part.table("-alignment")
    assert comparison.column("model")[:3] == ["SFT", "DPO, beta 0.1", "PPO, beta 0.05"]
    first = comparison.rows[0]
    assert first[comparison.columns.index("KL, nats")] == pytest.approx(0, abs=1e-4)
    assert first[comparison.columns.index("wins")] == 0.5
    best = part.table("-alignment-translation")
    ways = best.column("translation")
    assert ways[:3] == ["greedy", "beam", "a draw"]
    assert ways.count("best by reward model") == ways.count("best by chrF (oracle)") == 4
    by = {row[:3]: row[best.columns.index("chrF")] for row in best.rows}
    assert by["best by chrF (oracle)", 0.5, 4] >= by["best by chrF (oracle)", 0.5, 2]
    (rankings,) = (tmp_path / "work" / "rankings").glob("*/train.jsonl")
    assert all(2 <= len(each.responses) <= 4 for each in read_rankings(rankings))
    assert [str(each) for each in again.blocks()] == [str(each) for each in part.blocks()]
    assert not any((tmp_path / "elsewhere" / name).exists() for name in ("test", "rankings", "stores"))
    for name in ("notes-alignment", "notes-alignment-course"):
        part.drawings[name](tmp_path / f"{name}.svg")
        assert "KL from the fine-tuned model" in (tmp_path / f"{name}.svg").read_text()
    samples = part.table("-alignment-samples")
    assert [prompt.split(":")[0] for prompt in samples.column("instruction")] == sorted(
        ["Negate", "Past", "Shorten", "Answer"] * 2
    )


def test_over_optimisation_is_a_higher_reward_with_a_lower_quality() -> None:
    near, far = Point("PPO, beta 0.2", 1.0, 1.0, 0.95, 0.9), Point("PPO, beta 0", 9.0, 2.0, 0.80, 0.6)
    few, many = Point("best of 4", 0.6, 1.0, 0.90, 0.8), Point("best of 16", 1.8, 2.0, 0.91, 0.8)
    bests = {1: {4: few, 16: many}, 2: {4: few, 16: many}}
    finding = _finding([near, far], bests, 0.02)
    assert finding.startswith("From PPO, beta 0.2 to PPO, beta 0 the reward rises")
    assert "No over-optimisation was found up to best of 16" in finding
    for still_good, margin in ((0.96, 0.02), (0.80, 0.11)):  # of one seed, the margin is wider by a factor of 2^0.5
        farther = Point("PPO, beta 0", 9.0, 2.0, still_good, 0.9)
        assert _finding([near, farther], bests, margin).startswith("No over-optimisation was found up to PPO, beta 0")
    fallen = {
        seed: {4: few, 16: Point("best of 16", 1.8, 2.0, quality, 0.8)} for seed, quality in ((1, 0.90), (2, 0.82))
    }
    assert "falls from 0.900 to 0.860, by more than the 0.020" in _finding([near, far], fallen, 0.02)


def test_best_of_n_and_wins() -> None:
    assert best_of_n_kl(1) == 0
    assert win_rate([1.0, 0.0, 0.5], [0.0, 1.0, 0.5]) == 0.5
    assert win_rate([1.0], [0.9]) == 1.0
