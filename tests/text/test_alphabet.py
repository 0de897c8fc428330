"""Vocabularies that start with the characters of the training text, and the fixed minimum for pairs."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.config import DataConfig
from transduce.tasks.tokenizers import tokenizer_trainer
from transduce.text import train_bpe, train_wordpiece
from transduce.text.alphabet import frequent_characters, merges_of
from transduce.text.byte_level import from_byte_level, to_byte_level
from transduce.text.wordpiece_trainer import learn_pieces

TEXTS = ["süße Grüße für 日本 日本", "süß …a … übermütig für", "Grüße ‰"] * 2 + ["einmal ⊕"]
N_BYTES_AND_SPECIAL = 260


@given(st.text(st.characters(codec="utf-8")))
def test_the_byte_level_alphabet_there_and_back(text: str) -> None:
    assert from_byte_level(to_byte_level(text)) == text


@pytest.mark.parametrize("train", [train_bpe, train_wordpiece])
def test_each_frequent_character_is_one_token(train) -> None:  # type: ignore[no-untyped-def]
    tokenizer = train(TEXTS, vocab_size=700, alphabet="characters")
    for character in "üß日本…‰":
        assert tokenizer.pieces(tokenizer.encode(f"x{character}"))[-1].endswith(character), character
        assert len(tokenizer.encode(character)) <= 2  # the space before it may be a token
    assert len(tokenizer.encode("x⊕")) > len(tokenizer.encode("x‰"))  # seen once: bytes


def test_merges_join_the_most_frequent_characters() -> None:
    """The first learned merge, from the definition."""
    texts = ["日本 日本 日記 本", "日本"]
    tokenizer = train_bpe(texts, vocab_size=300, alphabet="characters")
    pairs = Counter(pair for text in texts for word in text.split() for pair in pairwise(f" {word}"))
    best = max(pairs.values())
    n_first = len({merge for character in "日本記" for merge in merges_of(character)})
    learned = tokenizer.pieces([N_BYTES_AND_SPECIAL + n_first - 2])  # 記 occurs once: bytes
    assert {tuple(learned[0].replace("▁", " "))} <= {pair for pair, count in pairs.items() if count == best}


def test_a_byte_vocabulary_spends_merges_on_characters_and_one_of_characters_does_not_split_them() -> None:
    texts = ["日本 日本語"] * 3
    bytes_only = train_bpe(texts, vocab_size=263)
    characters = train_bpe(texts, vocab_size=270, alphabet="characters")
    assert any("\\x" in piece for piece in bytes_only.pieces(bytes_only.encode("日本語")))
    assert not any("\\x" in piece for piece in characters.pieces(characters.encode("日本語")))


def test_characters_without_room_stay_bytes() -> None:
    tokenizer = train_bpe(["äöü ää"] * 2, vocab_size=261, alphabet="characters")
    assert tokenizer.pieces([260]) == ["ä"]
    assert len(tokenizer.encode("xö")) == 4
    pieces = train_wordpiece(["äöü ää"] * 2, vocab_size=518, alphabet="characters")
    assert pieces.pieces([516, 517]) == ["ä", "ä"]
    assert pieces.decode(pieces.encode("xö ä")) == "xö ä"


def test_the_continuation_character_in_text_is_text() -> None:
    texts = ["…a a… ……", "…a (…a)"] * 3
    tokenizer = train_wordpiece(texts, vocab_size=560, alphabet="characters")
    for text in texts:
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_characters_are_counted_and_sorted() -> None:
    assert frequent_characters({"ab": 9, "éü": 2, "ü": 1, "ß": 1}, min_count=2) == ["ü", "é"]


def test_with_a_minimum_of_one_the_quotient_alone_decides() -> None:
    """P(ab) / (P(a) P(b)) is highest for two rare letters that are always together."""
    counts = {"xy": 1, "ab": 50, "ac": 50}
    alphabet = ["x", "a", "…y", "…b", "…c"]
    assert learn_pieces(counts, alphabet=alphabet, n_pieces=6, min_pair_count=1)[-1] == "xy"
    assert learn_pieces(counts, alphabet=alphabet, n_pieces=6)[-1] == "ab"
    assert learn_pieces(counts, alphabet=alphabet, n_pieces=9, min_pair_count=51) == alphabet


def test_the_configuration_reaches_the_trainer() -> None:
    config = DataConfig(tokenizer="wordpiece", alphabet="characters", min_pair_count=3, vocab_size=600)
    expected = train_wordpiece(TEXTS, vocab_size=600, alphabet="characters", min_pair_count=3)
    assert tokenizer_trainer(config)(TEXTS).fingerprint == expected.fingerprint
    assert expected.fingerprint != train_wordpiece(TEXTS, vocab_size=600).fingerprint
