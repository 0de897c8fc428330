"""Three tiers of tests, each with those of the tiers before it: commit, merge, nightly. Every test begins in one."""

from __future__ import annotations

import re
import shlex
import tomllib
from functools import cache
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

ROOT = Path(__file__).parents[1]
NIGHTLY = "reliability or slow"  # in docs/reliability.md; with the merge tier these are all tests


def _selection(words: list[str]) -> str:
    """The expression after -m."""
    return words[words.index("-m") + 1]


def _commit() -> str:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    return _selection(shlex.split(options["addopts"]))


def _merge() -> str:
    [arguments] = re.findall(r"set -- (.*?);", (ROOT / ".ci" / "run").read_text(encoding="utf-8"))
    return _selection(shlex.split(arguments))


@cache
def _compiled(expression: str) -> Expression:
    return Expression.compile(expression)


def _selects(expression: str, item: pytest.Item) -> bool:
    names = {mark.name for mark in item.iter_markers()}
    return _compiled(expression).evaluate(lambda name, /, **_: name in names)


def test_every_test_begins_in_one_tier(collected: tuple[pytest.Item, ...]) -> None:
    commit, merge = _commit(), _merge()
    for item in collected:
        marks = {mark.name for mark in item.iter_markers()} & {"merge", "slow"}
        begins_in = [
            name
            for name, is_in_it in (
                ("commit", _selects(commit, item)),
                ("merge", _selects(merge, item) and not _selects(commit, item)),
                ("nightly", _selects(NIGHTLY, item) and not _selects(merge, item)),
            )
            if is_in_it
        ]
        assert begins_in == ["nightly" if "slow" in marks else "merge" if "merge" in marks else "commit"], item.nodeid
        assert _selects(merge, item) >= _selects(commit, item), item.nodeid


def test_the_paper_and_the_browser_are_in_the_merge_tier(collected: tuple[pytest.Item, ...]) -> None:
    late = [
        item
        for item in collected
        if "paper" in item.path.relative_to(ROOT).parts or "chromium" in getattr(item, "fixturenames", ())
    ]
    assert [item.nodeid for item in late if _selects(_commit(), item)] == []


def test_the_pages_name_the_tiers() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert f'-m "{NIGHTLY}"' in guide
    assert f'-m "{NIGHTLY}"' in (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
