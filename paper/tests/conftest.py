"""Shared fixtures: the command line called in-process, and the model of a small run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from transduce.cli import run
from transduce.config import RunConfig
from transduce.recipes import read_recipe, with_settings
from transduce.runs import train
from transduce_paper import ARTEFACTS, Experiments, Request
from transduce_paper.short_runs import write_few

sys.path.append(str(Path(__file__).parent))  # for messages.py

MICRO_RECIPE = """
[model]
n_encoder_layers = 1
n_decoder_layers = 2
d_model = 32
d_ff = 48
n_heads = 4
d_k = 8
d_v = 8
"""


@pytest.fixture(scope="session")
def micro_config(tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    """The configuration of a run that trains for a second."""
    folder = tmp_path_factory.mktemp("micro")
    recipe = folder / "micro.toml"
    recipe.write_text(MICRO_RECIPE)
    experiments = Experiments(folder / "runs", folder / "work", scale="test")
    write_few(folder / "work" / "test")
    return experiments.experiment("micro", read_recipe(recipe)).config


@pytest.fixture(scope="session")
def micro_model(micro_config: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model folder of a finished run. Read only."""
    folder = tmp_path_factory.mktemp("runs") / "micro"
    train(with_settings(micro_config, ["training.max_updates=30", "training.warmup_steps=10"]), folder)
    return folder / "model"


@pytest.fixture(scope="session")
def table4_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records and work folder of Table 4 with its variants at test scale. Read only."""
    folder = tmp_path_factory.mktemp("table4")
    ARTEFACTS["table4"](Experiments(folder / "runs", folder / "work", scale="test"), Request())
    return folder


@dataclass(frozen=True)
class Outcome:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def transduce(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """``transduce("paper", "table1", ...)`` runs a verb in this process."""

    def call(*arguments: object) -> Outcome:
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call
