"""Malformed and extreme trees: correct figures or a one-line error, in bounded time."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import re
from pathlib import Path
from typing import Any

import pytest

from commands import CommandLine
from said import says
from transduce.corpora.treebank_text import read_trees
from transduce.errors import DataError

pytestmark = pytest.mark.reliability

TREE = b"(TOP (S (NP (DT the) (NN dog)) (VP (VBZ sleeps))))"


def _figures(transduce: CommandLine, gold: Path, test: Path, *more: str) -> dict[str, Any]:
    outcome = transduce("parseval", gold, test, "--json", *more)
    assert outcome.code == 0, outcome.err
    figures: dict[str, Any] = json.loads(outcome.out)
    return figures


def _refused(transduce: CommandLine, *arguments: object, stdin: bytes = b"") -> str:
    outcome = transduce("parseval", *arguments, stdin=stdin)
    assert outcome.code == 1
    assert outcome.out == ""
    lines: list[str] = outcome.err.rstrip("\n").split("\n")
    assert len(lines) == 1
    assert len(lines[0]) < 1500
    return lines[0]


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    path = tmp_path / "gold.txt"
    path.write_bytes(TREE + b"\n")
    return path


@pytest.mark.parametrize(
    "line",
    [b"(S (NP (NN a))", b")", b"(S (NN a)))", b"(" * 5000, b"dog", b"(S (NN a) b)", b"(S (NN a b))", b"\0",
     b"(S (NN " + b"x" * 3_000_000, b"x" * 3_000_000, "\u2028".encode(), "(S (NN a) \u2028)".encode()],
    ids=range(12),
)  # fmt: skip
def test_a_line_that_is_no_tree(line: bytes, gold: Path, tmp_path: Path, transduce: CommandLine) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(line + b"\n")
    assert says(_refused(transduce, bad, gold), "bad.txt", "line 1", re.compile(r"column \d+"))
    outcome = transduce("parseval", gold, bad, "--json")
    assert (outcome.code, json.loads(outcome.out)["errors"]) == (0, 1)
    assert outcome.err.count("\n") == 1
    assert len(outcome.err) < 1500


@pytest.mark.parametrize(
    "content",
    [b"\xef\xbb\xbf" + TREE + b"\r\n", TREE, gzip.compress(TREE), lzma.compress(TREE)],
    ids=["BOM and CRLF", "no end", "gz", "xz"],
)
def test_the_same_tree_otherwise_written(content: bytes, gold: Path, tmp_path: Path, transduce: CommandLine) -> None:
    ending = {b"\x1f\x8b": ".gz", b"\xfd7": ".xz"}.get(content[:2], "")
    (tmp_path / f"test{ending}").write_bytes(content)
    assert _figures(transduce, gold, tmp_path / f"test{ending}")["f1"] == 100


@pytest.mark.parametrize("line", [b"", b"()", b"( )", b"(TOP )", b"(TOP (S ) (NP))", b"(" * 9000 + b")" * 9000])
def test_a_tree_of_nothing_is_skipped(line: bytes, gold: Path, tmp_path: Path, transduce: CommandLine) -> None:
    (tmp_path / "test").write_bytes(line + b"\n")
    figures = _figures(transduce, gold, tmp_path / "test")
    assert (figures["valid"], figures["skipped"], figures["errors"]) == (0, 1, 0)


@pytest.mark.parametrize("content", [b"(S (NN caf\xe9))", b"(S (NN \xed\xa0\x80))"])
def test_bytes_that_are_no_text(content: bytes, gold: Path, tmp_path: Path, transduce: CommandLine) -> None:
    (tmp_path / "bad").write_bytes(content)
    assert says(_refused(transduce, gold, tmp_path / "bad"), "bad:1", "UTF-8")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(TREE)[:-3])
    assert says(_refused(transduce, gold, tmp_path / "cut.gz"), tmp_path / "cut.gz")


def test_files_of_other_lengths_and_none(gold: Path, tmp_path: Path, transduce: CommandLine) -> None:
    (tmp_path / "two").write_bytes((TREE + b"\n") * 2)
    assert says(_refused(transduce, gold, tmp_path / "two"), gold, 1, tmp_path / "two", 2)
    assert says(_refused(transduce, "/dev/null", gold), "/dev/null", 0, gold, 1)
    assert says(_refused(transduce, tmp_path, gold), tmp_path, "Is a directory")
    assert says(_refused(transduce, tmp_path / "none", gold), tmp_path / "none", "No such file")


def test_a_pipe_for_both(gold: Path, tmp_path: Path, transduce: CommandLine) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    assert says(_refused(transduce, tmp_path / "pipe", tmp_path / "link"), "pipe")
    assert says(_refused(transduce, "-", "-"), "stdin")


def _chain(n_levels: int, *, has_words: bool) -> bytes:
    """Nested brackets, over one word or each with one more word."""
    opening = b"(S (NN a) " if has_words else b"(S "
    return opening * n_levels + b"(NN a)" + b")" * n_levels


@pytest.mark.parametrize("depth", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("has_words", [False, True])
def test_very_deep_trees(depth: int, has_words: bool, tmp_path: Path, transduce: CommandLine) -> None:
    """With a word in each bracket there are as many spans; comparing all pairs would be quadratic."""
    path = tmp_path / "deep"
    path.write_bytes(_chain(depth, has_words=has_words) + b"\n")
    figures = _figures(transduce, path, path)
    assert (figures["valid"], figures["f1"], figures["average_crossing"]) == (1, 100, 0)
    (tree,) = read_trees([path])
    assert len(list(tree.leaves())) == (depth + 1 if has_words else 1)


@pytest.mark.slow
def test_brackets_without_end(gold: Path, tmp_path: Path, transduce: CommandLine) -> None:
    bad = tmp_path / "bad"
    bad.write_bytes(b"(" * 4_000_000)
    assert says(_refused(transduce, bad, gold), "1,000,000")


@pytest.mark.parametrize(
    "content", [b"(S (NN a)", b"(S )", b"x" * 1_000_000, b"(S (NN a)) )", b"\0", b"(" * 9000, b"(S (NN \xff))"]
)
def test_trees_to_train_on(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "train.ptb"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        list(read_trees([path]))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_of_many_lines_that_are_no_trees_some_are_told(tmp_path: Path, transduce: CommandLine) -> None:
    (tmp_path / "gold").write_bytes(b"(S (NN a))\n" * 300)
    (tmp_path / "test").write_bytes(b"(S (NN a))\n" * 100 + b"(S (NN a)\n" * 200)
    outcome = transduce("parseval", tmp_path / "gold", tmp_path / "test", "--json")
    assert (outcome.code, json.loads(outcome.out)["errors"]) == (0, 200)
    told = outcome.err.splitlines()
    assert len(told) == 11
    assert says(told[9], 110)
    assert says(told[10], 200, 300)
