"""Table 3: the short form end to end, the paper's numbers, single rows, and what counts as an effect."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from messages import naming
from transduce.errors import ConfigError
from transduce.model import cost_of
from transduce.recipes import TABLE_3
from transduce_paper import ARTEFACTS, Experiments, Request, Scale, write_report
from transduce_paper.intervals import Interval, interval_of_difference
from transduce_paper.printed import PRINTED
from transduce_paper.run_records import Experiment, RunRecord
from transduce_paper.table3 import recorded, runs_of_table
from transduce_paper.table3.dropout import dropout_experiments, dropout_table
from transduce_paper.table3.effects import bleu_of, change_of, effect_on_perplexity, perplexity_of, verdict
from transduce_paper.table3.effects_table import caption, margins
from transduce_paper.table3.longer_runs import half_way, twice_as_long
from transduce_paper.table3.parameters import vocabularies_that_fit
from transduce_paper.table3.rows import (
    N_SEEDS,
    row_at_scale,
    row_records,
    runs_of_row,
    runs_of_row_alone,
    shorter_experiments,
)
from transduce_paper.training_curves import ValidationPoint

COMMITTED = Path(__file__).parents[1] / "reports"


def experiments_in(folder: Path, scale: Scale = "test") -> Experiments:
    return Experiments(folder / "runs", folder / "work", scale=scale)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("paper")


def last_metrics(folder: Path, name: str) -> dict[str, dict[str, Any]]:
    """Return the last record of each kind of a run."""
    lines = (folder / "work" / "test" / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return {record["kind"]: record for record in map(json.loads, lines)}


def test_short_report_of_table_3(folder: Path) -> None:
    report = ARTEFACTS["table3"](experiments_in(folder), Request())
    table = report.table()
    assert table.column("row") == ["base", "C-N2"]
    assert table.column("paper PPL") == [4.92, 6.11]
    # Without averaging, the final model has the loss of the last validation.
    names = ("base-seed1", "base-seed2", "C-N2-seed1")
    *base, smaller = (math.exp(last_metrics(folder, f"table3-{name}")["validation"]["nll_nats"]) for name in names)
    assert table.column("PPL") == pytest.approx([mean(base), smaller], rel=1e-4)
    # The paper's is 1.19 above base. Student's t of two seeds at 95 % is 12.706.
    effect, margin = smaller - mean(base), 12.706 * stdev(base) * math.sqrt(3 / 2)
    expected = "paper only" if abs(effect) <= margin else "as in the paper" if effect > 0 else "opposite"
    assert table.column("PPL's effect") == [None, expected]
    # The second time, records are read and nothing is trained.
    again = ARTEFACTS["table3"](experiments_in(folder), Request())
    assert again.table().rows == table.rows
    paths = write_report(report, folder / "out")
    assert "V = 37,000" in paths[0].read_text(encoding="utf-8")
    with (folder / "out" / "table3-parameters.csv").open(encoding="utf-8", newline="") as lines:
        rows = {row["row"]: row for row in csv.DictReader(lines)}
    assert float(rows["base"]["V = 37,000"]) == pytest.approx(63.05, abs=0.01)
    assert float(rows["big"]["V = 37,000"]) == pytest.approx(214.17, abs=0.01)


def test_rows_of_table_3_use_the_records_of_the_full_table(folder: Path) -> None:
    with pytest.raises(ConfigError, match=naming("'C-N22'", "C-N2")):
        ARTEFACTS["table3"](experiments_in(folder), Request(rows=("C-N22",)))
    alone = ARTEFACTS["table3"](experiments_in(folder / "alone"), Request(rows=("C-N2", "C-N2")))
    assert alone.name == "table3-rows"
    assert {path.name for path in (folder / "alone" / "runs" / "test").iterdir()} == {
        "table3-C-N2-seed1.json", "table3-C-N2-seed1.curve.json",
    }  # fmt: skip
    (row,) = alone.table().rows
    assert alone.table().column("PPL's effect") == [None]  # base has not been trained
    text = write_report(alone, folder / "out")[0].read_text(encoding="utf-8")
    assert "--row base" in text
    assert "paper 2 + 2 layers, d_model 512, wmt14-en-de" in text
    assert "ours 1 + 1 layers, d_model 64, grammar en-de, 300 pairs" in text
    full = ARTEFACTS["table3"](experiments_in(folder), Request()).table()
    among = ARTEFACTS["table3"](experiments_in(folder), Request(rows=("C-N2",))).table()
    assert among.rows == full.rows[1:]
    base = ARTEFACTS["table3"](experiments_in(folder), Request(rows=("base",))).table()
    assert (base.rows, base.caption) == (full.rows[:1], "")  # nothing is compared
    assert row[:4] == among.rows[0][:4]


def test_every_row_keeps_the_papers_ratios() -> None:
    paper_base = TABLE_3["base"]().model
    for (name, row), scale in product(TABLE_3.items(), ("cpu", "hours", "gpu")):
        theirs, ours, base = row().model, row_at_scale(name, scale).model, row_at_scale("base", scale).model
        for field in ("d_model", "d_ff", "n_heads", "n_encoder_layers", "n_decoder_layers", "d_k", "d_v"):
            ratio = getattr(theirs, field) / getattr(paper_base, field)
            assert getattr(ours, field) / getattr(base, field) == pytest.approx(ratio), (name, field)
        assert (ours.p_drop, ours.positions) == (theirs.p_drop, theirs.positions)
        assert row_at_scale(name, scale).training.eps_ls == row().training.eps_ls
        assert row_at_scale(name, scale).training.average_last == 1
    for name, row in TABLE_3.items():
        updates = row_at_scale(name, "cpu").training.max_updates / row_at_scale("base", "cpu").training.max_updates
        assert updates == row().training.max_updates / 100_000
        at_paper = row_at_scale(name, "paper", seed=3)
        assert (at_paper.model, at_paper.training.seed) == (row().model, 3)
        assert at_paper.training.max_updates == row().training.max_updates


def test_fitting_vocabularies_round_to_the_printed_counts() -> None:
    names = [name for name in PRINTED.table3 if name != "big"]
    sizes = vocabularies_that_fit(names)
    assert sizes is not None
    for size, is_inside in ((sizes[0] - 1, False), (sizes[0], True), (sizes[1], True), (sizes[1] + 1, False)):
        rounded = {
            name: round(cost_of(TABLE_3[name]().model.with_vocabulary(size, size)).parameters / 1e6) for name in names
        }
        fits = all(PRINTED.table3[name].millions in (None, millions) for name, millions in rounded.items())
        assert fits is is_inside, size
    assert vocabularies_that_fit(list(PRINTED.table3)) is None


@pytest.mark.parametrize(
    ("printed", "ours", "expected"),
    [
        (0.4, 25.5, "as in the paper"),
        (-0.4, 25.5, "opposite"),
        (0.4, 25.02, "paper only"),
        (0.0, 25.5, "ours only"),
        (0.0, 25.02, "none in either"),
    ],
)
def test_a_difference_within_the_interval_of_seeds_is_no_effect(printed: float, ours: float, expected: str) -> None:
    base = [24.95, 25.05, 25.0, 25.0]  # standard deviation 0.041, so the margin is 3.18 x 0.041 x 1.118 = 0.145

    def change(to: float, seeds: Sequence[float] = base) -> Interval:
        return interval_of_difference([to], seeds, [seeds])

    assert verdict(printed, change(ours)) == expected
    assert verdict(0.4, change(25.14)) == "paper only"
    assert verdict(0.4, change(25.15)) == "as in the paper"
    assert verdict(-0.1, change(25.02), negligible=0.1) == "none in either"
    assert verdict(0.4, change(25.4, base[:2])) == "paper only"  # two seeds give a wide interval


def test_rows_of_several_seeds_share_their_noise() -> None:
    """With hours of training base has three seeds, four rows have two: 6 degrees of freedom for the pooled spread."""
    assert sorted(N_SEEDS["hours"].values()) == [2, 2, 2, 2, 3]
    [record] = row_records(Experiments(COMMITTED / "runs", COMMITTED / "work", scale="cpu"), ["C-N2"], jobs=1)["C-N2"]
    spread = {1: [0.0], 2: [0.0, 0.1 * math.sqrt(2)], 3: [0.0, 0.1, 0.2]}  # each with a standard deviation of 0.1
    rows = {
        name: [replace(record, dev_perplexity=10.0 + each) for each in spread[N_SEEDS["hours"].get(name, 1)]]
        for name in TABLE_3
    }
    one, two = (change_of(name, rows, perplexity_of) for name in ("C-N2", "A-h1"))
    deviation, t = 0.1, 2.447
    assert one.half_width == pytest.approx(t * deviation * math.sqrt(1 + 1 / 3), rel=1e-3)
    assert two.half_width == pytest.approx(t * deviation * math.sqrt(1 / 2 + 1 / 3), rel=1e-3)
    assert margins(rows, perplexity_of) == [two.half_width, one.half_width]
    assert "(rows of several seeds the first, of one the second)" in caption(rows)
    assert "Student's t over 5 rows of several seeds, pooled" in caption(rows)


def test_effects_at_other_lengths_are_those_of_the_validations() -> None:
    [record] = row_records(Experiments(COMMITTED / "runs", COMMITTED / "work", scale="cpu"), ["C-N2"], jobs=1)["C-N2"]

    def curve(*perplexities: float) -> list[ValidationPoint]:
        return [ValidationPoint(100 * n, 0, 0.0, each, None) for n, each in enumerate(perplexities, start=1)]

    of_row = replace(record, dev_perplexity=7.0, last_fall=0.02)
    rows = {"base": [replace(of_row, dev_perplexity=each) for each in (5.0, 5.1, 5.2)], "C-N2": [of_row]}
    of_base = [curve(30.0, 12.0, 8.0, 5.0), curve(30.0, 12.2, 8.0, 5.1), None]  # the third is not kept
    curves = {"base": of_base, "C-N2": [curve(30.0, 8.0, 7.0)]}  # its third validation is past the half
    before = half_way(rows, curves)
    assert {name: [perplexity_of(run) for run in runs] for name, runs in before.items()} == {
        "base": [12.0, 12.2], "C-N2": [8.0],
    }  # fmt: skip
    assert effect_on_perplexity("C-N2", before) == "opposite"  # smaller, yet quicker to learn
    assert effect_on_perplexity("C-N2", rows) == "as in the paper"
    assert list(half_way(rows, {**curves, "C-N2": [None]})) == ["base"]
    later = twice_as_long(rows, curves)
    share = (5.0 / 12.0 + 5.1 / 12.2) / 2  # what is not kept gains as the others, so the seeds differ as before
    assert [perplexity_of(run) for run in later["base"]] == pytest.approx([5.0 * share, 5.1 * share, 5.2 * share])
    assert [perplexity_of(run) for run in later["C-N2"]] == [7.0 * 7.0 / 8.0]
    trained, overfitted = ({"base": [replace(of_row, last_fall=each)]} for each in (0.001, -0.1))
    [after] = twice_as_long(trained, {"base": of_base[:1]})["base"]
    assert perplexity_of(after) == pytest.approx(7.0 * 7.0 / 12.0)
    assert twice_as_long(overfitted, {"base": of_base[:1]}) == overfitted


def test_of_a_row_that_overfits_the_best_of_several_lengths_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [record] = row_records(Experiments(COMMITTED / "runs", COMMITTED / "work", scale="cpu"), ["C-N2"], jobs=1)["C-N2"]
    perplexity = {3_000: 7.0, 6_000: 6.0, 24_000: 8.0}

    def run(self: Experiments, experiment: Experiment) -> RunRecord:
        n = experiment.config.training.max_updates
        return replace(record, name=experiment.name, updates=n, dev_perplexity=perplexity[n])

    monkeypatch.setattr(Experiments, "run", run)
    experiments = experiments_in(tmp_path, "hours")
    shorter = {each.name: each.config.training for each in shorter_experiments(experiments, "D-drop0")}
    assert [each.max_updates for each in shorter.values()] == [3_000, 6_000] * 2
    assert {each.max_updates // each.validate_every_updates for each in shorter.values()} == {30}
    assert "table3-D-drop0-6000-updates-seed2" in shorter
    rows = row_records(experiments, ["D-drop0", "base"], jobs=1)
    assert [run.updates for run in rows["D-drop0"]] == [6_000, 6_000]
    assert [run.updates for run in rows["base"]] == [24_000] * 3
    assert set(shorter) <= {run.name for run in runs_of_table(experiments)}
    assert not shorter_experiments(experiments_in(tmp_path, "gpu"), "D-drop0")


def test_a_row_alone_is_shown_when_every_length_of_its_first_seed_is_recorded(tmp_path: Path) -> None:
    experiments = experiments_in(tmp_path, "hours")
    (tmp_path / "runs" / "hours").mkdir(parents=True)

    def record(*runs: Experiment) -> None:
        for run in runs:
            experiments.record_path(run).write_text("{}")

    record(*runs_of_row(experiments, "base"), *runs_of_row(experiments, "C-N2"))
    of_seed_1 = [run for run in runs_of_row(experiments, "D-drop0") if run.config.training.seed == 1]
    for n, rows in ((1, ("base", "C-N2")), (3, ("base", "C-N2", "D-drop0"))):
        record(*of_seed_1[:n])
        assert recorded(experiments) == Request(rows=rows, only_recorded=True)
    assert runs_of_row_alone(experiments, "D-drop0") == of_seed_1
    record(*runs_of_row(experiments, "D-drop0"))
    assert len(runs_of_row_alone(experiments, "D-drop0")) == 6  # a further seed counts as soon as it is whole
    assert len(runs_of_row_alone(experiments_in(tmp_path / "new", "hours"), "base")) == 3


def test_a_report_of_rows_says_what_is_missing() -> None:
    experiments = Experiments(COMMITTED / "runs", COMMITTED / "work", scale="hours")
    report = ARTEFACTS["table3"](experiments, Request(rows=("base", "D-drop0")))
    decides, trained = (report.table().column(name) for name in ("decides", "trained to the end"))
    assert (decides, trained) == ([None, "yes"], ["yes", "best of several lengths"])
    text = report.as_markdown()
    assert "D-drop0 (3 of 6 runs), D-smooth0 (1 of 2 runs, so not shown)" in text
    assert report.finding.startswith(
        "1 of 1 comparisons with base decide, since the worse model is trained to the end."
    )
    assert "the highest rate of each row is 2.8 times the paper's (base 2.0e-03 and 7.0e-04)" in text


def test_dropout_is_compared_on_less_text(tmp_path: Path) -> None:
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="hours")
    runs = {each.name: each.config for each in dropout_experiments(experiments)}
    assert len(runs) == 6
    for name, config in runs.items():
        assert f"-{config.data.max_pairs}-pairs-" in name
        assert config.model.p_drop == (0.0 if "drop0" in name else 0.2 if "drop2" in name else 0.1)
        assert config.training.max_updates == 15 * config.training.validate_every_updates
    [record] = row_records(Experiments(COMMITTED / "runs", COMMITTED / "work", scale="cpu"), ["C-N2"], jobs=1)["C-N2"]

    def of(perplexity: float) -> dict[str, RunRecord]:
        of_rates = {"D-drop0": 2.0, "base": 1.0, "D-drop2": 1.5}
        return {name: replace(record, dev_perplexity=perplexity * rate) for name, rate in of_rates.items()}

    rows = {name: [run, replace(run, dev_perplexity=run.dev_perplexity + 1)] for name, run in of(4.0).items()}
    table = dropout_table({2_000: of(20.0), 8_000: of(10.0)}, rows)
    assert table.column("pairs") == ["2,000", "8,000", "all"]
    assert table.column("PPL, P_drop 0") == [40.0, 20.0, 8.5]
    assert table.column("PPL, P_drop 0.1") == [20.0, 10.0, 4.5]
    assert table.column("BLEU, P_drop 0.2") == [pytest.approx(bleu_of(record))] * 3


def test_runs_of_hours_count_by_their_best_checkpoint() -> None:
    for name, row in TABLE_3.items():
        training = row_at_scale(name, "hours").training
        assert training.averages_around_best
        assert training.max_updates == 30 * training.validate_every_updates
        assert training.optimiser == row().training.optimiser == "adam"
