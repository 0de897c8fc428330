"""Label smoothing: the notes' numbers, and the runs whose calibration is measured."""

from __future__ import annotations

import math
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from transduce.files import sha256_of_file, write_json
from transduce.recipes import TABLE_3
from transduce.training import smoothing_weights
from transduce_paper import Experiments, Request, RunRecord, Scale, Table, notes, write_report
from transduce_paper.notes import make_notes
from transduce_paper.notes.smoothing import EPSILONS, best_logits, make_smoothing
from transduce_paper.report import Section
from transduce_paper.table3.rows import row_experiment


def test_the_worked_example_of_the_notes() -> None:
    right, every = smoothing_weights(0.1, 3, "uniform")
    assert [f"{right + every:.4f}", f"{every:.4f}"] == ["0.9333", "0.0333"]
    logits_V = best_logits(0.1, 3, "uniform")
    assert [f"{logit:.4f}" for logit in logits_V.tolist()] == ["3.3322", "0.0000", "0.0000"]
    assert [f"{p:.4f}" for p in logits_V.softmax(dim=0).tolist()] == ["0.9333", "0.0333", "0.0333"]
    hard = torch.tensor([10.0, 0.0, 0.0], dtype=torch.float64).softmax(dim=0)
    assert math.floor(1e4 * hard[0]) == 9999
    assert f"{hard[1]:.4f}" == "0.0000"
    # Their other formula: epsilon / (k - 1) and 1 - epsilon.
    right, every = smoothing_weights(0.1, 3, "authors")
    assert (right + every, every) == pytest.approx((0.9, 0.05))


@pytest.mark.parametrize("eps_ls", [0.05, 0.1, 0.2, 0.5])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_best_logits_have_zero_gradient_under_torch_loss(eps_ls: float, n_classes: int) -> None:
    logits_V = best_logits(eps_ls, n_classes, "uniform").requires_grad_()
    loss = F.cross_entropy(logits_V.unsqueeze(0), torch.tensor([0]), label_smoothing=eps_ls)
    [gradient_V] = torch.autograd.grad(loss, logits_V)
    assert gradient_V.abs().max() < 1e-6
    gap = math.log((1 - eps_ls + eps_ls / n_classes) / (eps_ls / n_classes))
    assert logits_V.tolist() == pytest.approx([gap, *[0.0] * (n_classes - 1)], abs=1e-6)
    authors = math.log((1 - eps_ls) / (eps_ls / (n_classes - 1)))
    assert best_logits(eps_ls, n_classes, "authors")[0] == pytest.approx(authors, abs=1e-6)


def experiments_in(folder: Path, *, scale: Scale = "test") -> Experiments:
    return Experiments(folder / "runs", folder / "work", scale=scale)


def test_the_runs_differ_in_epsilon_only(tmp_path: Path) -> None:
    for scale in ("cpu", "gpu", "paper"):
        experiments = experiments_in(tmp_path, scale=scale)
        runs = [row_experiment(experiments, row, seed=1) for row in EPSILONS.values()]
        assert len({run.name for run in runs}) == 3
        assert [run.config.training.eps_ls for run in runs] == list(EPSILONS) == [0.0, 0.1, 0.2]
        alike = {run.config.model_copy(update={"training": None}).model_dump_json(warnings=False) for run in runs}
        assert len(alike) == 1
        trainings = {run.config.training.model_copy(update={"eps_ls": 0.0}).model_dump_json() for run in runs}
        assert len(trainings) == 1


def test_epsilons_match_the_rows_of_table_3() -> None:
    assert {eps_ls: TABLE_3[row]().training.eps_ls for eps_ls, row in EPSILONS.items()} == {e: e for e in EPSILONS}


@pytest.fixture
def finished(tmp_path: Path, micro_model: Path) -> Experiments:
    """Experiments with a finished short run; its model is a copy of the shared micro model."""
    experiments = experiments_in(tmp_path)
    experiment = row_experiment(experiments, "base", seed=1)
    record = RunRecord(
        name=experiment.name,
        config=experiment.config.model_dump(),
        data_fingerprint="0",
        weights_sha256=sha256_of_file(micro_model / "model.safetensors"),
        updates=30,
        src_tokens=20_000,
        tgt_tokens=21_000,
        minutes=0.1,
        machine="a machine",
        torch="2.0",
        parameters=1000,
        parameters_without_embeddings=500,
        training_flops=1e9,
        sustained_flops=1e9,
        dev_text="grammar dev",
        dev_perplexity=123.0,
        dev_scores={"sacrebleu": {"score": 1.5, "signature": "nrefs:1"}},
        test_text=None,
        test_scores=None,
    )
    write_json(experiments.record_path(experiment), asdict(record))
    experiments.store(experiment.config.data)
    shutil.copytree(micro_model, experiments.run_folder(experiment) / "model")
    return experiments


def test_short_report(finished: Experiments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiments = finished
    titles = ("Recurrent networks and attention", "Language models", "Pre-training", "Alignment")  # tested elsewhere
    parts = [Section(title, ("Text.",), "A finding.", summary="a finding") for title in titles]
    recurrence, *others = (lambda _, part=part: part for part in parts)
    monkeypatch.setattr(notes, "MAKERS", (*notes.MAKERS[:4], recurrence, notes.MAKERS[5], *others))
    report = make_notes(experiments, Request())
    paths = write_report(report, tmp_path / "out")
    text = paths[0].read_text(encoding="utf-8")
    titles = [line for line in text.splitlines() if line.startswith("## ")]
    assert titles == [
        "## Batch norm and layer norm",
        "## Three positional encodings",
        "## Label smoothing",
        "## Adaptive softmax",
        "## Recurrent networks and attention",
        "## BPE and WordPiece",
        "## Language models",
        "## Pre-training",
        "## Alignment",
    ]
    assert "{" not in text  # every template is filled
    drawings = {path.name for path in paths if path.suffix == ".svg"}
    assert drawings == {
        f"notes-{name}.svg"
        for name in (
            "normalisation",
            "positions",
            "calibration",
            "adaptive-softmax",
            "subwords",
        )
    }
    again = {path.name: path.read_bytes() for path in write_report(report, tmp_path / "again")}
    assert all(again[path.name] == path.read_bytes() for path in paths)

    # Cached bins of another model are not used.
    [cache] = (tmp_path / "runs" / "test").glob("*.calibration.json")
    original = cache.read_bytes()
    cache.write_text('{"weights_sha256": "0", "settings": {"n_bins": 10}, "calibration": []}', encoding="utf-8")
    make_smoothing(experiments)
    assert cache.read_bytes() == original

    # With the record and the cached bins, no model is needed.
    shutil.rmtree(tmp_path / "work")
    part = make_smoothing(experiments)
    assert not experiments.run_folder(row_experiment(experiments, "base", seed=1)).exists()
    first, second = (
        next(each for each in sections if isinstance(each, Table) and each.name == "-calibration")
        for sections in (report.blocks(), part.blocks())
    )
    assert first == second
