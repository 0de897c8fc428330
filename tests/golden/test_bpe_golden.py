"""BPE against a learner written from the definition: count all neighbouring pairs, merge the commonest, again."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from transduce.text import train_bpe

TOY_COUNTS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}

Word = tuple[str, ...]


def merge_pair(word: Word, left: str, right: str) -> Word:
    merged: list[str] = []
    position = 0
    while position < len(word):
        if word[position : position + 2] == (left, right):
            merged.append(left + right)
            position += 2
        else:
            merged.append(word[position])
            position += 1
    return tuple(merged)


def learn_by_definition(word_counts: dict[str, int], n_merges: int) -> list[list[str]]:
    """Ties go to the pair whose symbols have been known longest; pairs that occur once are not merged."""
    words: dict[Word, int] = {("Ġ", *word): count for word, count in word_counts.items()}  # Ġ: the byte of a space
    rank = {symbol: n for n, symbol in enumerate(sorted({symbol for word in words for symbol in word}))}
    merges: list[list[str]] = []
    while len(merges) < n_merges:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, count in words.items():
            for pair in pairwise(word):
                pairs[pair] += count
        if not pairs or max(pairs.values()) < 2:
            break
        left, right = min(pairs, key=lambda pair: (-pairs[pair], rank[pair[0]], rank[pair[1]]))
        merges.append([left, right])
        rank.setdefault(left + right, len(rank))
        words = {merge_pair(word, left, right): count for word, count in words.items()}
    return merges


def learned_merges(word_counts: dict[str, int], vocab_size: int, folder: Path) -> list[list[str]]:
    texts = [" ".join([word] * count) for word, count in word_counts.items()]
    train_bpe(texts, vocab_size=vocab_size).save(folder / "tokenizer.json")
    merges = json.loads((folder / "tokenizer.json").read_bytes())["model"]["merges"]
    assert isinstance(merges, list)
    return merges


@pytest.mark.parametrize("n_merges", [1, 4, 10, 100])
def test_toy_counts(n_merges: int, tmp_path: Path) -> None:
    merges = learned_merges(TOY_COUNTS, 260 + n_merges, tmp_path)
    assert merges == learn_by_definition(TOY_COUNTS, n_merges)
    assert merges[:1] == [["e", "s"]]  # 6 of newest, 3 of widest


def test_first_merges_of_the_toy_counts_worked_out_by_hand(tmp_path: Path) -> None:
    # es: 6 newest, 3 widest; es+t likewise. Then lo, ow and Ġl, all 5 low, 2 lower: l is the oldest letter of them.
    expected = [["e", "s"], ["es", "t"], ["l", "o"], ["Ġ", "lo"], ["Ġlo", "w"]]
    assert learned_merges(TOY_COUNTS, 265, tmp_path) == expected


def test_a_longer_text_of_repeating_letters(tmp_path: Path) -> None:
    words = {"banana": 7, "bandana": 5, "ananas": 4, "anna": 3, "nab": 2, "saab": 6, "asana": 5, "bass": 8, "ssss": 3}
    assert learned_merges(words, 300, tmp_path) == learn_by_definition(words, 40)
