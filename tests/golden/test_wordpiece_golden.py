"""WordPiece against a learner and an encoder written from the definition, in plain Python and exact fractions."""

import json
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from transduce.text import Tokenizer, train_wordpiece
from transduce.text.wordpiece_trainer import learn_pieces, split_characters

TEXTS = ["the cat sat on the mat", "the hats of the cats, those 12 hats", "that is what they hated"] * 3
WORDS = st.dictionaries(st.text("abc", min_size=1, max_size=9), st.integers(1, 60), min_size=1, max_size=12)


def learn_by_definition(word_counts: Mapping[str, int], alphabet: list[str], n_pieces: int) -> list[str]:
    pieces = list(alphabet)
    words = [(split_characters(word), count) for word, count in word_counts.items()]
    floor = max(2, sum(len(word) * count for word, count in words) // (2 * n_pieces))
    while len(pieces) < n_pieces:
        symbols = Counter(symbol for word, count in words for symbol in word for _ in range(count))
        pairs = Counter(pair for word, count in words for pair in pairwise(word) for _ in range(count))
        while floor > 2 and max(pairs.values(), default=0) < floor:
            floor = max(2, floor // 2)
        candidates = [pair for pair, count in pairs.items() if count >= floor]
        if not candidates:
            break
        left, right = min(
            candidates,
            key=lambda pair: (
                -Fraction(pairs[pair], symbols[pair[0]] * symbols[pair[1]]),
                -pairs[pair],
                pieces.index(pair[0]),
                pieces.index(pair[1]),
            ),
        )
        merged = left + right[1:]
        if merged not in pieces:
            pieces.append(merged)
        for word, _ in words:
            for n in range(len(word)):
                if word[n : n + 2] == [left, right]:
                    word[n : n + 2] = [merged]
    return pieces


@given(WORDS, st.integers(7, 40))
def test_each_merge_is_the_best_of_all(word_counts: dict[str, int], n_pieces: int) -> None:
    alphabet = [*"abc", "…a", "…b", "…c"]
    learned = learn_pieces(word_counts, alphabet=alphabet, n_pieces=n_pieces)
    assert learned == learn_by_definition(word_counts, alphabet, n_pieces)
    backwards = dict(reversed(word_counts.items()))
    assert learned == learn_pieces(backwards, alphabet=alphabet, n_pieces=n_pieces)


HUGS = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}  # 113 letters


def test_first_merges_worked_out_by_hand() -> None:
    # 113 / (2 x 10): a pair must occur 5 times. …g…s: 5 / (20 x 5) is the greatest. Then p…u, h…u, …u…n and others have
    # 1 / 36, of which p…u is the commonest. That leaves 19 …u, so h…u with 15 / (15 x 19) has the greatest score.
    alphabet = ["b", "h", "p", "…g", "…n", "…s", "…u"]
    assert learn_pieces(HUGS, alphabet=alphabet, n_pieces=10)[7:] == ["…gs", "pu", "hu"]


def test_a_pair_that_is_rarer_than_pieces_are_waits() -> None:
    # 113 / (2 x 8): a pair must occur 7 times, which …g…s does not. The others have 1 / 36; …u…g is the commonest.
    alphabet = ["b", "h", "p", "…g", "…n", "…s", "…u"]
    assert learn_pieces(HUGS, alphabet=alphabet, n_pieces=8)[7:] == ["…ug"]


@cache
def trained() -> tuple[Tokenizer, dict[str, int]]:
    tokenizer = train_wordpiece(TEXTS, vocab_size=600)
    with TemporaryDirectory() as folder:
        tokenizer.save(Path(folder) / "tokenizer.json")
        return tokenizer, json.loads((Path(folder) / "tokenizer.json").read_bytes())["model"]["vocab"]


def greedy(word: str, vocabulary: Mapping[str, int]) -> list[int]:
    ids: list[int] = []
    start = 0
    while start < len(word):
        prefix = "…" if start else ""
        end = next(end for end in range(len(word), start, -1) if prefix + word[start:end] in vocabulary)
        ids.append(vocabulary[prefix + word[start:end]])
        start = end
    return ids


@given(st.lists(st.text("acehstw", min_size=1, max_size=150), min_size=1, max_size=4))
def test_encoding_takes_the_longest_piece(words: list[str]) -> None:
    tokenizer, vocabulary = trained()
    cut = [f"Ġ{word}"[n : n + 64] for word in words for n in range(0, len(word) + 1, 64)]
    assert tokenizer.encode(" ".join(words)) == [id for chunk in cut for id in greedy(chunk, vocabulary)]
