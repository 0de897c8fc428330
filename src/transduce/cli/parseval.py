"""``transduce parseval``. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from transduce.cli import options
from transduce.cli.output import echo, print_json, print_parseval
from transduce.cli.stdin import lines_of, name_of, plain_trees, require_stdin_once
from transduce.errors import ConfigError, DataError, TreeError

if TYPE_CHECKING:
    from transduce.trees import Tree

__all__ = ["parseval"]

MAX_WARNINGS = 10  # malformed lines reported one by one


def parseval(
    gold: Annotated[Path, Argument(metavar="GOLD", help="Gold trees, one per line; - is stdin.", show_default=False)],
    test: Annotated[Path, Argument(metavar="TEST", help="Parser output, aligned line by line.", show_default=False)],
    plain: Annotated[
        bool,
        Option(
            "--plain",
            help="Normalise trees as for training: root TOP, no function tags or traces; a tree may span lines.",
        ),
    ] = False,
    details: Annotated[bool, Option("--details", help="Also print the figures of each sentence.")] = False,
    json: options.Json = False,
) -> None:
    """Score parse trees as EVALB does with COLLINS.prm.

    Prints labelled recall, precision and F1, crossing brackets and tags. Percentages are over valid sentences. A
    sentence whose words differ, or a malformed line of TEST, counts as an error and is excluded: figures are
    comparable only if there are no errors.

    Examples:
        transduce parseval gold.ptb parsed.ptb
    """
    from transduce.metrics import parseval as compare
    from transduce.metrics.parseval import detail_lines

    require_stdin_once({"GOLD": gold, "TEST": test})
    if gold.is_fifo() and test.is_fifo() and gold.samefile(test):  # opening it again, without a writer, would block
        raise ConfigError(f"GOLD and TEST cannot both be {gold}: a pipe can be read once; name a file for one of them")
    gold_trees, test_trees = _gold_trees(gold, is_plain=plain), _test_trees(test, is_plain=plain)
    if len(gold_trees) != len(test_trees):
        what, how = ("trees", "one by one") if plain else ("lines", "line by line")
        raise DataError(
            f"{name_of(gold)} has {len(gold_trees):,} {what}, {name_of(test)} {len(test_trees):,}; trees align {how}"
        )
    result = compare(gold_trees, test_trees)
    if json:
        sentences = {"sentences": [each.as_json() for each in result.sentences]} if details else {}
        print_json({**asdict(result.all), "length_40": asdict(result.length_40), **sentences})
        return
    if details:
        print("\n".join(detail_lines(result.sentences)), end="\n\n")
    print_parseval(result)


def _gold_trees(path: Path, *, is_plain: bool) -> list[Tree | None]:
    """Read gold trees. Raises TreeError for a malformed line."""
    trees: list[Tree | None] = []
    for tree in _trees(path, is_plain=is_plain):
        if isinstance(tree, TreeError):
            raise TreeError(
                f"{name_of(path)}: {tree}; expected one tree per line; --plain reads trees that span lines"
            ) from tree
        trees.append(tree)
    return trees


def _test_trees(path: Path, *, is_plain: bool) -> list[Tree | TreeError | None]:
    """Read parser output, warning about malformed lines."""
    trees = list(_trees(path, is_plain=is_plain))
    errors = [tree for tree in trees if isinstance(tree, TreeError)]
    for error in errors[:MAX_WARNINGS]:
        echo(f"warning: {name_of(path)}: {error}; the sentence counts as an error")
    if len(errors) > MAX_WARNINGS:
        echo(f"warning: {len(errors):,} of {len(trees):,} lines of {name_of(path)} are malformed and count as errors")
    return trees


def _trees(path: Path, *, is_plain: bool) -> Iterator[Tree | TreeError | None]:
    """Yield the tree of each line, or a TreeError; with ``is_plain``, the trees of the whole file.

    The latter raises DataError for a malformed tree, since the start of the next one is unknown.
    """
    from transduce.trees import tree_or_none

    if is_plain:
        yield from plain_trees(path)
        return
    for number, line in enumerate(lines_of(path), start=1):
        try:
            yield tree_or_none(line, number=number)
        except TreeError as error:
            yield error
