"""A run from recipe to model folder, resumed, averaged, watched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from transduce.recipes import read_recipe
from transduce.tasks import Translator, evaluate, open_prepared, train
from transduce.training import UpdateRecord, average_weights, checkpoint_folders, read_tensors


def test_a_finished_run_has_its_folders(micro_run: Path) -> None:
    names = {path.name for path in micro_run.iterdir()}
    assert {"run.json", "metrics.jsonl", "store", "checkpoints", "model", "tensorboard"} <= names
    records = [json.loads(line) for line in (micro_run / "metrics.jsonl").read_text().splitlines()]
    assert [r["update"] for r in records if r["kind"] == "update"] == [10, 20, 30]
    validations = [r for r in records if r["kind"] == "validation"]
    assert [r["update"] for r in validations] == [15, 30]
    assert validations[1]["nll_nats"] < validations[0]["nll_nats"]
    assert validations[1]["signature"].startswith("nrefs:1|case:mixed")


def test_curves_reach_tensorboard(micro_run: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(micro_run / "tensorboard"))
    events.Reload()
    assert [point.step for point in events.Scalars("train/loss_nats")] == [10, 20, 30]
    assert [point.step for point in events.Scalars("dev/perplexity")] == [15, 30]


def test_the_model_is_the_mean_of_the_last_scheduled_checkpoints(micro_run: Path) -> None:
    newest = checkpoint_folders(micro_run / "checkpoints")[-2:]
    assert [path.name for path in newest] == ["update-00000020", "update-00000030"]
    ours = read_tensors(micro_run / "model" / "model.safetensors")
    for name, weight in average_weights(newest).items():
        assert torch.equal(ours[name], weight)


def test_a_stopped_and_resumed_run_ends_with_the_same_model(
    micro_recipe: Path, micro_run: Path, tmp_path: Path
) -> None:
    config = read_recipe(micro_recipe)
    seen: list[object] = []
    stopped = train(
        config,
        tmp_path / "run",
        listeners=[lambda record: seen.append(record) if isinstance(record, UpdateRecord) else None],
        should_stop=lambda: len(seen) >= 17,
    )
    assert (stopped.reason, stopped.updates, stopped.model_folder) == ("asked", 17, None)
    ended = train(config, tmp_path / "run", resume=True)
    assert ended.reason == "max_updates"
    ours = read_tensors(tmp_path / "run" / "model" / "model.safetensors")
    for name, weight in read_tensors(micro_run / "model" / "model.safetensors").items():
        assert torch.equal(ours[name], weight), name


def test_separate_vocabularies(micro_recipe: Path, tmp_path: Path) -> None:
    settings = ["data.shared_vocabulary=false", "model.embeddings=target", "training.max_updates=2"]
    result = train(read_recipe(micro_recipe, settings), tmp_path / "run")
    assert result.model_folder is not None
    names = {path.name for path in result.model_folder.iterdir()}
    assert {"tokenizer.src.json", "tokenizer.tgt.json"} <= names
    assert len(Translator.load(result.model_folder).translate(["The dog sleeps.", ""])) == 2


def test_files_of_one_s_own_without_dev_or_test(micro_recipe: Path, tmp_path: Path) -> None:
    tsv = tmp_path / "pairs.tsv"
    tsv.write_text("one dog\tein Hund\n\tleer\ntwo dogs\tzwei Hunde\n" * 20, encoding="utf-8")
    settings = ["data.corpus=files", f"data.train_tsv={tsv}", "training.max_updates=2"]
    told: list[str] = []
    result = train(read_recipe(micro_recipe, settings), tmp_path / "run", tell=told.append)
    assert result.scores is None
    assert "train: 40 pairs, 20 left out (20 empty, 0 too long)" in told
    assert len(open_prepared(tmp_path / "run" / "store").train) == 40


@pytest.mark.parametrize("settings", [["training.precision=bf16"], ["training.n_accumulate=3"], ["model.norm=pre"]])
def test_switches_train(micro_recipe: Path, tmp_path: Path, settings: list[str]) -> None:
    config = read_recipe(micro_recipe, [*settings, "training.max_updates=6", "training.log_every_updates=3"])
    train(config, tmp_path / "run")
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    losses = [record["loss_nats"] for record in records if record["kind"] == "update"]
    assert losses[1] < losses[0]


def test_validation_bleu_is_that_of_evaluate(micro_recipe: Path, tmp_path: Path) -> None:
    """The same code judges during training and after it: a checkpoint averaged alone has the BLEU of its validation."""
    settings = ["training.average_last=1", "training.validation_sentences=500", "data.n_pairs=300"]
    train(read_recipe(micro_recipe, settings), tmp_path / "run")
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    last = [record for record in records if record["kind"] == "validation"][-1]
    dev = open_prepared(tmp_path / "run" / "store").text("dev")
    assert dev is not None
    scores = evaluate(Translator.load(tmp_path / "run" / "model"), *dev).scores
    assert (scores.sacrebleu.score, scores.sacrebleu.signature) == (pytest.approx(last["bleu"]), last["signature"])
