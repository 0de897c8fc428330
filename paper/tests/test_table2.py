"""Table 2 for 9,000 updates: its systems at each scale, its seeds, its curves; the short form end to end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from transduce.config import TransformerConfig
from transduce.recipes import RECIPES, read_recipe
from transduce_paper import Experiments, Request, Scale, write_report
from transduce_paper.printed import PRINTED
from transduce_paper.run_records import RunRecord
from transduce_paper.table2 import _claims, _verdict, make_table2
from transduce_paper.table2.systems import (
    SYSTEMS,
    config_at_scale,
    flops_per_token,
    system_experiment,
    systems_at_scale,
)
from transduce_paper.table2.training import Trained, lead_over, margin_of, would_last
from transduce_paper.training_curves import ValidationPoint

RECORD = Path(__file__).parents[2] / "paper" / "reports" / "runs" / "cpu" / "table3-base-seed1.json"


@pytest.fixture(scope="module")
def experiments(tmp_path_factory: pytest.TempPathFactory) -> Experiments:
    folder = tmp_path_factory.mktemp("table2")
    return Experiments(folder / "runs", folder / "work", scale="test")


def test_short_report(experiments: Experiments, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report = make_table2(experiments, Request())
    assert report.table().column("system") == ["LSTM without attention", "Transformer"]
    curves = report.table("-curves")
    assert curves.column("system") == ["LSTM without attention", "Transformer"]  # one validation each, at the end
    assert curves.column("update") == [6, 6]
    assert curves.column("FLOPs by count") == pytest.approx(report.table().column("FLOPs by count"))
    assert all(0 < minutes <= 1 for minutes in curves.column("minutes"))
    paths = {path.name for path in write_report(report, tmp_path)}
    assert {"table2.md", "table2-curves.csv", "table2-curves.svg", "table2-capacities.csv"} <= paths
    assert "one seed each" in (tmp_path / "table2.md").read_text(encoding="utf-8")
    assert report.claims[0].where == "Table 2, caption"
    assert report.claims[0].verdict == "not trained to the end"
    assert report.claims[1].where == "section 7"
    assert report.claims[1].verdict == "cannot tell"  # of one seed each


def test_flops_by_count_and_by_rule(experiments: Experiments) -> None:
    report = make_table2(experiments, Request())
    measured = report.table()
    assert measured.column("system") == ["LSTM without attention", "Transformer"]
    # 6 FLOPs per matrix weight and target token: d_model 64, d_ff 256, a vocabulary of 400 tokens.
    attention, feed_forward, output = 4 * 64 * 64, 2 * 64 * 256, 400 * 64
    lstm = 4 * 64 * (64 + 64)  # four gates, over input and state
    weights = {
        "last-state": 2 * lstm + 2 * 64 * 64 + output,
        "transformer": (attention + feed_forward) + (2 * attention + feed_forward) + output,
    }
    records = {
        name: json.loads((experiments.records / "test" / f"table2-9000-{name}-seed1.json").read_text(encoding="utf-8"))
        for name in weights
    }
    assert 3 * 400 < records["transformer"]["tgt_tokens"] <= 6 * 400  # six updates of at most 400
    assert measured.column("FLOPs by count") == [
        6 * n_weights * records[name]["tgt_tokens"] for name, n_weights in weights.items()
    ]
    for row in measured.rows:
        cells = dict(zip(measured.columns, row, strict=True))
        seconds, each_second = 60 * cells["minutes"], 1e12 * cells["TFLOPS sustained"]
        assert cells["FLOPs by rule"] == pytest.approx(seconds * each_second)
        assert 1e7 < each_second < 1e15  # FLOP/s of a plausible machine
    printed = report.table("-printed")
    assert len(printed.rows) == len(PRINTED.table2) == 10
    by_rule = {row[0]: row[5] for row in printed.rows}
    assert by_rule["Transformer (base)"] == pytest.approx(3.3e18, rel=0.01)  # as printed in the paper
    assert by_rule["Transformer (big)"] == pytest.approx(2.3e19, rel=0.01)
    by_count = {row[0]: row[6] for row in printed.rows}
    assert by_count["Transformer (base)"] == pytest.approx(9.4e17, rel=0.01)
    assert by_count["ByteNet"] is None


def test_the_curve_is_that_of_the_metrics(experiments: Experiments) -> None:
    make_table2(experiments, Request())
    name = "table2-9000-transformer-seed1"
    metrics = [
        json.loads(line)
        for line in (experiments.work / "test" / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    validation = next(record for record in metrics if record["kind"] == "validation")
    record = json.loads((experiments.records / "test" / f"{name}.json").read_text(encoding="utf-8"))
    curve = json.loads((experiments.records / "test" / f"{name}.curve.json").read_text(encoding="utf-8"))["curve"]
    assert [point["update"] for point in curve] == [validation["update"]]
    assert curve[0]["perplexity"] == validation["perplexity"]
    assert curve[0]["tgt_tokens"] == record["tgt_tokens"]
    assert 60 * curve[0]["minutes"] < validation["elapsed_s"]  # without the validation itself


@pytest.mark.parametrize("scale", ["cpu", "gpu", "paper"])
def test_systems_have_similar_flops(scale: Scale, tmp_path: Path) -> None:
    costs = {name: flops_per_token(config_at_scale(name, scale)) for name in systems_at_scale(scale)}
    for name, cost in costs.items():
        if not SYSTEMS[name].is_big and SYSTEMS[name].direction == "en-de":
            assert cost == pytest.approx(costs["Transformer"], rel=0.1), name
    experiments = Experiments(tmp_path, tmp_path, scale=scale)
    assert len({system_experiment(experiments, name).name for name in costs}) == len(costs)


def test_runs_at_the_papers_scale_are_its_recipes() -> None:
    names = {
        "Transformer": "wmt14-en-de-base", "Transformer (big)": "wmt14-en-de-big",
        "Transformer, English to French": "wmt14-en-fr-base",
        "Transformer (big), English to French": "wmt14-en-fr-big",
    }  # fmt: skip
    for name, recipe in names.items():
        ours, theirs = config_at_scale(name, "paper"), read_recipe(RECIPES / f"{recipe}.toml")
        assert ours.model == theirs.model, name
        for field in ("corpus", "direction", "tokenizer", "vocab_size"):
            assert getattr(ours.data, field) == getattr(theirs.data, field), (name, field)
        for field in ("max_updates", "max_tokens_per_batch", "warmup_steps", "average_last"):
            assert getattr(ours.training, field) == getattr(theirs.training, field), (name, field)
    assert set(systems_at_scale("cpu")) == set(systems_at_scale("gpu")) == set(SYSTEMS) - set(list(names)[1:])


def test_runs_on_a_cpu_are_long_and_validated() -> None:
    for name in systems_at_scale("cpu"):
        config = config_at_scale(name, "cpu", seed=2)
        assert config.training.max_updates == 9000
        assert config.training.validate_every_updates == 1500
        assert config.training.seed == 2
        assert config.training.average_last == 5
    experts = config_at_scale("Transformer, mixture of experts", "cpu").model
    assert isinstance(experts, TransformerConfig)
    assert experts.d_ff * experts.n_active_experts == 256


# ---- what seeds explain


LSTM, GNMT = "LSTM without attention", "GNMT-like (LSTM, additive attention)"


def with_bleu(score: float) -> RunRecord:
    values: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    values.pop("format")
    record = RunRecord(**values)
    scores = {**record.dev_scores, "sacrebleu": {**record.dev_scores["sacrebleu"], "score": score}}
    return replace(record, dev_scores=scores, test_scores=None)


def trained(*scores: float) -> Trained:
    return Trained([with_bleu(score) for score in scores], [[]] * len(scores), {})


def test_the_margin_is_that_of_single_runs_with_pooled_variance() -> None:
    # Variances 1 and 3, pooled 2 with 4 degrees of freedom: 2.776 sqrt(2 (1 + 1)).
    systems = {"a": trained(29, 30, 31), "b": trained(20 - 3**0.5, 20, 20 + 3**0.5), "c": trained(5)}
    assert margin_of(systems) == pytest.approx(2.776445 * (2 * 2) ** 0.5)
    assert margin_of({"a": trained(3)}) is None


def test_the_verdict_says_whether_seeds_explain_it() -> None:
    sure = _verdict({"Transformer": trained(30, 30.1, 29.9), LSTM: trained(20, 20.1, 19.9)})
    assert "number 1 of 2" in sure
    assert "more than" in sure
    unsure = _verdict({"Transformer": trained(30, 34, 26), LSTM: trained(31, 35, 27)})
    assert "number 2 of 2" in unsure
    assert "within" in unsure
    assert unsure.endswith("Transformer is not trained to the end, so this decides nothing.")
    ended = [replace(record, last_fall=0.001) for record in trained(30, 34, 26).records]
    assert "decides nothing" not in _verdict({"Transformer": Trained(ended, [[]] * 3, {}), LSTM: trained(31, 35, 27)})


def test_a_lead_counts_only_if_more_training_would_not_turn_it() -> None:
    def system(bleu: float, *, fall: float, longer: float | None = None, fall_of_longer: float = 0.0) -> Trained:
        runs = [replace(with_bleu(bleu + seed / 10), last_fall=fall) for seed in (-1, 0, 1)]
        run = None if longer is None else replace(with_bleu(longer), updates=24_000, last_fall=fall_of_longer)
        return Trained(runs, [[]] * 3, {}, run)

    def counts(ours: Trained, theirs: Trained) -> tuple[bool, str]:
        systems = {"Transformer": ours, LSTM: theirs}
        is_undecided = "decides nothing" in _verdict(systems)
        assert is_undecided is not would_last(LSTM, systems)
        return not is_undecided, _claims(systems)[0].verdict

    ahead = system(30, fall=0.02)
    assert counts(ahead, system(20, fall=0.001)) == (True, "agrees")  # the better one can only gain
    assert counts(ahead, system(20, fall=0.02)) == (False, "not trained to the end")
    longer = system(30, fall=0.02, longer=33, fall_of_longer=0.02)
    assert counts(longer, system(20, fall=0.02, longer=25, fall_of_longer=0.001)) == (True, "agrees")
    assert counts(longer, system(20, fall=0.001, longer=25, fall_of_longer=0.02)) == (False, "not trained to the end")
    assert counts(longer, system(20, fall=0.02, longer=34, fall_of_longer=0.001)) == (False, "not trained to the end")
    assert counts(system(20, fall=0.001), longer) == (True, "does not")
    both = {"Transformer": longer, LSTM: system(20, fall=0.02, longer=25)}
    assert "After 24,000 updates (seed 1) they have 33.0 and 25.0." in _verdict(both)


def test_a_leader_of_one_seed_needs_a_wider_margin() -> None:
    systems = {"Transformer": trained(29, 30, 31), LSTM: trained(31.9), GNMT: trained(27, 28, 29)}
    lead = lead_over(LSTM, systems, lambda each: [record.bleu for record in each.records])
    assert lead.difference == pytest.approx(-1.9)
    assert lead.half_width == pytest.approx(2.776445 * (1 / 3 + 1) ** 0.5)
    assert "within the 3.2" in _verdict(systems)


def test_larger_models_and_other_languages_are_no_previous_systems() -> None:
    """They are trained at the paper's scale."""
    names = ("Transformer (big)", "Transformer, English to French", "Transformer (big), English to French")
    systems = {"Transformer": trained(27.0), LSTM: trained(20.0), **{name: trained(40.0) for name in names}}
    assert "number 1 of 2" in _verdict(systems)
    assert f"{LSTM} 20.0" in _claims(systems)[0].found


def test_training_is_faster_only_beyond_what_another_run_changes() -> None:
    def taking(*minutes: float) -> Trained:
        return Trained([replace(with_bleu(30), minutes=each) for each in minutes], [[]] * len(minutes), {})

    for others, verdict in (
        ((20.0,), "agrees"), ((10.5,), "cannot tell"), ((4.0,), "does not"), ((20.0, 21.0), "agrees"),
    ):  # fmt: skip
        systems = {"Transformer": taking(9.0, 10.0, 11.0), LSTM: taking(*others)}
        assert _claims(systems)[1].verdict == verdict

    alone = {"Transformer": taking(10.0), LSTM: taking(20.0)}
    assert _claims(alone)[1].verdict == "cannot tell"
    assert "One seed each" in _claims(alone)[1].found


def test_a_stall_of_the_machine_does_not_count() -> None:
    minutes = (2.0, 4.0, 36.0, 38.0, 40.0, 42.0)
    curve = [ValidationPoint(100 * n, 0, at, 9.0, 1.0) for n, at in enumerate(minutes, start=1)]
    record = replace(with_bleu(30), updates=600)
    assert Trained([record], [curve], {}).minutes == pytest.approx(12.0)
    twice_as_slow = [replace(point, minutes=2 * point.minutes) for point in curve]
    assert Trained([record, record], [curve, twice_as_slow], {}).minutes == pytest.approx(18.0)  # the mean of the seeds
