"""One server in this process, with a translator, a parser and a language model, small and hardly trained."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from forks import Forks

sys.path.append(str(Path(__file__).parent))  # for serving_tools.py

if any(find_spec(library) is None for library in ("starlette", "uvicorn", "prometheus_client", "httpx")):
    collect_ignore_glob = ["test_[!b]*.py"]  # all but the queue, which needs nothing
else:
    from serving_tools import RunningServer, language_model, parser, serving, translator

if TYPE_CHECKING:
    from starlette.testclient import TestClient


@pytest.fixture(scope="session")
def translator_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return translator(tmp_path_factory.mktemp("models") / "en-de" / "model")


@pytest.fixture(scope="session")
def parser_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return parser(tmp_path_factory.mktemp("models") / "treebank" / "model")


@pytest.fixture(scope="session")
def language_model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return language_model(tmp_path_factory.mktemp("models") / "tales" / "model")


@pytest.fixture(scope="session")
def client(translator_folder: Path, parser_folder: Path, language_model_folder: Path) -> Iterator[TestClient]:
    with serving(translator_folder, parser_folder, language_model_folder) as client:
        yield client


@pytest.fixture
def run_server(forks: Forks) -> Iterator[Callable[..., RunningServer]]:
    """Start ``transduce serve``; what still runs at the end of the test is ended."""
    started = list[RunningServer]()

    def run(*arguments: object, before: str = "") -> RunningServer:
        started.append(RunningServer(forks, *arguments, before=before))
        return started[-1]

    yield run
    for server in started:
        if server.process.poll() is None:
            server.stop(signal.SIGKILL)
