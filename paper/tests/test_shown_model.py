"""Figures 3 to 5 of a model folder that the user names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from messages import naming
from transduce.errors import ConfigError
from transduce.inference import Translator
from transduce_paper import ARTEFACTS, Experiments, Request
from transduce_paper.attention import models
from transduce_paper.attention.models import shown_model
from transduce_paper.short_runs import write_few


@pytest.fixture
def experiments(tmp_path: Path) -> Experiments:
    """Experiments whose text is there; nothing has been trained."""
    write_few(tmp_path / "work" / "test")
    return Experiments(tmp_path / "runs", tmp_path / "work", scale="test")


@pytest.mark.parametrize("name", ["figure3", "figure4", "figure5"])
def test_the_model_of_the_user_is_shown(name: str, micro_model: Path, experiments: Experiments) -> None:
    report = ARTEFACTS[name](experiments, Request(model=micro_model))
    text = report.as_markdown()
    assert f"the model {micro_model} (1 + 2 layers, d_model 32)" in report.finding or "Undecided" in report.finding
    assert (
        f"The model has 1 + 2 layers of 4 heads, d_model 32, post-norm, and was trained elsewhere ({micro_model})"
        in text
    )
    assert f"`--model {micro_model}`" in text
    assert not experiments.records.exists()  # nothing was kept
    assert not [path for path in (experiments.work / "test").iterdir() if path.is_dir()]  # nothing was trained


def test_its_record_has_its_own_scores(micro_model: Path, experiments: Experiments) -> None:
    given, experiment = shown_model(experiments, Request(model=micro_model))
    record = given.run(experiment)
    assert 0 < record.dev_scores["sentences"] <= 20
    assert record.parameters == sum(each.numel() for each in Translator.load(micro_model).model.parameters())
    assert record.is_trained_to_the_end


def test_only_models_that_read_english_are_shown(
    micro_model: Path, experiments: Experiments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "ENGLISH", "fr")
    with pytest.raises(ConfigError, match=naming("English", micro_model, "en")):
        shown_model(experiments, Request(model=micro_model))


def test_other_figures_show_no_model(transduce: Callable[..., object], micro_model: Path, tmp_path: Path) -> None:
    outcome = transduce("paper", "figure1", "--model", micro_model, "--out", tmp_path)
    assert "--model is shown in figures 3 to 5" in outcome.err  # type: ignore[attr-defined]
