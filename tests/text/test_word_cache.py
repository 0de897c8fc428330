"""The word cache: the ids are those of the library, whatever the text and whatever was cached before."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.text import Tokenizer, train_bpe, train_word_level, train_wordpiece, word_cache

LEARNED = ["The dogs don't see 12 cats, do they?", "Die Hunde sehen 12 Katzen nicht."] * 3
KINDS = ["BPE", "WordPiece", "WordLevel"]
CHARACTERS = st.characters(exclude_categories=["Cs"]) | st.sampled_from("  \t\u3000\u180e\u200b\x1c'’sdogs.,1Ġ▁…")


@cache
def tokenizer_of(kind: str) -> Tokenizer:
    """One tokenizer for all examples, so its cache has the words of the earlier ones."""
    match kind:
        case "BPE":
            return train_bpe(LEARNED, vocab_size=300)
        case "WordPiece":
            return train_wordpiece(LEARNED, vocab_size=560)
        case _:
            return train_word_level(["(S XX )S dogs cats ."])


def by_the_library(tokenizer: Tokenizer, texts: list[str]) -> list[list[int]]:
    return [each.ids for each in tokenizer._library.encode_batch(texts, add_special_tokens=False)]


@pytest.mark.parametrize("kind", KINDS)
@given(texts=st.lists(st.text(CHARACTERS) | st.lists(st.text(CHARACTERS, min_size=1)).map(" ".join), max_size=8))
def test_the_ids_are_those_of_the_library(kind: str, texts: list[str]) -> None:
    tokenizer = tokenizer_of(kind)
    assert tokenizer.encode_batch(texts) == by_the_library(tokenizer, texts)


@pytest.mark.parametrize("kind", KINDS)
def test_no_character_joins_two_words(kind: str) -> None:
    """Every character of the first blocks of Unicode, which have all separators and joiners, and some others."""
    tokenizer = tokenizer_of(kind)
    characters = [chr(code) for code in [*range(0x3000), 0x3000, 0xFEFF, 0xFFFD, 0x1F600, 0x1F468, 0xE0020, 0x10FFFF]]
    texts = [
        " ".join(f"a {one} b a{one} b's {one} {one}'s 1{one} ." for one in characters[start : start + 100])
        for start in range(0, len(characters), 100)
    ]
    assert tokenizer.encode_batch(texts) == by_the_library(tokenizer, texts)


def test_a_full_cache_is_emptied_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    learned = train_bpe(LEARNED, vocab_size=300)
    texts = [f"dog{n} cat{n % 7} " + "x" * n for n in range(50)]
    expected = by_the_library(learned, [text.strip() for text in texts])
    monkeypatch.setattr(word_cache, "MAX_CACHED_CHARACTERS", 40)
    assert [learned.encode(text.strip()) for text in texts] == expected
    assert len(learned._cache._values) < 20
    assert learned.encode_batch([text.strip() for text in texts]) == expected
