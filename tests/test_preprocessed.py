"""Text that another program has tokenised, cut or quoted is recognised, and text as people write it is not."""

from __future__ import annotations

import pytest

from transduce.metrics import looks_tokenised
from transduce.preprocessed import looks_quoted, subword_marks

PLAIN = [
    "Mail me@@home or ##here.", "C# and ## are marks.", 'He said "yes", and "no".', "▁ is a block.", "A dog sleeps.",
    "## Title", "x@@ is one of them", "a ￭ b",
]  # fmt: skip


@pytest.mark.parametrize(
    ("mark", "lines"),
    [
        ("@@", ["Der Him@@ mel ist blau.", "Ja."]),
        ("@@", ["Ken@@ nst du", "das Men@@"]),
        ("▁", ["▁Der ▁Him mel ▁ist ▁blau .", "▁Ja ."]),
        ("##", ["der him ##mel ist blau", "ja ."]),
        ("￭", ["Der Himmel ist blau ￭.", "un￭ belie￭ vable"]),
    ],
)
def test_words_cut_into_subwords(mark: str, lines: list[str]) -> None:
    assert subword_marks(lines) == mark
    assert subword_marks(lines + PLAIN[4:5] * 100) is None  # a few lines of many


def test_text_with_such_marks_now_and_then_is_not_cut() -> None:
    assert subword_marks(PLAIN * 2 + ["A dog sleeps."] * 40) is None
    assert subword_marks([]) is None
    assert not looks_quoted(PLAIN)
    assert not looks_quoted([])
    assert not looks_tokenised(PLAIN)


@pytest.mark.parametrize(
    "lines",
    [
        ['"He said ""yes"" to me."', *["A dog sleeps."] * 100],
        ['"A dog, a cat."', '"A bird."', "A cow."],
        ['"""Yes,"" he said."', "A dog."],
    ],
)
def test_lines_quoted_as_in_csv(lines: list[str]) -> None:
    assert looks_quoted(lines)


@pytest.mark.parametrize("line", ['"Yes," he said.', 'He said "yes"', '"Yes"? "No"', '"', '""', '"a" and "b"'])
def test_quotes_in_text(line: str) -> None:
    assert not looks_quoted([line, *["A dog sleeps."] * 9])


def test_tokenised_chinese() -> None:
    assert looks_tokenised(["狗 在 花园 里 睡觉 。", "猫 也 睡觉 。"])
    assert not looks_tokenised(["狗在花园里睡觉。", "猫 也睡觉。"])
