"""A run ends with the best: which checkpoints its model folder averages, and how another choice is made."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from small_recipes import SmallRuns
from task_suite import SmallRun, few_evaluated_sentences

from run_records import records
from said import naming, says
from transduce.errors import CheckpointError, ConfigError
from transduce.files import write_manifest
from transduce.inference import RewardModel
from transduce.model.weights_file import read_tensors
from transduce.runs import average_run, dev_perplexity, train
from transduce.tasks import open_prepared
from transduce.training import average_weights, checkpoint_folders, checkpoints_around, read_state

LOSSES = [3.0, 1.0, 2.0, 2.5, 2.5, 2.5, 2.5, 2.5]  # the best at the second validation, update 4
EVERY_TWO = [
    "training.max_updates=14", "training.validate_every_updates=2", "training.checkpoint_every_updates=2",
    "training.validation_bleu=false", "training.keep_checkpoints=3", "training.average_last=3",
]  # fmt: skip


@pytest.fixture
def overfitting(small_runs: SmallRuns, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallRun]:
    """A recipe whose dev loss is that of ``LOSSES``."""
    small, losses = small_runs["translation"], iter(LOSSES)
    monkeypatch.setattr("transduce.tasks.validation.mean_nll_nats", lambda *args, **options: next(losses))
    with few_evaluated_sentences():
        yield small


@pytest.mark.parametrize(
    ("settings", "averaged", "words", "is_told"),
    [
        (["training.patience=3"], [2, 4, 6], "3 checkpoints around update 4, from 2 to 6", False),
        (["training.patience=3", "training.averaging=last"], [6, 8, 10], "the last 3 checkpoints", True),
        (["training.averaging=best"], [2, 4, 6], "3 checkpoints around update 4, from 2 to 6", False),
        ([], [10, 12, 14], "the last 3 checkpoints", True),
    ],
)
def test_the_model_folder_averages_what_the_recipe_says(
    overfitting: SmallRun, settings: list[str], averaged: list[int], words: str, is_told: bool, tmp_path: Path
) -> None:
    log, run = list[str](), tmp_path / "run"
    train(overfitting.config(*EVERY_TWO, *settings), run, store=overfitting.folder / "store", log=log.append)
    paths = [run / "checkpoints" / f"update-{update:08d}" for update in averaged]
    expected, got = average_weights(paths), read_tensors(run / "model" / "model.safetensors")
    assert all(torch.equal(got[name], weight) for name, weight in expected.items())
    assert f"- weights: the mean of {words}" in (run / "model" / "README.md").read_text(encoding="utf-8")
    assert any(says(line, "update 4", f"average {run} --around best") for line in log) == is_told
    _, scores, _ = average_run(run, around="best")
    assert scores is not None
    around = checkpoints_around(run / "checkpoints", 4, 3, interval=2)
    assert [read_state(path).update for path in around] == [2, 4, 6]
    expected, got = average_weights(around), read_tensors(run / "model" / "model.safetensors")
    assert all(torch.equal(got[name], weight) for name, weight in expected.items())


def test_patience_on_bleu(small_runs: SmallRuns, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The loss goes on falling while the score does not."""
    small, scores = small_runs["translation"], iter([1.0, 9.0, 8.0, 7.0, 9.0])

    class Scored:
        signature = None

        @property
        def score(self) -> float:
            return next(scores)

    monkeypatch.setattr("transduce.tasks.pairs.translation.sacrebleu_score", lambda *args, **options: Scored())
    settings = [*EVERY_TWO, "training.validation_bleu=true", "training.best_by=bleu", "training.patience=3"]
    with few_evaluated_sentences():
        result = train(small.config(*settings), tmp_path / "run", store=small.folder / "store")
    assert (result.reason, result.updates) == ("patience", 10)
    are_best = [record["is_best"] for record in records(tmp_path / "run", "validation")]
    assert are_best == [True, True, False, False, False]
    assert read_state(checkpoint_folders(tmp_path / "run" / "checkpoints")[-1]).best_update == 4


def with_newest(run: Path, **state_of_newest: object) -> None:
    """Change what the newest checkpoint of a run says of it."""
    state = checkpoint_folders(run / "checkpoints")[-1] / "state.json"
    values = json.loads(state.read_text()) | state_of_newest
    state.write_text(json.dumps(values))
    write_manifest(state.parent)


def test_average_makes_a_model_of_any_checkpoint(own_run: Path, transduce: Callable[..., Any], tmp_path: Path) -> None:
    one = read_tensors(own_run / "checkpoints" / "update-00000020" / "model.safetensors")
    with_newest(own_run, best_update=20)
    for options in (["--update", 20], ["--around", "best"], ["--around", "best", "--last", 1]):
        out = tmp_path / "out"
        outcome = transduce("average", own_run, *options, "--out", out, "--json", "--device", "cpu")
        assert outcome.code == 0, outcome.err
        assert json.loads(outcome.out)["model"] == str(out)
        got = read_tensors(out / "model.safetensors")
        assert all(torch.equal(got[name], weight) for name, weight in one.items())
        assert "- weights: those of the checkpoint of update 20" in (out / "README.md").read_text(encoding="utf-8")
    assert transduce("average", own_run, "--device", "cpu").code == 0
    assert "the last 2 checkpoints" in (own_run / "model" / "README.md").read_text(encoding="utf-8")
    for options, facts in (
        (["--update", 15], ["update 15", 20, 30]),
        (["--update", 20, "--around", "best"], ["--update", "--around best"]),
    ):
        outcome = transduce("average", own_run, *options)
        assert outcome.code == 1
        assert says(outcome.err, *facts)
    with_newest(own_run, best_update=None)
    with pytest.raises(CheckpointError, match=naming(own_run, "validation")):
        average_run(own_run, around="best")


def test_a_run_that_was_stopped_before_its_schedule_has_nothing_to_average(own_run: Path) -> None:
    shutil.rmtree(own_run / "checkpoints" / "update-00000020")
    with_newest(own_run, cause="stop")
    with pytest.raises(CheckpointError, match=naming(own_run / "checkpoints", "--update")):
        average_run(own_run)
    assert average_run(own_run, last=1, around=30)[1] is not None


def test_a_loss_of_pairs_has_no_perplexity(small_runs: SmallRuns) -> None:
    run = small_runs["reward"]
    with pytest.raises(ConfigError, match=naming("'reward'", "perplexity")):
        dev_perplexity(RewardModel.load(run.model).model, open_prepared(run.folder / "store"), run.config())


def test_a_resume_with_another_rate_says_the_way(own_run: Path, transduce: Callable[..., Any]) -> None:
    command = "train", "--resume", "--out", own_run, "--set", "training.lr_factor=0.5", "--device", "cpu"
    outcome = transduce(*command)
    assert outcome.code == 1
    way = f"transduce train RECIPE --from {own_run / 'model'}"
    assert says(outcome.err, "training.lr_factor", "1.0", "0.5", way)
    (own_run / "model").rename(own_run / "elsewhere")
    assert says(transduce(*command).err, f"transduce average {own_run}", way)


def test_settings_that_an_earlier_version_ignored_do_not_end_a_run(small_runs: SmallRuns, tmp_path: Path) -> None:
    """Its recipe is refused, but what it has prepared and trained goes on."""
    small = small_runs["sft"]
    with few_evaluated_sentences():
        train(small.config("training.max_updates=3"), tmp_path / "run")
    ignored = {"data": {"dev_text": "a.txt", "leaves": "tags"}, "training": {"bidirectional_epochs": 1}}
    files = [tmp_path / "run" / "run.json", tmp_path / "run" / "store" / "prepared.json"]
    files += [path / "state.json" for path in checkpoint_folders(tmp_path / "run" / "checkpoints")]
    for path in files:
        values = json.loads(path.read_text())
        settings = values.get("begun_with", values)
        settings.pop("n_fields", None)
        tables = values if path.name == "prepared.json" else settings["config"]
        for table in tables.keys() & ignored.keys():
            tables[table] |= ignored[table]
        path.write_text(json.dumps(values))
        if path.name != "run.json":
            write_manifest(path.parent, exempt=("train", "dev"))
    with few_evaluated_sentences():
        result = train(small.config(), tmp_path / "run", resume=True)
    assert (result.reason, result.scores) == ("max_updates", small.result.scores)
    with pytest.raises(ConfigError, match=naming("data.dev_text", "'sft'", "data.dev_prompts")):
        small.config("data.dev_text=a.txt")
