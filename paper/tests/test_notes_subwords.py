"""BPE against WordPiece: pair counts against loops, and each algorithm's first merges against its rule."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from transduce.text import train_bpe, train_wordpiece
from transduce_paper import Experiments
from transduce_paper.notes.subwords import EXAMPLE_WORDS, make_subwords, pair_counts
from transduce_paper.report import Table


def test_pairs_are_counted() -> None:
    pairs: Counter[str] = Counter()
    letters: Counter[str] = Counter()
    for word, count in EXAMPLE_WORDS.items():
        spelled = "▁" + word
        letters.update(dict.fromkeys(spelled, 0))
        for _ in range(count):
            letters.update(spelled)
            pairs.update(spelled[n : n + 2] for n in range(len(spelled) - 1))
    counts = {(each.left + each.right).replace("…", ""): each for each in pair_counts(EXAMPLE_WORDS)}
    assert {pair: each.pair_count for pair, each in counts.items()} == dict(pairs)
    for pair, each in counts.items():
        assert (each.left_count, each.right_count) == (letters[pair[0]], letters[pair[1]])
        probabilities = pairs[pair] / letters.total(), letters[pair[0]] / letters.total(), letters[pair[1]]
        assert each.ratio == pytest.approx(probabilities[0] / (probabilities[1] * probabilities[2]) * letters.total())


def test_first_merges_follow_the_rules_of_the_notes() -> None:
    text = [" ".join([word] * count) for word, count in EXAMPLE_WORDS.items()]
    pairs = pair_counts(EXAMPLE_WORDS)
    most_frequent = max(pairs, key=lambda each: each.pair_count)
    greatest_ratio = max(pairs, key=lambda each: each.ratio)
    bpe, wordpiece = train_bpe(text, vocab_size=261), train_wordpiece(text, vocab_size=517)
    assert bpe.pieces([260]) == [(most_frequent.left + most_frequent.right).replace("…", "")] == ["ug"]
    assert wordpiece.pieces([516]) == [(greatest_ratio.left + greatest_ratio.right).replace("…", "")] == ["gs"]
    # The pair of the notes is the most frequent one, but not the first merge of WordPiece.
    assert most_frequent.ratio < greatest_ratio.ratio


def test_a_word_with_a_letter_twice() -> None:
    [first, *_] = pair_counts({"aaa": 2})
    assert (first.left, first.right, first.pair_count, first.left_count) == ("…a", "…a", 4, 6)


def test_short_report(tmp_path: Path) -> None:
    part = make_subwords(Experiments(tmp_path, tmp_path, scale="test"))
    pairs, example, first, sizes = (section for section in part.blocks() if isinstance(section, Table))
    assert [row[0] for row in pairs.rows if "BPE" in str(row[-1])] == ["…u …g"]
    assert [row[0] for row in pairs.rows if "WordPiece" in str(row[-1])] == ["…g …s"]
    assert example.rows[0][1:] == (
        "ug, ▁p, un, hug, ▁hug, ▁pun, ▁pug, ▁hugs, bun, ▁bun",
        "gs, ▁p, ▁h, ▁b, ▁pu, ▁hu, ▁bu, ▁hugs, ▁hug, ▁bun, ▁pun, ▁pug",
    )
    assert len(first.rows) == 5
    for column in (1, 2):
        per_word = [row[column] for row in sizes.rows]
        assert per_word == sorted(per_word, reverse=True)
        assert min(per_word) > 1
