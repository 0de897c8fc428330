"""What every task promises, as checks of one small run: data, updates, resume, model folder, scores."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from run_records import records
from said import naming
from transduce.config import DataConfig, RunConfig
from transduce.config.task_settings import is_read, readers_of
from transduce.diagnostics import examine
from transduce.errors import CheckpointError, ConfigError
from transduce.model.weights_file import read_tensors
from transduce.recipes import read_recipe, with_settings
from transduce.runs import RunResult, train
from transduce.tasks import TASKS, open_prepared, prepare, task_named
from transduce.training import UpdateRecord, checkpoint_folders

N_EVALUATED = 5  # dev and test sentences of the built-in corpus
OF_EVERY_VALIDATION = {"kind", "update", "nll_nats", "is_best", "signature", "perplexity"}


@dataclass(frozen=True)
class SmallTask:
    """What the checks need to know of a task."""

    name: str
    recipe: str  # TOML, of a run of six updates; {folder} has the files, {model} and {reward_model} are earlier models
    score: str  # one that its evaluation gives
    validated: str | None  # one that its validation gives; None: only the loss
    card: tuple[str, ...]  # what its card tells of model, data and scores
    kind: str  # the class of its loaded model
    use: Callable[[Any, Path], Any]  # what its loaded model gives for an input, perhaps from the folder of files
    mistakes: tuple[tuple[str, tuple[object, ...]], ...]  # settings, each with the facts that its refusal names
    text: str  # what the refusal names if there is no training text
    starts_from: str | None = None  # the task of the model that it starts from
    write_files: Callable[[Path], object] = lambda folder: None
    needs: str | None = None  # a package of an extra
    stops: tuple[int, ...] = (3,)  # updates after which its run is interrupted


@dataclass(frozen=True)
class SmallRun:
    """The finished run of a ``SmallTask``."""

    task: SmallTask
    recipe: Path
    files: Path  # what the recipe reads
    result: RunResult
    settings: tuple[str, ...] = ()  # on top of the recipe

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.result.folder

    @property
    def model(self) -> Path:
        """The model folder."""
        return self.folder / "model"

    def config(self, *settings: str) -> RunConfig:
        """The recipe with other settings."""
        return read_recipe(self.recipe, [*self.settings, *settings])


@contextmanager
def few_evaluated_sentences() -> Iterator[None]:
    """A run of a few updates would spend most of its time on dev and test."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("parallel_text", "responses"):
            for name in ("GRAMMAR_DEV_PAIRS", "GRAMMAR_TEST_PAIRS"):
                patch.setattr(f"transduce.corpora.{module}.{name}", N_EVALUATED)
        yield


def run_once(
    task: SmallTask, folder: Path, settings: tuple[str, ...] = (), models: Mapping[str, Path] | None = None
) -> SmallRun:
    """Train a task in a new folder; ``models`` are those that its recipe names."""
    (folder / "files").mkdir(parents=True)
    task.write_files(folder / "files")
    recipe = folder / "recipe.toml"
    recipe.write_text(task.recipe.format(folder=folder / "files", **(models or {})), encoding="utf-8")
    with few_evaluated_sentences():
        result = train(read_recipe(recipe, settings), folder / "run")
    return SmallRun(task, recipe, folder / "files", result, settings)


def check_data(run: SmallRun, folder: Path, other: SmallRun) -> None:
    """Prepared again, all files are the same; opened again, the store is of these settings and no others."""
    random.seed(4)
    config = run.config().data
    with few_evaluated_sentences():
        prepare(config, folder / "again")
    written, again = (_files(path) for path in (run.folder / "store", folder / "again"))
    assert written == again
    prepared = open_prepared(run.folder / "store", expected=config)
    assert len(prepared.train) > 0
    assert prepared.fingerprint == open_prepared(folder / "again").fingerprint
    with pytest.raises(ConfigError, match=naming("data.corpus_seed", 1, 2)):
        open_prepared(run.folder / "store", expected=config.model_copy(update={"corpus_seed": 2}))


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check_training(run: SmallRun, folder: Path, other: SmallRun) -> None:
    """Updates have finite losses and change every weight; validations have their score."""
    updates, validations = records(run.folder, "update"), records(run.folder, "validation")
    assert [record["update"] for record in updates] == [2, 4, 6]
    assert all(math.isfinite(record[name]) for record in updates for name in ("loss_nats", "gradient_norm"))
    assert [record["update"] for record in validations] == [3, 6]
    task, config = task_named(run.task.name), run.config()
    names = task.validated_scores(config)
    for record in validations:
        assert math.isfinite(record["nll_nats"])
        assert ("perplexity" in record) == task.is_of_tokens
        assert names is None or set(names) == record.keys() - OF_EVERY_VALIDATION
        assert all(math.isfinite(record[name]) for name in names or ())
        assert run.task.validated is None or math.isfinite(record[run.task.validated])
    for best_by in ("loss", *(names or ())):
        task.require_best_by(run.config(f"training.best_by={best_by}"))
    if names is not None:
        with pytest.raises(ConfigError, match=naming("training.best_by", "'loss'", *map(repr, names), "'blue'")):
            train(run.config("training.best_by=blue"), folder / "run", store=run.folder / "store")
    first, last = (read_tensors(path / "model.safetensors") for path in checkpoint_folders(run.folder / "checkpoints"))
    assert [name for name in last if torch.equal(first[name], last[name])] == []


def check_resume(run: SmallRun, folder: Path, other: SmallRun) -> None:
    """Interrupted and resumed, a run ends with the bits of the one that was never stopped."""
    config, updates = run.config(), [0]

    def count(record: object) -> None:
        updates.append(record.update if isinstance(record, UpdateRecord) else updates[-1])

    for stop in run.task.stops:
        _disturb(seed=stop)
        stopped = train(
            config, folder / "run", resume=stop != run.task.stops[0], store=run.folder / "store", listeners=[count],
            should_stop=lambda stop=stop: updates[-1] >= stop,  # type: ignore[misc]
        )  # fmt: skip
        assert (stopped.reason, stopped.updates, stopped.model_folder) == ("interrupted", stop, None)
    _disturb(seed=0)
    ended = train(config, folder / "run", resume=True)
    assert (ended.reason, ended.scores) == ("max_updates", run.result.scores)
    for kind in ("update", "validation"):
        assert records(folder / "run", kind) == records(run.folder, kind)
    for part in ("checkpoints/update-00000006", "model"):
        ours, theirs = (_files(path / part) for path in (folder / "run", run.folder))
        for name in ("README.md", "state.json", "manifest.json"):  # with times
            ours.pop(name, None), theirs.pop(name, None)
        assert ours == theirs


def _disturb(seed: int) -> None:
    """Another process has other global random states."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (the global state)
    torch.manual_seed(seed)


ALL_READ = DataConfig.model_fields.keys()
# A value of each setting that only some tasks read, other than its default.
SAMPLES = {
    **{f"data.{split}_{kind}": "a.txt" for split in ("train", "dev", "test") for kind in
       ("src", "tgt", "tsv", "trees", "text", "prompts", "media")},
    **{f"data.{split}_{kind}": '["a"]' for split in ("training", "test") for kind in ("fonts", "voices")},
    **{f"data.{split}_noise": '["blur"]' for split in ("training", "test")},
    "data.masks": "true", "data.also_dev": '["multi30k"]', "data.bpe_dropout": "0.1", "data.treebank": "folder",
    "data.folder": "folder", "data.terms": "true",
    "data.leaves": "tags", "data.subtree_substitution": "0.1", "data.n_recombined": "3", "data.n_encodings": "3",
    "data.max_dropped_share": "0.5", "data.max_length": "99", "data.language": "de", "data.image_height": "16",
    "data.max_image_width": "99", "data.n_bands": "9", "data.max_seconds": "9.0", "data.max_pairs": "9",
    "data.max_characters": "9", "data.drop_duplicates": "true", "data.max_length_ratio": "2.0",
    "data.drop_identical": "false", "training.bidirectional_epochs": "1", "training.r_drop": "1.0",
    "training.r_drop_after": "9", "training.feature_masks": "1", "training.ctc_weight": "0.5",
    "alignment.centring": "0.1", "alignment.beta": "0.3", "alignment.max_response": "9",
    "alignment.reward_model": "folder", "alignment.target_kl": "1.0", "alignment.kl_horizon": "9",
    "alignment.rollout_size": "16", "alignment.batch_size": "16", "alignment.n_samples": "2",
    "alignment.temperature": "0.5", "alignment.unfinished_score": "-2.0", "alignment.n_passes": "2",
    "alignment.gamma": "0.5", "alignment.gae_lambda": "0.5", "alignment.clip_ratio": "0.1",
    "alignment.clip_value": "0.1", "alignment.value_weight": "0.2", "alignment.whiten_rewards": "true",
}  # fmt: skip


def check_settings_of_others(run: SmallRun, folder: Path, other: SmallRun) -> None:
    """A setting that the task does not read is refused where it is given, with a task that reads it."""
    of_some = {f"data.{name}" for task in TASKS.values() for name in {*task.settings.model_fields} - ALL_READ}
    assert SAMPLES.keys() == of_some.union(*(task.reads for task in TASKS.values()))
    config, task = run.config(), task_named(run.task.name)
    for setting, value in SAMPLES.items():
        if not is_read(setting, task):
            facts = naming(setting, repr(readers_of(setting)[0]), f"task = {task.name!r}")
            with pytest.raises(ConfigError, match=facts):
                with_settings(config, [f"{setting}={value}"])


def check_refusals(run: SmallRun, folder: Path, other: SmallRun) -> None:
    """Settings that do not fit, and text that is missing, are named in one line before a run begins."""
    for setting, facts in run.task.mistakes:
        store = None if setting.startswith("data.") else run.folder / "store"
        with pytest.raises(ConfigError, match=naming(*facts)):
            train(run.config(setting), folder / setting, store=store)
        assert not (folder / setting / "checkpoints").exists()
    folder.mkdir(exist_ok=True)
    lines = run.recipe.read_text(encoding="utf-8").splitlines()
    without_text = folder / "without-text.toml"
    without_text.write_text("\n".join(line for line in lines if not line.startswith("data.train_")), encoding="utf-8")
    with pytest.raises(ConfigError, match=naming(run.task.text)):
        prepare(read_recipe(without_text, ["data.corpus=files"]).data, folder / "prepared")


def check_doctor(run: SmallRun, folder: Path, other: SmallRun) -> None:
    """The doctor has nothing against recipe, run, prepared text and model."""
    for path in (run.recipe, run.folder, run.folder / "store", run.model):
        found = list(examine([str(path)]))
        assert found
        assert [finding for finding in found if finding.status == "problem"] == []


def check_card(run: SmallRun, folder: Path, other: SmallRun) -> None:
    """The card tells the task, its use, the data and the scores."""
    config, task = run.config(), task_named(run.task.name)
    card, use = (run.model / "README.md").read_text(encoding="utf-8"), task.use(config.data)
    n_rows = len(open_prepared(run.folder / "store").train)
    assert run.result.scored_split is not None
    for fact in (
        f"# A Transformer for {use.what}", f"`transduce {use.verb} <this folder>`", use.call,
        f"- corpus: {config.data.corpus}", f"{n_rows:,} {task.example_noun}", "6 updates",
        f"## Scores on {run.result.scored_split}: {run.result.scored_text}", *run.task.card,
    ):  # fmt: skip
        assert fact in card, fact
    for name in config.data.names_of("train"):  # of text, trees, prompts, images: whatever the task reads
        assert f"({Path(name).name}" in card or f", {Path(name).name}" in card, name


def check_loading(run: SmallRun, folder: Path, other: SmallRun) -> None:
    """What is loaded does the same each time; a model of another task is refused by both names."""
    task = task_named(run.task.name)
    loaded = [task.load(run.model) for _ in range(2)]
    assert [type(each).__name__ for each in loaded] == 2 * [run.task.kind]
    first, second = (run.task.use(each, run.files) for each in loaded)
    assert first == second
    with pytest.raises(CheckpointError, match=naming(other.model, other.task.name)):
        task.load(other.model)


def check_evaluation(run: SmallRun, folder: Path, other: SmallRun) -> None:
    """The scores of the model folder are those at the end of its run."""
    split = run.result.scored_split
    assert run.result.scores is not None
    scores = task_named(run.task.name).evaluate(
        run.model, open_prepared(run.folder / "store"), split, device="cpu", extra_bleus=()  # type: ignore[arg-type]
    )  # fmt: skip
    assert scores.as_json() == run.result.scores.as_json()
    value = scores.as_json()[run.task.score]
    assert math.isfinite(value["score"] if isinstance(value, dict) else value)


# By what each is about. They take a run, a folder of their own, and a run whose model the task cannot use.
CHECKS: dict[str, Callable[[SmallRun, Path, SmallRun], None]] = {
    "data": check_data,
    "training": check_training,
    "resume": check_resume,
    "refusals": check_refusals,
    "settings": check_settings_of_others,
    "doctor": check_doctor,
    "card": check_card,
    "loading": check_loading,
    "evaluation": check_evaluation,
}
