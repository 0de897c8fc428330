"""``transduce parseval``. Imports no torch: it starts at once."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transduce.cli.options import JsonOption
from transduce.cli.output import print_json, print_parseval
from transduce.errors import DataError, TreeError

if TYPE_CHECKING:
    from transduce.trees import Tree

__all__ = ["parseval"]


def parseval(
    gold: Annotated[Path, typer.Argument(metavar="GOLD", help="Trees, one a line.", show_default=False)],
    test: Annotated[
        Path, typer.Argument(metavar="TEST", help="A parser's trees, aligned line by line.", show_default=False)
    ],
    plain: Annotated[
        bool,
        typer.Option(
            "--plain",
            help="Take trees as parsers are trained on them: any root is TOP, no function tags and no traces; they may"
            " stand on several lines.",
        ),
    ] = False,
    details: Annotated[bool, typer.Option("--details", help="Also each sentence's own figures.")] = False,
    json: JsonOption = False,
) -> None:
    """Score parse trees as EVALB does with COLLINS.prm: labelled recall, precision and F1, crossing brackets, tags.

    Percentages are of sums over valid sentences. A sentence whose words differ in the two files is an error and in no
    total: a figure is worth something where errors are 0.
    """
    from transduce.metrics import parseval as compare
    from transduce.metrics.parseval import lines_of_details

    gold_trees, test_trees = (_trees(path, is_plain=plain) for path in (gold, test))
    if len(gold_trees) != len(test_trees):
        what, how = ("trees", "one by one") if plain else ("lines", "line by line")
        raise DataError(f"{gold} has {len(gold_trees):,} {what}, {test} {len(test_trees):,}; trees align {how}")
    result = compare(gold_trees, test_trees)
    if json:
        sentences = {"sentences": [each.as_json() for each in result.sentences]} if details else {}
        print_json({**asdict(result.all), "length_40": asdict(result.length_40), **sentences})
        return
    if details:
        print("\n".join(lines_of_details(result.sentences)), end="\n\n")
    print_parseval(result)


def _trees(path: Path, *, is_plain: bool) -> list[Tree | None]:
    from transduce.corpora import read_plain_trees
    from transduce.files import read_lines
    from transduce.trees import tree_or_none

    if is_plain:
        return list(read_plain_trees(path))
    try:
        return [tree_or_none(line, number=number) for number, line in enumerate(read_lines(path), start=1)]
    except TreeError as error:
        raise TreeError(f"{path}: {error}; here trees stand one a line, with --plain on any lines") from error
