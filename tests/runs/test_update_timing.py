"""The updates that ``init`` times."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch

from transduce.errors import TrainingError
from transduce.model import make_model
from transduce.runs import read_run_config, update_timing
from transduce.runs.update_timing import seconds_per_update
from transduce.tasks import open_prepared


def timed(run: Path) -> float:
    return seconds_per_update(read_run_config(run), open_prepared(run / "store"), torch.device("cpu"))


def test_a_loss_that_is_no_number_leaves_nothing_behind(
    micro_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: Any) -> Any:
        model = make_model(*arguments)
        next(model.parameters()).data.fill_(math.nan)
        return model

    monkeypatch.setattr(update_timing, "make_model", broken)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(TrainingError, match="the loss is nan"):
        timed(micro_run)
    assert not list(tmp_path.iterdir())


def test_too_little_memory_is_told_without_settings_of_a_run(micro_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transduce.training.memory_preflight.free_bytes", lambda device: 10)
    with pytest.raises(TrainingError, match="free some memory") as caught:
        timed(micro_run)
    assert "--resume" not in str(caught.value)
