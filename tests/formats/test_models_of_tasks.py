"""Models that are more than a Transformer or a language model, from before and after their record said so.

Each folder with an ``outputs.json`` was written by one version, as those of ``test_older_formats.py``.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from run_records import records
from transduce.diagnostics import examine
from transduce.inference import LanguageModel, RewardModel, Translator
from transduce.inference.folder import read_model_config
from transduce.model import MaskedTransformer, RewardLM, ValuedLM
from transduce.recipes import read_recipe
from transduce.runs import read_run_config, train
from transduce.search.sampling import Sampling

VERSIONS = sorted(path.parent for path in Path(__file__).parent.glob("*/outputs.json"))
PAIRS = [("Negate: The dog sleeps.", "The dog does not sleep."), ("Negate: He sings.", "He sings.")]
KINDS = {"mask-predict": MaskedTransformer, "reward": RewardLM, "ppo": ValuedLM}
TOLERANCE = 1e-4


@pytest.fixture(params=VERSIONS, ids=lambda folder: folder.name)
def version(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what a version has written; its runs name each other by relative paths."""
    copy = Path(shutil.copytree(request.param, tmp_path / "version"))
    monkeypatch.chdir(copy)
    return copy


def outputs(folder: Path) -> tuple[Any, Any]:
    """The model of a folder within what users call, and what that gives."""
    match folder.parts[-3]:
        case "reward":
            rater = RewardModel.load(folder)
            return rater.model, rater.rate(PAIRS)
        case "ppo":
            writer = LanguageModel.load(folder)
            responses = writer.generate([PAIRS[0][0]], sampling=Sampling(temperature=0.0), max_tokens=5)
            return writer.model, [each.text for each in responses]
        case _:
            translator = Translator.load(folder)
            return translator.model, translator.translate(["The dog sleeps.", "The old woman sees a cat."])


@pytest.mark.parametrize("task", KINDS)
def test_a_model_does_what_it_did(version: Path, task: str) -> None:
    wanted = json.loads((version / "outputs.json").read_text(encoding="utf-8"))[task]["outputs"]
    model, got = outputs(version / task / "run" / "model")
    assert type(model) is KINDS[task]
    assert got == (pytest.approx(wanted, rel=TOLERANCE) if task == "reward" else wanted)
    written = read_run_config(version / task / "run").model
    saved = read_model_config(version / task / "run" / "model")
    assert (saved.config, saved.task, saved.used_as) == (written, task, task)
    assert not [each for each in examine([f"{task}/run"]) if each.status == "problem"]


@pytest.mark.parametrize("task", KINDS)
def test_its_run_goes_on_as_it_would_have(version: Path, task: str) -> None:
    losses = json.loads((version / "outputs.json").read_text(encoding="utf-8"))[task]["losses_nats_after_resume"]
    settings = [f"training.max_updates={max(losses)}", "training.log_every_updates=1"]
    run = version / task / "run"
    train(read_recipe(version / task / "recipe.toml", settings), run, resume=True)
    got = {str(each["update"]): each["loss_nats"] for each in records(run, "update")}
    assert {update: got[update] for update in losses} == pytest.approx(losses, rel=TOLERANCE)
