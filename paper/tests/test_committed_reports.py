"""The committed pages of paper/reports are what the code of today makes."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable, Sequence
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

import transduce.view
from transduce_paper import ARTEFACTS, LARGER, Experiments, Request, Scale, write_report
from transduce_paper.intervals import student_t
from transduce_paper.notes.adaptive_softmax import make_adaptive_softmax
from transduce_paper.notes.normalisation import make_normalisation
from transduce_paper.notes.positions import make_positions
from transduce_paper.notes.recurrence import make_recurrence
from transduce_paper.notes.smoothing import make_smoothing
from transduce_paper.report import Section

COMMITTED = Path(__file__).parents[1] / "reports"
RECORDS = COMMITTED / "runs" / "cpu"


@pytest.mark.parametrize(
    ("name", "scale"),
    [(name, "cpu") for name in ("table2", "table3", "table4")]
    + [("table3", "gpu"), ("table2", "hours"), ("table3", "hours")],
)
def test_tables_follow_from_the_records(name: str, scale: Scale, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    shutil.copytree(COMMITTED / "runs", tmp_path / "runs")
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale=scale)
    committed = COMMITTED if scale == "cpu" else COMMITTED / scale
    request = LARGER[name].require_recorded(name, experiments) if scale == "hours" else Request()  # until all are
    for path in write_report(ARTEFACTS[name](experiments, request), tmp_path / "out"):
        if path.suffix != ".svg":  # drawings depend on the version of matplotlib
            assert path.read_text(encoding="utf-8") == (committed / path.name).read_text(encoding="utf-8")
        else:
            assert (committed / path.name).exists()
    assert not (tmp_path / "work").exists()  # nothing was trained


@pytest.mark.parametrize(
    ("make", "tables"),
    [
        (make_normalisation, ["-normalisation-changes", "-normalisation-losses"]),
        (make_positions, ["-positions-learned"]),
        (make_smoothing, ["-calibration", "-calibration-overfitted"]),
        (make_adaptive_softmax, ["-adaptive-softmax-times", "-adaptive-softmax-losses"]),
        (make_recurrence, ["-recurrence-recall", "-recurrence-lengths"]),
    ],
)
def test_the_checks_of_the_notes_follow_from_the_measurements(
    make: Callable[[Experiments], Section], tables: Sequence[str], tmp_path: Path
) -> None:
    shutil.copytree(COMMITTED / "runs", tmp_path / "runs")
    log: list[str] = []
    part = make(Experiments(tmp_path / "runs", tmp_path / "work", scale="cpu", log=log.append))
    for name in tables:
        assert part.table(name).as_csv() == (COMMITTED / f"notes{name}.csv").read_text(encoding="utf-8")
    assert not log  # nothing was measured or trained


@pytest.mark.parametrize("name", ["figure3", "figure4", "figure5"])
def test_attention_figures_follow_from_records_and_arrays(name: str, tmp_path: Path) -> None:
    arrays = list(RECORDS.glob("attention-6.*.npy"))
    if not arrays:
        pytest.skip("the attention weights of the drawn sentences are not committed")
    of_paper = "governments" if name == "figure3" else "law"
    drawn = [path for path in arrays if re.search(rf"sentence-(woman|{of_paper})\.", path.name)]
    assert 0 < sum(path.stat().st_size for path in drawn) <= 1_000_000
    shutil.copytree(COMMITTED / "runs", tmp_path / "runs")
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="cpu")
    for path in write_report(ARTEFACTS[name](experiments, Request()), tmp_path / "out"):
        if path.suffix != ".html":  # compressed, so it depends on the version of zlib
            assert path.read_text(encoding="utf-8") == (COMMITTED / path.name).read_text(encoding="utf-8")
    assert not (tmp_path / "work").exists()  # no model was needed


@pytest.mark.parametrize("name", ["attention_page.css", "attention_drawing.js", "attention_page.js"])
def test_the_attention_page_has_the_assets_of_today(name: str) -> None:
    asset = (Path(transduce.view.__file__).parent / name).read_text(encoding="utf-8")
    assert asset.strip() in (COMMITTED / "attention.html").read_text(encoding="utf-8")


def test_the_reading_of_table_2_follows_from_the_seeds() -> None:
    def bleu(slug: str, n_seeds: int) -> list[float]:
        paths = [RECORDS / f"table2-9000-{slug}-seed{seed}.json" for seed in range(1, n_seeds + 1)]
        return [json.loads(path.read_text(encoding="utf-8"))["test_scores"]["sacrebleu"]["score"] for path in paths]

    text = (COMMITTED / "README.md").read_text(encoding="utf-8").replace("\n", " ")
    lstm, transformer = bleu("recurrent", 3), bleu("transformer", 3)
    s = sqrt((stdev(lstm) ** 2 + stdev(transformer) ** 2) / 2)
    of_means, of_runs = (student_t(4) * s * sqrt(2 / n) for n in (3, 1))
    assert f"differ by chance by up to {of_means:.1f} BLEU" in text
    assert f"single runs by up to {of_runs:.1f}." in text
    assert f"one run explains ({student_t(4) * s * sqrt(1 + 1 / 3):.1f})" in text
    assert f"with attention ({fmean(lstm):.1f}) is better than the Transformer ({fmean(transformer):.1f})" in text
    for name, slug in (
        ("The mixture of experts", "experts"),
        ("gated convolutions", "convs2s"),
        ("Dilated convolutions", "bytenet"),
        ("the LSTM without attention", "last-state"),
    ):
        [score] = bleu(slug, 1)
        assert f"{name} ({score:.1f}" in text


def test_the_reading_of_table_3_has_the_perplexities_of_the_table() -> None:
    text = (COMMITTED / "README.md").read_text(encoding="utf-8").replace("\n", " ")
    with (COMMITTED / "hours" / "table3-rows.csv").open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["row"] not in ("base", "big")]
    for row in rows:
        assert re.search(rf"{row['row']} (is (worse|better) )?\({float(row['PPL']):.2f}[,)]", text), row["row"]


def test_what_was_tried_with_big_is_recorded() -> None:
    text = (COMMITTED / "README.md").read_text(encoding="utf-8")

    def values_of(name: str) -> dict[str, Any]:
        values: dict[str, Any] = json.loads((RECORDS.parent / "hours" / name).read_text(encoding="utf-8"))
        return values

    tried = {next(iter(each["settings"])): each for each in values_of("table3-big-seed1.tried.json")["tried"]}
    big, wide = (values_of(f"table3-{row}-seed1.curve.json") for row in ("big", "C-d1024"))
    columns = big, *(tried[name] for name in ("model.p_drop", "model.n_heads", "training.lr_factor")), wide
    for number in range(4):
        cells = [f"{column['curve'][number]['perplexity']:.1f}" for column in columns]
        assert f"| {800 * (number + 1):,} | {' | '.join(cells)} |" in text


def test_the_minutes_of_all_runs_are_those_of_the_records() -> None:
    text = (COMMITTED / "README.md").read_text(encoding="utf-8").replace("\n", " ")
    for scale, told in (("cpu", "The {} training runs at this scale took {} minutes"),
                        ("hours", "The {} runs of Tables 2 and 3 at `--scale hours` took {} minutes")):  # fmt: skip
        values = [json.loads(path.read_text(encoding="utf-8")) for path in (RECORDS.parent / scale).glob("*.json")]
        minutes = [each["minutes"] for each in values if "weights_sha256" in each and "minutes" in each]
        assert told.format(len(minutes), f"{sum(minutes):,.0f}") in text


def test_every_record_has_the_number_of_its_format() -> None:
    assert all("format" in json.loads(path.read_text(encoding="utf-8")) for path in RECORDS.parent.rglob("*.json"))
