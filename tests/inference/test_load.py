"""``load`` gives what users call, by the task of a model folder; it needs no tasks."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import EntryPoint
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from small_recipes import SMALL_TASKS, SmallRuns

import transduce
from said import naming
from transduce.errors import CheckpointError
from transduce.files import write_manifest
from transduce.inference.native.binding import library
from transduce.inference.trained_model import TrainedModel

PROGRAM = """
import sys
import transduce

for folder, kind in zip(sys.argv[1::2], sys.argv[2::2]):
    assert type(transduce.load(folder)).__name__ == kind, (folder, kind)
assert not {"transduce.tasks", "transduce.training", "transduce.runs"} & sys.modules.keys()
"""


@pytest.mark.merge
def test_every_model_folder_is_loaded_without_its_task(small_runs: SmallRuns) -> None:
    arguments = [str(each) for task in SMALL_TASKS for each in (small_runs[task.name].model, task.kind)]
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_another_task_is_refused(micro_model: Path, own_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(transduce.load(micro_model, transduce.Translator), transduce.Translator)
    with pytest.raises(CheckpointError, match=naming(micro_model, "translation", "parser", "transduce translate")):
        transduce.load(micro_model, transduce.Parser)
    config = own_model / "config.json"
    config.write_text(config.read_text(encoding="utf-8").replace('"translation"', '"rhyming"'), encoding="utf-8")
    write_manifest(own_model, exempt=("README.md",))
    with pytest.raises(CheckpointError, match=naming(own_model, "rhyming")):
        transduce.load(own_model)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group, name: [Rhyming.entry(group, name)])
    assert transduce.load(own_model) == (own_model, "cpu")


@pytest.mark.skipif(library() is None, reason="the engine in C was not compiled")
def test_every_class_takes_an_engine(micro_model: Path) -> None:
    assert TrainedModel.class_of("unknown") is None  # all have been imported
    for kind in set(TrainedModel.by_task.values()):
        assert {"engine"} <= signature(kind.load).parameters.keys() & signature(kind.from_folder).parameters.keys()
    engines = {type(transduce.load(micro_model, engine=name).engine).__name__ for name in ("native", "torch")}
    assert engines == {"NativeEngine", "EncoderDecoderEngine"}


def test_a_model_is_used_as_its_folder_says(own_model: Path) -> None:
    def say(used_as: object) -> None:
        values = json.loads((own_model / "config.json").read_text(encoding="utf-8"))
        (own_model / "config.json").write_text(json.dumps(values | {"task": "rhyming", "used_as": used_as}))
        write_manifest(own_model, exempt=("README.md",))

    say("translation")
    assert type(transduce.load(own_model)) is transduce.Translator
    assert type(transduce.Translator.load(own_model)) is transduce.Translator
    for unknown, facts in (("verse", ("rhyming",)), (1, ("config.json", "used_as", 1))):
        say(unknown)
        with pytest.raises(CheckpointError, match=naming(own_model, *facts)):
            transduce.load(own_model)


class Rhyming:
    """A task of another distribution, as its entry point gives it."""

    @classmethod
    def entry(cls, group: str, name: str) -> EntryPoint:
        assert (group, name) == ("transduce.tasks", "rhyming")
        return cast(EntryPoint, SimpleNamespace(load=cls))

    def load(self, folder: Path, *, device: str) -> tuple[Path, str]:
        return folder, device
