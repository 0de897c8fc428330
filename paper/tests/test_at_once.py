"""Several experiments at once: the same models as one after the other, and failures that leave the others alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from messages import naming, says
from transduce.config import RunConfig
from transduce.errors import TrainingError
from transduce.recipes import with_settings
from transduce_paper import Experiment, Experiments, Stopped
from transduce_paper.at_once import train_at_once


def test_runs_at_once_are_those_of_one_after_the_other(micro_config: RunConfig, tmp_path: Path) -> None:
    log: list[str] = []
    first, second = (
        Experiment(f"base-seed{seed}", with_settings(micro_config, [f"training.seed={seed}"])) for seed in (1, 2)
    )
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="cpu", log=log.append)
    impossible = Experiment("impossible", micro_config)
    expected = experiments.run(first)
    experiments.run_folder(impossible).write_text("no folder")
    assert expected.runs_at_once == 1
    experiments.record_path(first).unlink()
    with pytest.raises(TrainingError, match=naming(1, 3, "impossible")):
        train_at_once(experiments, [impossible, first, second], jobs=2)
    assert any(says(line, "impossible", experiments.run_folder(impossible)) for line in log)
    alone, other = experiments.run(first), experiments.run(second)
    assert alone == replace(expected, minutes=alone.minutes, sustained_flops=alone.sustained_flops, runs_at_once=2)
    assert other.weights_sha256 != alone.weights_sha256
    written = {f"base-seed{seed}.{kind}" for seed in (1, 2) for kind in ("json", "curve.json")}
    assert {path.name for path in (tmp_path / "runs" / "cpu").iterdir()} == written
    n_lines = len(log)
    train_at_once(experiments, [first, second], jobs=2)
    assert log[n_lines:] == []


def test_a_stop_starts_no_further_run(micro_config: RunConfig, tmp_path: Path) -> None:
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="cpu", should_stop=lambda: True)
    with pytest.raises(Stopped):
        train_at_once(experiments, [Experiment("base-seed1", micro_config)], jobs=2)
    assert list(tmp_path.iterdir()) == []
