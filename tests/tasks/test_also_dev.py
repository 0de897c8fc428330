"""Further dev sets: fine-tuning on one corpus shows in every validation what is lost on another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from task_suite import few_evaluated_sentences

from run_records import records
from said import naming
from transduce.config import DataConfig, RunConfig, config_from_mapping
from transduce.corpora import parallel_text
from transduce.errors import ConfigError, DataError
from transduce.recipes import preset, with_settings
from transduce.runs import train
from transduce.tasks import open_prepared, prepare

OWN = [(f"a dog number {n}", f"ein Hund Nummer {n}") for n in range(40)]


@pytest.fixture(autouse=True)
def few_sentences() -> Iterator[None]:
    with few_evaluated_sentences():
        yield


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    """A run on own files, with the dev set of the grammar beside."""
    for name, pairs in (("train", OWN), ("dev", OWN[:5])):
        (tmp_path / f"{name}.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    settings = [
        "data.corpus=files", f"data.train_tsv={json.dumps(str(tmp_path / 'train.tsv'))}",
        f"data.dev_tsv={json.dumps(str(tmp_path / 'dev.tsv'))}", 'data.also_dev=["grammar"]', "data.vocab_size=400",
        "model.d_model=16", "model.d_ff=16", "model.n_heads=2", "model.d_k=8", "model.d_v=8",
        "model.n_encoder_layers=1", "model.n_decoder_layers=1",
        "training.max_updates=4", "training.max_tokens_per_batch=400", "training.validate_every_updates=2",
        "training.validation_sentences=3", "training.checkpoint_every_updates=4", "training.average_last=1",
        "search.beam_size=1",
    ]  # fmt: skip
    return with_settings(preset("tiny"), settings)


def test_each_validation_scores_all(config: RunConfig, tmp_path: Path) -> None:
    train(config, tmp_path / "run")
    prepared = open_prepared(tmp_path / "run" / "store")
    n_dev = parallel_text.GRAMMAR_DEV_PAIRS
    assert {name: len(store) for name, store in prepared.also_dev.items()} == {"grammar": n_dev}
    assert prepared.dev is not None
    assert len(prepared.dev) == 5
    assert [len(side) for side in prepared.also_dev_text("grammar")] == [n_dev, n_dev]
    validations = records(tmp_path / "run", "validation")
    assert len(validations) == 2
    for record in validations:
        assert record["grammar_perplexity"] > 1
        assert {"bleu", "grammar_bleu"} <= record.keys()


def test_without_it_nothing_changes(config: RunConfig, tmp_path: Path) -> None:
    data = config.data.model_copy(update={"also_dev": ()})
    fingerprints = {prepare(each, tmp_path / str(n)).fingerprint for n, each in enumerate((data, config.data))}
    assert len(fingerprints) == 1


def test_what_is_refused(config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TRANSDUCE_DATA", raising=False)
    for fields, facts in (
        ({"also_dev": ["files"]}, ("also_dev", "'files'")),
        ({"also_dev": ["grammar", "grammar"]}, ("also_dev", "each once")),
        ({"also_dev": ["grammar"], "task": "causal-lm"}, ("also_dev", "'causal-lm'")),
    ):
        with pytest.raises(ConfigError, match=naming(*facts)):
            config_from_mapping(DataConfig, fields, where="data")
    nowhere = config.data.model_copy(update={"also_dev": ("multi30k",)})
    without_dev = config.data.model_copy(update={"dev_tsv": None})
    with pytest.raises(ConfigError, match="first dev text"):
        prepare(without_dev, tmp_path / "prepared")
    with pytest.raises(DataError):
        prepare(nowhere, tmp_path / "prepared", data_folder=tmp_path)
