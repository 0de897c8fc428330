"""``load`` gives what users call, by the task of a model folder; it needs no tasks."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from small_recipes import SMALL_TASKS, SmallRuns

import transduce
from said import naming
from transduce.errors import CheckpointError
from transduce.files import write_manifest
from transduce.tasks import task_named

PROGRAM = """
import sys
import transduce

for folder, kind in zip(sys.argv[1::2], sys.argv[2::2]):
    assert type(transduce.load(folder)).__name__ == kind, (folder, kind)
assert not {"transduce.tasks", "transduce.training", "transduce.runs"} & sys.modules.keys()
"""
KINDS = {
    "translation": "Translator", "mask-predict": "MaskPredictTranslator", "parsing": "Parser", "reward": "RewardModel",
    "causal-lm": "CausalLanguageModel", "masked-lm": "MaskedLanguageModel", "span-corruption": "SpanLanguageModel",
    "pixels": "PixelModel", "sft": "ResponseModel", "dpo": "ResponseModel", "ppo": "ResponseModel",
    "reinforce": "ResponseModel", "image-to-text": "Reader", "speech-to-text": "Transcriber",
}  # fmt: skip


def test_every_model_folder_is_loaded_without_its_task(small_runs: SmallRuns) -> None:
    assert {task.name for task in SMALL_TASKS} == KINDS.keys()
    folders = {task: small_runs[task].model for task in KINDS}
    arguments = [str(each) for task, kind in KINDS.items() for each in (folders[task], kind)]
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for task, folder in folders.items():
        assert type(task_named(task).load(folder)).__name__ == KINDS[task]


def test_another_task_is_refused(micro_model: Path, own_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(transduce.load(micro_model, transduce.Translator), transduce.Translator)
    with pytest.raises(CheckpointError, match=naming(micro_model, "translation", "parser", "transduce translate")):
        transduce.load(micro_model, transduce.Parser)
    config = own_model / "config.json"
    config.write_text(config.read_text(encoding="utf-8").replace('"translation"', '"rhyming"'), encoding="utf-8")
    write_manifest(own_model, exempt=("README.md",))
    with pytest.raises(CheckpointError, match=naming(own_model, "rhyming")):
        transduce.load(own_model)
    monkeypatch.setattr(
        "transduce.inference.trained_model.entry_points", lambda group, name: [Rhyming.entry(group, name)]
    )
    assert transduce.load(own_model) == (own_model, "cpu")


class Rhyming:
    """A task of another distribution, as its entry point gives it."""

    @classmethod
    def entry(cls, group: str, name: str) -> EntryPoint:
        assert (group, name) == ("transduce.tasks", "rhyming")
        return cast(EntryPoint, SimpleNamespace(load=cls))

    def load(self, folder: Path, *, device: str) -> tuple[Path, str]:
        return folder, device
