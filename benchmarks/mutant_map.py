"""A pytest plugin for mutants.py: which test executes which line, and how long each test takes.

``MUTANT_MAP`` names the folder that it writes into, ``MUTANT_LINES`` the files to trace, as patterns separated by
``os.pathsep``. Each process of the run (``-n``) writes its own two files: ``lines.*``, data of coverage.py whose
contexts are ids of tests and names of shared fixtures, and ``tests.*.jsonl``, a line a test: its id, seconds, outcome,
and the shared fixtures that it uses, directly or not. Function-scoped fixtures belong to their test.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import coverage
import pytest

SAVE_EVERY = 50  # tests


def pytest_configure(config: pytest.Config) -> None:
    """Trace the tests of this process, unless others run them."""
    if "MUTANT_MAP" in os.environ and (hasattr(config, "workerinput") or not config.getoption("numprocesses", None)):
        config.pluginmanager.register(Tracer(Path(os.environ["MUTANT_MAP"]), os.environ["MUTANT_LINES"]))


class Tracer:
    """Hooks that switch the context of the trace and write the record of each test."""

    def __init__(self, folder: Path, lines: str) -> None:
        name = f"{os.getpid()}"
        self.records = (folder / f"tests.{name}.jsonl").open("w")
        self.trace = coverage.Coverage(
            data_file=str(folder / f"lines.{name}"), include=lines.split(os.pathsep), config_file=False, messages=False
        )
        self.seconds = 0.0
        self.outcome = "passed"
        self.n_tests = 0
        self.contexts = [""]
        self.trace.start()

    @contextmanager
    def context(self, name: str) -> Iterator[None]:
        """Lines inside belong to ``name``."""
        self.contexts.append(name)
        self.trace.switch_context(name)
        try:
            yield
        finally:
            self.contexts.pop()
            self.trace.switch_context(self.contexts[-1])

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Trace the test with its own fixtures, and write its record."""
        self.seconds, self.outcome = 0.0, "passed"
        with self.context(item.nodeid):
            result = yield
        record = {"id": item.nodeid, "seconds": round(self.seconds, 3), "outcome": self.outcome}
        print(json.dumps({**record, "uses": shared_fixtures(item)}), file=self.records, flush=True)
        self.n_tests += 1
        if self.n_tests % SAVE_EVERY == 0:
            self.trace.save()
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        """Trace a shared fixture."""
        if fixturedef.scope == "function":
            return (yield)
        with self.context(fixture_name(fixturedef)):
            return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the seconds of the phases."""
        self.seconds += report.duration
        if report.outcome != "passed":
            self.outcome = report.outcome

    def pytest_sessionfinish(self) -> None:
        """Write what was traced."""
        self.trace.stop()
        self.trace.save()
        self.records.close()


def shared_fixtures(item: pytest.Item) -> list[str]:
    """The fixtures of a test that it shares with other tests."""
    if not isinstance(item, pytest.Function):
        return []
    fixtures = [fixtures[-1] for fixtures in item._fixtureinfo.name2fixturedefs.values() if fixtures]
    return sorted(fixture_name(fixture) for fixture in fixtures if fixture.scope != "function")


def fixture_name(fixture: pytest.FixtureDef[object]) -> str:
    """Its name and the file or folder that it is for."""
    return f"{fixture.baseid}::{fixture.argname}"
