"""Experiments: finished runs are read from records, interrupted runs resume, records of other settings are refused."""

from __future__ import annotations

import json
import math
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from messages import naming, says
from transduce.config import DataConfig, RunConfig, config_from_mapping, tables_of_format_3
from transduce.errors import ConfigError, DataError
from transduce.inference import Translator, evaluate, log_probabilities
from transduce.metrics import TOKENISED_BLEUS
from transduce.recipes import with_settings
from transduce.runs import run_lock
from transduce.tasks import open_prepared
from transduce.text import normalise
from transduce.training import Record, UpdateRecord
from transduce_paper import Experiment, Experiments, Stopped
from transduce_paper.run_records import precisions

RECORDS = Path(__file__).parents[1] / "reports" / "runs" / "cpu"


@pytest.fixture
def experiment(micro_config: RunConfig) -> Experiment:
    """A run of six updates, evaluated on 12 sentences."""
    return Experiment("base-seed1", micro_config)


@pytest.fixture(scope="module")
def finished(micro_config: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records and work folder after the run. Read only."""
    folder = tmp_path_factory.mktemp("finished")
    experiments_in(folder, []).run(Experiment("base-seed1", micro_config))
    return folder


def experiments_in(folder: Path, log: list[str], *, stop_after: int | None = None) -> Experiments:
    class Follower:
        n_updates = 0

        def __enter__(self) -> Follower:
            return self

        def __exit__(self, *error: object) -> None:
            pass

        def __call__(self, record: Record) -> None:
            self.n_updates += isinstance(record, UpdateRecord)
            followers.append(self)

        def log(self, line: str) -> None:
            log.append(line)

    followers: list[Follower] = []
    return Experiments(
        folder / "runs",
        folder / "work",
        scale="cpu",
        follow=lambda config: Follower(),
        should_stop=lambda: stop_after is not None and bool(followers) and followers[-1].n_updates >= stop_after,
        log=log.append,
    )


def test_a_run_is_recorded_once_with_its_settings_and_scores(experiment: Experiment, tmp_path: Path) -> None:
    log: list[str] = []
    experiments = experiments_in(tmp_path, log)
    record = experiments.run(experiment)
    assert says(log[0], "base-seed1")
    values = json.loads((tmp_path / "runs" / "cpu" / "base-seed1.json").read_text())
    assert values["name"] == "base-seed1"
    assert values["updates"] == record.updates == 6
    assert values["config"]["training"] == experiment.config.training.model_dump(mode="json")
    # 6 FLOPs per matrix weight and target token: 1 + 2 layers, d_model 32, d_ff 48.
    attention, feed_forward = 4 * 32 * 32, 2 * 32 * 48
    weights = (
        (attention + feed_forward) + 2 * (2 * attention + feed_forward) + 32 * record.config["model"]["tgt_vocab_size"]
    )
    assert record.training_flops == 6 * weights * record.tgt_tokens
    # The scores are those of the kept model.
    model = experiments.model_folder(experiment)
    text = open_prepared(next((tmp_path / "work" / "stores").iterdir())).text("dev")
    assert text is not None
    pairs = [(normalise(src), normalise(tgt)) for src, tgt in zip(*text, strict=True)]
    nats = -sum(log_probabilities(Translator.load(model), pairs))
    tokenizer = Translator.load(model).tokenizers.tgt
    n_tokens = sum(len(tokenizer.encode(tgt)) + 1 for _, tgt in pairs)
    assert record.dev_perplexity == pytest.approx(math.exp(nats / n_tokens), rel=1e-4)
    assert record.dev_scores == evaluate(Translator.load(model), *text, also=TOKENISED_BLEUS).scores.as_json()
    assert not (tmp_path / "work" / "cpu" / "base-seed1" / "checkpoints").exists()
    log.clear()
    assert experiments_in(tmp_path, log).run(experiment) == record
    assert log == []


def test_an_interrupted_run_resumes(experiment: Experiment, finished: Path, tmp_path: Path) -> None:
    whole = experiments_in(finished, []).run(experiment)
    with pytest.raises(Stopped):
        experiments_in(tmp_path / "cut", [], stop_after=3).run(experiment)
    log: list[str] = []
    resumed = experiments_in(tmp_path / "cut", log).run(experiment)
    assert any("update-00000003" in line for line in log)
    assert (resumed.dev_perplexity, resumed.dev_scores) == (whole.dev_perplexity, whole.dev_scores)


def test_a_run_is_in_fp32_where_bf16_would_be_emulated(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_bf16 = replace(experiment, config=with_settings(experiment.config, ["training.precision=bf16"]))
    begun, new = tmp_path / "begun", tmp_path / "new"
    monkeypatch.setattr("transduce_paper.experiments.fast_precision", lambda device: "bf16")
    with pytest.raises(Stopped):
        experiments_in(begun, [], stop_after=3).run(in_bf16)

    monkeypatch.setattr("transduce_paper.experiments.fast_precision", lambda device: "fp32")
    records = [experiments_in(folder, []).run(in_bf16) for folder in (begun, new)]
    assert [each.config["training"]["precision"] for each in records] == ["bf16", "fp32"]  # what was begun goes on
    assert precisions(records) == "bf16 and fp32"

    monkeypatch.setattr("transduce_paper.experiments.fast_precision", lambda device: "bf16")
    assert experiments_in(new, []).run(in_bf16) == records[1]  # it is read, not trained again


def test_a_record_of_other_settings_is_refused(experiment: Experiment, finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    experiments = experiments_in(tmp_path, [])
    other = Experiment(experiment.name, with_settings(experiment.config, ["training.eps_ls=0.2"]))
    with pytest.raises(
        ConfigError,
        match=naming("base-seed1.json", "training.eps_ls", 0.1, 0.2, tmp_path),
    ):
        experiments.run(other)
    experiments.record_path(experiment).write_text('{"name": "base"}')
    with pytest.raises(DataError, match=naming(experiments.record_path(experiment))):
        experiments.run(experiment)


def test_a_model_is_trained_again_if_only_its_record_is_left(
    experiment: Experiment, finished: Path, tmp_path: Path
) -> None:
    shutil.copytree(finished / "runs", tmp_path / "runs")
    experiments = experiments_in(tmp_path, [])
    record = experiments.run(experiment)
    assert (experiments.model_folder(experiment) / "model.safetensors").exists()
    assert experiments.run(experiment).dev_scores == record.dev_scores
    # A model with other weights is not used; the old record stays until the new one replaces it.
    record = experiments.run(experiment)
    weights = experiments.model_folder(experiment) / "model.safetensors"
    weights.write_bytes(weights.read_bytes() + b" ")
    with pytest.raises(Stopped):
        experiments_in(tmp_path, [], stop_after=3).model_folder(experiment)
    assert experiments.run(experiment) == record
    log: list[str] = []
    assert (experiments_in(tmp_path, log).model_folder(experiment) / "model.safetensors").exists()
    assert any(says(line, experiment.name, "model") for line in log)
    assert experiments.run(experiment).weights_sha256 == record.weights_sha256


def test_two_processes_train_the_same_run_once(experiment: Experiment, tmp_path: Path) -> None:
    log: list[str] = []
    with run_lock(tmp_path / "work" / "locks" / "cpu" / experiment.name):
        waiting = ThreadPoolExecutor().submit(experiments_in(tmp_path, log).run, experiment)
        while not any(says(line, "base-seed1") for line in log):
            assert not waiting.done()
            time.sleep(0.01)
        other = experiments_in(tmp_path / "other", [])
        record = other.run(experiment)
        (tmp_path / "runs" / "cpu").mkdir(parents=True)
        shutil.copy(other.record_path(experiment), tmp_path / "runs" / "cpu")
    assert waiting.result() == record
    assert len(log) == 1  # one message that it waits, none about training


def test_a_store_belongs_to_the_weights_that_it_starts_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transduce_paper.experiments.prepare", lambda _, store, **__: store.mkdir(parents=True))
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="cpu")
    weights = tmp_path / "model" / "model.safetensors"
    weights.parent.mkdir()
    weights.write_bytes(b"first")
    data = DataConfig(tokenizer_from=str(weights.parent))
    first = experiments.store(data)
    assert experiments.store(data) == first
    weights.write_bytes(b"second")
    assert experiments.store(data) != first


def test_a_record_names_texts_without_the_folder_of_the_experiments(tmp_path: Path) -> None:
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="cpu")
    assert experiments._text_name(str(tmp_path / "work" / "rankings" / "dev.jsonl")) == "rankings/dev.jsonl"
    assert experiments._text_name("grammar dev") == "grammar dev"


@pytest.mark.parametrize("name", ["table2-9000-bytenet-seed1", "table2-9000-transformer-seed1", "table4-gum-seed1"])
def test_a_record_of_before_is_that_of_the_same_experiment(tmp_path: Path, name: str) -> None:
    """As ``config`` was before formats had numbers: fields of all systems, and none for what the search is."""
    now = json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="cpu")
    experiment = Experiment(name, config_from_mapping(RunConfig, tables_of_format_3(now["config"]), where="record"))
    path = experiments.record_path(experiment)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(now), encoding="utf-8")
    record = experiments.run(experiment)
    before = {each: value for each, value in now.items() if each != "format"}
    data, model = before["config"]["data"], before["config"]["model"]
    data["target"] = {"translation": "text", "parsing": "trees"}[data.pop("task")]
    before["config"]["model"] = {"d_ff": 2048, "n_heads": 8, "n_experts": 1, "kernel_width": 3} | model
    if model["system"] == "transformer":
        del before["config"]["model"]["system"]
    del before["config"]["search"]["kind"]
    path.write_text(json.dumps(before), encoding="utf-8")
    assert experiments.run(experiment) == record
    path.write_text(json.dumps(before | {"format": 2}), encoding="utf-8")
    with pytest.raises(DataError, match=naming(path, "format", 2, "0 to 1")):
        experiments.run(experiment)
