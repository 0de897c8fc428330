"""Table 2 at scale hours: its text, the settings of each system, the amounts of text, the whole report."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from transduce.corpora import generate_pairs
from transduce.errors import DataError
from transduce.files import write_json, write_lines
from transduce.training import peak_learning_rate
from transduce_paper import Experiments, Request, RunRecord, write_report
from transduce_paper.run_records import Experiment, without_paths
from transduce_paper.table2 import is_recorded, make_table2, recorded
from transduce_paper.table2.systems import (
    N_TRIED_PAIRS,
    N_TRIED_UPDATES,
    TRIED,
    config_at_scale,
    flops_per_token,
    systems_at_scale,
    tried_experiment,
)
from transduce_paper.table2.text import n_training_pairs, text_settings, write_text
from transduce_paper.table2.training import _turns

RECORD = Path(__file__).parents[2] / "paper" / "reports" / "runs" / "cpu" / "table3-base-seed1.json"
LSTM, CONVOLUTIONS = "GNMT-like (LSTM, additive attention)", "ConvS2S-like (gated convolutions)"


@pytest.fixture
def experiments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiments:
    """Experiments that only write down what they should train; everyone learns best with the second settings."""
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="hours")
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))

    def train(experiment: Experiment) -> RunRecord:
        training, data, model = experiment.config.training, experiment.config.data, experiment.config.model
        of_system = {"recurrent": 3.0, "convs2s": 5.0}.get(model.system, 1.0)
        of_text = 10.0 if data.max_pairs == 10_000 else 30.0
        bleu = (
            10 + of_system if of_text == 10.0 else 20 + training.seed + (3 if "transformer" in experiment.name else 0)
        )
        peak = peak_learning_rate(d_model=model.d_model, config=training)
        perplexity = 6.0 if peak == pytest.approx(1e-3) else 7.0
        theirs = recorded["dev_scores"]
        score = {**theirs, "sacrebleu": {**theirs["sacrebleu"], "score": bleu}}
        config = without_paths(experiment.config, (8000, 8000)).model_dump()
        of_run = {"name": experiment.name, "config": config, "updates": training.max_updates}
        scores = {"dev_scores": score, "dev_perplexity": perplexity, "test_scores": None}
        scores["last_fall"] = -0.05 if data.max_pairs else 0.01  # of fewer pairs, all overfit
        record = RunRecord(**{name: each for name, each in recorded.items() if name != "format"} | of_run | scores)
        write_json(experiments.record_path(experiment), {"format": 1, **asdict(record)})
        curve = [
            {
                "update": n,
                "tgt_tokens": record.tgt_tokens * n // 10,
                "minutes": float(n),
                "perplexity": 9.0,
                "bleu": 1.0 * n,
            }
            for n in range(1, 11)
        ]
        key = {"weights_sha256": record.weights_sha256, "settings": {}}
        write_json(experiments.record_path(experiment).with_suffix(".curve.json"), {"format": 1, **key, "curve": curve})
        return record

    monkeypatch.setattr(experiments, "_train", train)
    return experiments


@pytest.fixture
def corpora(tmp_path: Path, experiments: Experiments) -> None:
    """Three corpora of the grammar in a data folder."""
    experiments.data_folder = tmp_path / "data"
    names = {
        "multi30k": "multi30k/train.{}", "libreoffice-help": "libreoffice_help/train.en-de.{}",
        "tatoeba_anki": "tatoeba_anki/train.en-de.{}",
    }  # fmt: skip
    for seed, name in enumerate(names.values(), start=1):
        pairs = list(generate_pairs("train", n_pairs=600, seed=seed))
        for language in ("en", "de"):
            path = experiments.data_folder / name.format(language)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_lines(path, (getattr(pair, language) for pair in pairs))


def test_systems_cost_as_much_as_the_transformer() -> None:
    costs = {name: flops_per_token(config_at_scale(name, "hours")) for name in systems_at_scale("hours")}
    assert len(costs) == 6
    for name, cost in costs.items():
        assert cost == pytest.approx(costs["Transformer"], rel=0.1), name


def test_every_system_is_tried_alike(experiments: Experiments) -> None:
    for name in systems_at_scale("hours"):
        configs = [tried_experiment(experiments, name, tried).config for tried in TRIED]
        assert len({json.dumps(config.model_dump(), default=str) for config in configs}) == len(TRIED)
        for config, tried in zip(configs, TRIED, strict=True):
            peak = peak_learning_rate(d_model=config.model.d_model, config=config.training)
            assert (peak, config.model.p_drop) == (pytest.approx(tried.peak_rate), tried.p_drop)
            assert (config.data.max_pairs, config.training.max_updates) == (N_TRIED_PAIRS, N_TRIED_UPDATES)
            assert config.training.averages_around_best


@pytest.mark.usefixtures("corpora")
def test_the_text_is_mixed_and_dev_and_test_are_held_out(experiments: Experiments) -> None:
    write_text(experiments)
    pairs: dict[str, list[tuple[str, ...]]] = {}
    for setting in text_settings(experiments)[1:]:
        name, _, path = setting.partition("=")
        lines = Path(json.loads(path)).read_text(encoding="utf-8").splitlines()
        pairs[name] = [tuple(line.split("\t")) for line in lines]
    train, dev, test = (pairs[f"data.{split}_tsv"] for split in ("train", "dev", "test"))
    assert n_training_pairs(experiments) == len(train) > 500
    assert dev
    assert test
    for held_out in (dev, test):
        assert {src for src, _ in held_out}.isdisjoint(src for src, _ in train)
        assert {tgt for _, tgt in held_out}.isdisjoint(tgt for _, tgt in train)


def test_a_missing_corpus_is_named_before_training(
    tmp_path: Path, experiments: Experiments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRANSDUCE_DATA", raising=False)
    experiments.data_folder = tmp_path
    with pytest.raises(DataError, match="multi30k"):
        make_table2(experiments, Request())
    assert not list(experiments.records.rglob("*.json"))
    assert not (experiments.work / "table2-text").exists()


@pytest.mark.usefixtures("corpora")
def test_report(experiments: Experiments, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert not is_recorded(experiments)
    report = make_table2(experiments, Request())
    assert is_recorded(experiments)
    assert set(report.table("-settings").column("chosen")) == {"highest rate 0.001, P_drop 0.1"}
    names: list[Any] = report.table().column("system")
    seeds = dict(zip(names, report.table().column("seeds"), strict=True))
    assert seeds["Transformer"] == 3
    assert sorted(seeds.values()) == [1, 1, 1, 1, 3, 3]
    amounts = report.table("-amounts")
    n_all = n_training_pairs(experiments)
    assert amounts.columns == ("system", "10,000 pairs", "40,000 pairs", f"{n_all:,} pairs")
    row = dict(zip(names, amounts.rows, strict=True))
    assert row[CONVOLUTIONS] == (CONVOLUTIONS, 15.0, 21.0, pytest.approx(21.0, abs=1))
    assert row["Transformer"] == ("Transformer", 11.0, 24.0, 25.0)
    written = {path.name for path in write_report(report, tmp_path)}
    assert {"table2-amounts.svg", "table2-settings.csv"} <= written
    page = (tmp_path / "table2.md").read_text(encoding="utf-8")
    assert f"with 10,000 pairs -4.0 BLEU ({CONVOLUTIONS})" in page
    assert re.search(rf"with {n_all:,} pairs \+\d.0 BLEU \(.*; not trained to the end\)", page)
    assert "Ours: 3 + 3 layers, d_model 128, multi30k + libreoffice-help + tatoeba_anki en-de." in page
    assert "Each system has the best of the settings below." in page
    assert f"everyday sentences (tatoeba_anki), mixed; {n_all:,} pairs" in page
    n_runs = sum(len(turn) for turn in _turns(experiments, systems_at_scale("hours")))
    assert n_runs == 6 * len(TRIED) + 6 + 2 * 2 + 2 + 2 * 6
    assert list(report.table("-longer").column("updates")) == 2 * [10_000, 24_000]
    assert report.claims[0].verdict == "not trained to the end"
    assert "Not recorded yet" not in page


@pytest.mark.usefixtures("corpora")
def test_a_report_of_what_is_recorded_trains_nothing(experiments: Experiments, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert recorded(experiments) is None
    make_table2(experiments, Request())
    assert recorded(experiments) == Request()
    kept = {path.name for path in experiments.records.rglob("*.json")}
    missing = ("transformer-all-seed3", "recurrent-10000-seed1", "bytenet-all-seed2", "bytenet-all-seed3")
    for name in missing:
        experiments.record_path(Experiment(f"table2-{name}", config_at_scale("Transformer", "hours"))).unlink()
    kept -= {f"table2-{name}.json" for name in missing}
    request = recorded(experiments)
    assert request == Request(only_recorded=True)
    report = make_table2(experiments, request)
    assert kept == {path.name for path in experiments.records.rglob("*.json")}
    assert sorted(report.table().column("seeds")) == [1, 1, 1, 1, 1, 2]
    assert report.table("-amounts").columns[:2] == ("system", "40,000 pairs")
    write_report(report, tmp_path)
    page = (tmp_path / "table2.md").read_text(encoding="utf-8")
    assert "Not recorded yet, so left out: table2-" in page
    assert all(f"table2-{name}" in page for name in missing)
    assert "table2 --recorded --scale hours" in page
    assert "seeds 1 and 2 for Transformer" in page
    first = tried_experiment(experiments, "Transformer", TRIED[0])
    others = [tried_experiment(experiments, name, TRIED[1]) for name in (LSTM, CONVOLUTIONS)]
    for run in others:
        experiments.record_path(run).unlink()
    kept -= {f"{run.name}.json" for run in others}
    report = make_table2(experiments, request)
    assert kept == {path.name for path in experiments.records.rglob("*.json")}
    assert not {LSTM, CONVOLUTIONS} & set(report.table().column("system"))
    assert report.table("-amounts").columns[:2] == ("system", "10,000 pairs")  # the missing one is of the LSTM
    experiments.record_path(first).unlink()
    assert recorded(experiments) is None
