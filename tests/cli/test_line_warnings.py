"""Warnings about doubtful translations: one of each kind, and a count at the end."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from said import says
from transduce.cli.line_warnings import LineWarnings
from transduce.tasks import ScoredText, Translation

CommandLine = Callable[..., Any]


def translation(**marks: bool) -> Translation:
    return Translation("source", (ScoredText("text", -1.0),), **marks)


def test_each_kind_is_told_once_and_counted_at_the_end() -> None:
    told: list[str] = []
    warnings = LineWarnings(told.append, max_source_tokens=1024)
    for each in (
        translation(),
        translation(is_long=True),
        translation(is_long=True, is_short=True),
        translation(is_truncated=True),
        translation(is_truncated=True),
        translation(lacks_masks=True),
    ):
        warnings.observe(each)
    assert [line.partition(" line ")[2].partition(" ")[0] for line in told] == ["2", "3", "4", "5", "6"]
    assert says(told[0], 2, "longer", "source")
    assert says(told[1], 3, "shorter")
    assert says(told[2], 4, "1,024")
    assert len({re.sub(r"\d+", "", line) for line in told}) == 4  # each kind has its own message
    told.clear()
    warnings.log_counts()
    (line,) = told
    assert says(line, re.compile("^warning: "), 2, 6, "longer")


def test_a_line_of_several_sentences_is_split_unless_it_should_not_be(
    transduce: CommandLine, micro_model: Path
) -> None:
    one, two = "The dog sees the cat.", "The woman sleeps."
    alone = transduce("translate", micro_model, stdin=f"{one}\n{two}\n".encode()).out.splitlines()
    assert transduce("translate", micro_model, stdin=f"{one}  {two}\n".encode()).out == "  ".join(alone).strip() + "\n"
    whole = transduce("translate", micro_model, "--no-split", stdin=("word " * 200).encode())
    assert says(whole.err, re.compile("^warning: "), 1, "longer")
    split = transduce("translate", micro_model, stdin=("word " * 200).encode())
    assert "longer" not in split.err
    assert split.out.count("\n") == 1
