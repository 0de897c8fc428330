"""An option that has one value is refused when it has two: nothing is overwritten without a word."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import CommandLine
from said import says

REPEATABLE = {
    "score --ref", "evaluate --ref", "train --set", "prepare --set", "demo --set", "train --tmx", "train --po",
    "train --xliff", "train --mix",
}  # fmt: skip


def options() -> Iterator[tuple[str, Any]]:
    """Every verb, and each of its options that takes a value."""
    import typer

    from transduce.cli.verbs import VERBS, make_app

    commands = typer.main.get_command(make_app()).commands  # type: ignore[attr-defined]
    for name in VERBS:
        for verb, leaf in getattr(commands[name], "commands", {"": commands[name]}).items():
            for option in leaf.params:
                if option.opts[0].startswith("-") and not option.is_flag:
                    yield f"{name} {verb}".strip(), option


def test_every_option_of_every_verb(transduce: CommandLine) -> None:
    n_refused = 0
    repeatable = set()
    for verb, option in options():
        name = max(option.opts, key=len)
        if option.multiple:
            repeatable.add(f"{verb} {name}")
            continue
        outcome = transduce(*verb.split(), name, "7", name, "7")
        assert (outcome.code, outcome.out) == (1, ""), (verb, name)
        assert says(outcome.err, name, "2 times", "once"), outcome.err
        n_refused += 1
    assert n_refused > 60
    assert {
        each for each in repeatable if each.split()[0] in ("score", "evaluate", "train", "prepare", "demo")
    } == REPEATABLE


@pytest.mark.parametrize(
    "arguments",
    [
        ("--set", "training.seed=1", "--set", "training.seed=2"),
        ("--set", "training.max_minutes=1", "--minutes", "2"),
        ("--set", "data.treebank=a", "--treebank", "b"),
    ],
)
def test_a_setting_with_two_values(
    transduce: CommandLine, micro_recipe: Path, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    outcome = transduce("train", micro_recipe, "--out", tmp_path / "run", *arguments)
    assert outcome.code == 1
    assert says(outcome.err, arguments[1].partition("=")[0], "more than once")
    assert not (tmp_path / "run").exists()


def test_the_other_way_to_write_an_option(transduce: CommandLine, tmp_path: Path) -> None:
    outcome = transduce("score", tmp_path / "a", "--seed=7", "--seed", "8", "--seed=9")
    assert (outcome.code, says(outcome.err, "--seed", "3 times")) == (1, True)


def test_a_flag_may_be_given_twice(transduce: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("A dog.\n")
    assert transduce("score", "--ref", tmp_path / "a", tmp_path / "a", "--json", "--json").code == 0
