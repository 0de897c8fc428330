"""Verbs that other distributions add by entry points: they behave like the built-in ones, and cannot harm these."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from commands import CommandLine
from said import says
from transduce.cli import run, verbs

MODULE = """
    from typing import Annotated
    import typer
    from transduce.cli import DeviceOption, JsonOption, echo, print_json
    from transduce.errors import DataError

    def count(
        text: Annotated[str, typer.Argument(help="A text.")], device: DeviceOption = "cpu", json: JsonOption = False
    ) -> int:
        '''Count the words of a text.'''
        match text:
            case "broken":
                raise ZeroDivisionError("no words")
            case "bad":
                raise DataError("the text is bad")
        echo(f"counting on {device}")
        if json:
            print_json(len(text.split()))
        return 0 if text else 3

    group = typer.Typer(help="Further verbs.")

    @group.command()
    def first() -> None:
        '''Print a line.'''
        print("the first")

    @group.command()
    def second() -> None:
        '''Print another line.'''

    def score() -> int:
        print("not the scores")
        return 0
"""


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """``added("name = module:object")`` installs the distribution ``word-counts`` with these entry points."""
    site = tmp_path / "site"
    (site / "word_counts-1.0.dist-info").mkdir(parents=True)
    (site / "word_counts.py").write_text(dedent(MODULE), encoding="utf-8")
    (site / "word_counts_broken.py").write_text("import no_such_module\n", encoding="utf-8")
    (site / "word_counts-1.0.dist-info" / "METADATA").write_text("Name: word-counts\nVersion: 1.0\n", encoding="utf-8")
    monkeypatch.syspath_prepend(site)

    def install(entry_points: str) -> None:
        path = site / "word_counts-1.0.dist-info" / "entry_points.txt"
        path.write_text(f"[{verbs.ENTRY_POINTS}]\n{entry_points}\n", encoding="utf-8")
        importlib.invalidate_caches()

    yield install
    for name in ("word_counts", "word_counts_broken"):
        sys.modules.pop(name, None)


def test_an_added_verb_runs_like_a_built_in_one(transduce: CommandLine, added: Callable[[str], None]) -> None:
    added("count = word_counts:count\nfurther = word_counts:group")
    done = transduce("count", "a b c", "--json")
    assert (done.code, done.out, done.err) == (0, "3\n", "counting on cpu\n")
    assert transduce("count", "").code == 3
    assert transduce("further", "first").out == "the first\n"
    for arguments, code, facts in (
        (["count", "bad"], 1, ["the text is bad"]),
        (["count"], 2, ["'text'", "transduce count"]),
        (["count", "a", "--jsno"], 2, ["--jsno"]),
    ):
        refused = transduce(*arguments)
        assert refused.code == code
        assert says(refused.err, re.compile("^error: "), *facts)
        assert len(refused.err.splitlines()) == 1
    overview = transduce("--help").out
    assert all(name in overview for name in ("count", "Count the words of a text.", "further", "translate"))


def test_a_bug_of_an_added_verb_is_told_in_one_line(
    added: Callable[[str], None], capfd: pytest.CaptureFixture[str]
) -> None:
    added("count = word_counts:count")
    assert run(["count", "broken"]) == 1
    captured = capfd.readouterr()
    [line] = captured.err.splitlines()
    assert captured.out == ""
    assert says(line, re.compile("^error: "), "ZeroDivisionError", "no words")


@pytest.mark.parametrize(
    ("error", "code", "line"), [(KeyboardInterrupt, 130, "interrupted"), (EOFError, 1, "EOFError")]
)
def test_no_end_is_without_a_word(
    error: type[BaseException], code: int, line: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def ended(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(verbs.VerbGroup, "make_context", ended)
    assert run(["score", "--help"]) == code
    assert line in capfd.readouterr().err


def test_a_verb_that_cannot_be_imported_is_told_with_its_distribution(
    transduce: CommandLine, added: Callable[[str], None]
) -> None:
    added("count = word_counts:count\nbroken = word_counts_broken:count\nmissing = word_counts:no_such_verb")
    for verb, reason in (("broken", "no_such_module"), ("missing", "no_such_verb")):
        refused = transduce(verb, "a")
        assert (refused.code, refused.out) == (1, "")
        [line] = refused.err.splitlines()
        assert says(line, re.compile("^error: "), f"'{verb}'", "word-counts", re.compile(reason))
    overview = transduce("--help")
    assert overview.code == 0
    assert all(name in overview.out for name in ("count", "translate"))
    assert says(overview.err, re.compile("^warning: "), "'broken'", "word-counts")
    assert transduce("count", "a").code == 0


def test_a_built_in_verb_cannot_be_replaced(transduce: CommandLine, added: Callable[[str], None]) -> None:
    added("score = word_counts:score")
    assert "score" not in verbs.added_verbs()
    assert "not the scores" not in transduce("score", "--help").out


def test_only_the_named_verb_is_imported(transduce: CommandLine, added: Callable[[str], None]) -> None:
    added("count = word_counts:count\nbroken = word_counts_broken:count")
    assert transduce("score", "--help").code == 0
    assert "word_counts" not in sys.modules
    assert transduce("count", "a").code == 0
    assert "word_counts_broken" not in sys.modules


def test_a_verb_of_a_distribution_that_is_not_installed(
    transduce: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verbs, "added_verbs", dict)
    refused = transduce("paper", "table1")
    assert (refused.code, refused.out) == (1, "")
    [line] = refused.err.splitlines()
    assert says(line, re.compile("^error: "), "'paper'", "pip install transduce-paper")


def test_an_unknown_verb_is_still_unknown(transduce: CommandLine, added: Callable[[str], None]) -> None:
    added("count = word_counts:count")
    refused = transduce("cuont")
    assert refused.code == 2
    assert says(refused.err, re.compile("^error: "), "'cuont'")
