"""Word-level vocabularies; ``test_every_tokenizer.py`` tests the contract of every kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from transduce.errors import CheckpointError, DataError
from transduce.text import UNK_ID, load_tokenizer, train_word_level

LINES = ["(S (NP XX )NP . )S", "(S , XX )S"]


def test_each_token_is_one_id() -> None:
    tokenizer = train_word_level(LINES)
    assert tokenizer.size == 4 + 7
    assert [len(ids) for ids in tokenizer.encode_batch(LINES)] == [6, 4]
    assert tokenizer.encode("(S (VP XX") == [tokenizer.vocabulary["(S"], UNK_ID, tokenizer.vocabulary["XX"]]


def test_a_token_of_any_length_is_one_id() -> None:
    label = "(" + "N" * 100_000
    tokenizer = train_word_level([f"{label} XX"])
    assert len(tokenizer.encode(f"{label} XX", max_tokens=1)) == 2
    assert tokenizer.decode(tokenizer.encode(f"{label} XX", max_tokens=2)) == f"{label} XX"


def test_words_are_begun_by_tags_and_by_what_is_not_known() -> None:
    tokenizer = train_word_level(LINES)
    assert set(tokenizer.word_start_ids) == {UNK_ID, *map(tokenizer.vocabulary.get, ("XX", ".", ","))}


def test_what_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no text"):
        train_word_level(["", " "])
    with pytest.raises(DataError, match="</s>"):
        train_word_level(["a </s>"])
    path = tmp_path / "tokenizer.json"
    train_word_level(LINES).save(path)
    path.write_text(path.read_text(encoding="utf-8").replace('"<unk>"', '"XX"', 1), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"tokenizer\.json.*<pad>.*<s>.*</s>.*<unk>"):
        load_tokenizer(path)
