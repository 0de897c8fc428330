"""Shared fixtures: the command line called in-process, and one small finished run with its model folder."""

from __future__ import annotations

import io
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

sys.path.append(str(Path(__file__).parent))  # for commands.py, said.py and forks.py
sys.path.append(str(Path(__file__).parent / "tasks"))  # for small_recipes.py and task_suite.py

from commands import CommandLine, Outcome
from forks import Forks

SLOW_TEST_S = 3600
COLLECTED = pytest.StashKey[tuple[pytest.Item, ...]]()  # all tests, whatever -m selects


@pytest.fixture
def collected(pytestconfig: pytest.Config) -> tuple[pytest.Item, ...]:
    """All tests that were collected, also those that -m deselects."""
    return pytestconfig.stash[COLLECTED]


# No hypothesis deadlines: the machine may be busy. Whole tests have the timeout of pyproject.toml. The same examples
# every time, so that a change is judged by what it changes; ``--hypothesis-profile thorough`` looks for new ones.
settings.register_profile("same", deadline=None, max_examples=30, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile("same")

# Trains in seconds; too little to translate well.
MICRO_RECIPE = """
[model]
n_encoder_layers = 1
n_decoder_layers = 2
d_model = 32
d_ff = 48
n_heads = 4
d_k = 8
d_v = 8
[data]
corpus = "grammar"
n_pairs = 600
vocab_size = 400
[training]
max_updates = 30
max_tokens_per_batch = 800
warmup_steps = 10
log_every_updates = 10
validate_every_updates = 15
validation_sentences = 20
checkpoint_every_updates = 10
keep_checkpoints = 2
average_last = 2
[search]
max_extra_tokens = 5
"""


N_DEV_PAIRS, N_TEST_PAIRS = 60, 100  # of the built-in corpus in tests; users have 500 and 1,000


@pytest.fixture(scope="session", autouse=True)
def few_evaluated_sentences() -> Iterator[None]:
    """Short runs would spend most of their time on the dev and test sentences of the built-in corpus."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transduce.corpora.parallel_text.GRAMMAR_DEV_PAIRS", N_DEV_PAIRS)
        patch.setattr("transduce.corpora.parallel_text.GRAMMAR_TEST_PAIRS", N_TEST_PAIRS)
        yield


@pytest.fixture(scope="session", autouse=True)
def default_signals_of_children() -> None:
    """A signal ignored where the tests were begun (nohup, the background of a script) is ignored by a handler instead.

    Processes that they start would inherit the former, but not the latter.
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
        number = getattr(signal, name, None)  # Windows has not all of them
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


@pytest.fixture
def all_evaluated_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """All dev and test sentences of the built-in corpus, as users have them."""
    monkeypatch.setattr("transduce.corpora.parallel_text.GRAMMAR_DEV_PAIRS", 500)
    monkeypatch.setattr("transduce.corpora.parallel_text.GRAMMAR_TEST_PAIRS", 1000)


@pytest.hookimpl(tryfirst=True)  # before -m deselects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what was collected for ``collected``. Give tests marked ``slow`` more time, unless they set their own."""
    config.stash[COLLECTED] = tuple(items)
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_TEST_S))


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """Commands as processes of their own, without the seconds that importing torch takes."""
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    server = Forks()
    yield server
    server.close()


@pytest.fixture
def transduce(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> CommandLine:
    """``transduce("score", "--ref", ...)`` runs a verb in this process; ``stdin=`` is what it reads, as bytes."""
    from transduce.cli.main import run

    def call(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setenv("TRANSDUCE_TRACEBACK", "1")  # print the traceback of an internal error
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        assert "Traceback" not in captured.err
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture(scope="session")
def micro_recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``MICRO_RECIPE`` as a file."""
    path = tmp_path_factory.mktemp("recipe") / "micro.toml"
    path.write_text(MICRO_RECIPE)
    return path


@pytest.fixture(scope="session")
def micro_run(micro_recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a finished training. Read only; tests that write use ``own_run``."""
    from transduce.recipes import read_recipe
    from transduce.runs import train

    folder = tmp_path_factory.mktemp("runs") / "micro"
    train(read_recipe(micro_recipe), folder)
    return folder


@pytest.fixture(scope="session")
def micro_model(micro_run: Path) -> Path:
    """The model folder of ``micro_run``. Read only; tests that write use ``own_model``."""
    return micro_run / "model"


@pytest.fixture
def own_model(micro_model: Path, tmp_path: Path) -> Path:
    """A copy of ``micro_model`` that the test may change."""
    return Path(shutil.copytree(micro_model, tmp_path / "model"))


@pytest.fixture
def own_run(micro_run: Path, tmp_path: Path) -> Path:
    """A copy of ``micro_run`` that the test may change or resume."""
    return Path(shutil.copytree(micro_run, tmp_path / "run"))


@pytest.fixture(scope="session")
def small_runs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """``small_runs["sft"]`` is the finished run of the small recipe of a task. Read only."""
    from small_recipes import SmallRuns

    return SmallRuns(tmp_path_factory.mktemp("small"))
