"""Every JSON file says which format it has: older ones are brought to today's, later ones are refused by name."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from edits import Edit, edit_json
from said import naming
from small_models import write_model
from transduce.config import (
    ByteNetConfig,
    DataConfig,
    ModelConfig,
    TransformerConfig,
    TreesData,
)
from transduce.config.migrations import tables_of_format_1
from transduce.errors import CheckpointError, DataError
from transduce.files import write_manifest
from transduce.inference.folder import read_model_config
from transduce.model import make_model
from transduce.runs import read_run_config
from transduce.runs.run_file import changes_since, read_run_file
from transduce.tasks import open_prepared
from transduce.text import Tokenizers, train_bpe
from transduce.training import TrainState, read_state

BEFORE = Path(__file__).parent / "before_format_numbers"
# Model fields that came after format 0.
NEWER_FIELDS = {
    "activation", "attention", "attention_bias", "block_size", "cell", "compatibility", "decoder", "neighbourhood",
    "norm_eps", "output_bias", "patch_height", "patch_width", "scale_embeddings", "source", "source_width",
}  # fmt: skip
NEWER_SYSTEMS = {"language-model"}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of before there were numbers."""
    return Path(shutil.copytree(BEFORE / "run", tmp_path / "run"))


def edited(path: Path, edit: Edit) -> Path:
    edit_json(path, edit)
    if (path.parent / "manifest.json").exists():
        write_manifest(path.parent, exempt=("README.md",))
    return path


def state_file(run: Path) -> Path:
    (checkpoint,) = (run / "checkpoints").iterdir()
    return checkpoint / "state.json"


def test_what_is_written_has_a_number(micro_run: Path) -> None:
    newest = max((micro_run / "checkpoints").iterdir()) / "state.json"
    values = {path.name: json.loads(path.read_text()) for path in (
        micro_run / "run.json", micro_run / "model" / "config.json", micro_run / "store" / "prepared.json", newest,
    )}  # fmt: skip
    numbers = {name: each["format"] for name, each in values.items()}
    assert numbers == {"run.json": 3, "config.json": 3, "prepared.json": 3, "state.json": 2}
    assert values["state.json"]["begun_with"]["format"] == 3


@pytest.mark.parametrize(
    ("file", "newest", "read"),
    [
        ("run.json", 3, read_run_config),
        ("model/config.json", 3, lambda run: read_model_config(run / "model")),
        ("store/prepared.json", 3, lambda run: open_prepared(run / "store")),
        ("checkpoints/update-00003000/state.json", 2, lambda run: read_state(run / "checkpoints/update-00003000")),
    ],
)
@pytest.mark.parametrize("number", [9, -1, "1", True, None, 1.0, [1]])
def test_a_number_that_is_not_known_is_refused(run: Path, file: str, newest: int, read: Any, number: object) -> None:
    path = edited(run / file, lambda values: values.update(format=number))
    with pytest.raises(
        (CheckpointError, DataError), match=naming(path, "format", repr(number), re.compile(rf"\b[01] to {newest}\b"))
    ):
        read(run)


def test_a_copy_of_the_run_file_has_a_number_of_its_own(run: Path) -> None:
    begun, path = read_run_file(run), state_file(run)
    older = json.loads((run / "run.json").read_text(encoding="utf-8"))
    edited(path, lambda values: values.update(format=1, begun_with=older))
    assert changes_since(path.parent, begun) == []
    edited(path, lambda values: values.update(begun_with=begun.as_json()))
    assert changes_since(path.parent, begun) == []
    edited(path, lambda values: values["begun_with"].update(format=4))
    with pytest.raises(CheckpointError, match=naming(path, "format", 4, "0 to 3")):
        changes_since(path.parent, begun)


def test_fields_are_counted_as_they_were_written(run: Path) -> None:
    path, config = run / "run.json", read_run_config(run)
    written = json.loads(path.read_text(encoding="utf-8"))["config"]
    assert "target" in written["data"]
    n = sum(map(len, written.values()))
    edited(path, lambda values: values.update(n_fields=n))
    assert read_run_config(run) == config
    edited(path, lambda values: values["config"]["training"].pop("lr_factor"))
    with pytest.raises(CheckpointError, match=naming(path, f"{n} fields", n - 1, "training.lr_factor")):
        read_run_config(run)


def test_a_state_of_before_has_defaults_for_what_came_later(run: Path) -> None:
    path = state_file(run)
    state = read_state(path.parent)
    edited(path, lambda values: values.pop("n_skipped"))
    assert read_state(path.parent) == state
    edited(path, lambda values: values.pop("cause"))
    with pytest.raises(CheckpointError, match=naming(path, "'cause'")):
        read_state(path.parent)
    edited(path, lambda values: values.update(cause="schedule", momentum=1))
    with pytest.raises(CheckpointError, match=naming(path, "'momentum'")):
        read_state(path.parent)
    edited(path, lambda values: (values.clear(), values.update(format=1, **asdict(TrainState(update=3000)))))
    assert read_state(path.parent).update == 3000
    edited(path, lambda values: values.pop("epoch"))
    with pytest.raises(CheckpointError, match=naming(path, "'epoch'")):
        read_state(path.parent)


def fields_of_before() -> dict[str, Any]:
    """The model fields of a Transformer in format 0, with their defaults."""
    return {name: value for name, value in TransformerConfig().model_dump().items() if name not in NEWER_FIELDS}


def test_a_model_of_another_system_is_read(tmp_path: Path) -> None:
    """When all systems had the same fields, those of the others stood in the file, too."""
    tokenizer = train_bpe(["the dog sleeps"] * 4, vocab_size=270)
    config = ByteNetConfig(
        n_encoder_layers=1, n_decoder_layers=1, d_model=8, kernel_width=5, src_vocab_size=tokenizer.size,
        tgt_vocab_size=tokenizer.size,
    )  # fmt: skip
    write_model(tmp_path / "model", make_model(config), Tokenizers(tokenizer, tokenizer))
    flat = {**fields_of_before(), **config.model_dump()}
    edited(tmp_path / "model" / "config.json", lambda values: values.update(format=1, model=flat))
    assert read_model_config(tmp_path / "model").config == config
    edited(tmp_path / "model" / "config.json", lambda values: values.update(format=2))
    with pytest.raises(CheckpointError, match=naming("config.json", "d_ff", "'transformer'", "'bytenet'")):
        read_model_config(tmp_path / "model")


def test_prepared_text_of_before_is_that_of_the_same_task(run: Path) -> None:
    config = open_prepared(run / "store").config
    assert config.task == "translation"
    open_prepared(run / "store", expected=config)
    edited(run / "store" / "prepared.json", lambda values: values["data"].update(target="trees"))
    with pytest.raises(DataError, match=naming("prepared.json", "task", "'parsing'", "shared_vocabulary")):
        open_prepared(run / "store", expected=DataConfig())


def test_the_fields_of_before_are_dealt_to_the_systems_that_have_them() -> None:
    """The step is written out, so that it stays what it is; what it deals out is what the records have today."""
    systems = {name: kind for name, kind in ModelConfig.members.items() if name not in NEWER_SYSTEMS}
    fields = {system: set(kind.model_fields) - NEWER_FIELDS for system, kind in systems.items()}
    every = dict.fromkeys(set().union(*fields.values()))
    for system in fields:
        assert set(tables_of_format_1({"model": every | {"system": system}})["model"]) == fields[system]


def test_keys_of_before_are_read_by_their_names_of_today(tmp_path: Path) -> None:
    run = Path(shutil.copytree(BEFORE.parent / "named_by_the_record" / "mask-predict" / "run", tmp_path / "run"))
    written = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert written["format"] == 2
    assert {"n_skippable", "both_ways_epochs"} <= written["config"]["training"].keys()
    edited(run / "run.json", lambda values: values["config"]["training"].update(n_skippable=7, both_ways_epochs=2))
    training = read_run_config(run).training
    assert (training.max_skipped_updates, training.bidirectional_epochs) == (7, 2)
    trees = {"task": "parsing", "shared_vocabulary": False, "recombination": 0.25}
    tables = {"model": {"embeddings": "target"}, "data": trees}
    edited(run / "run.json", lambda values: values.update(config=tables, n_fields=4))
    data = read_run_config(run).data
    assert isinstance(data, TreesData)
    assert data.subtree_substitution == 0.25
