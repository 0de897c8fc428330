"""A closed list of symbols: saved, read again, and nothing else let in."""

from __future__ import annotations

from pathlib import Path

import pytest

from transduce.errors import CheckpointError, DataError
from transduce.text import UNK_ID, load_tokenizer, train_symbols

LINES = ["(S (NP XX )NP . )S", "(S , XX )S"]


def test_each_symbol_is_one_id(tmp_path: Path) -> None:
    tokenizer = train_symbols(LINES)
    assert tokenizer.size == 4 + 7
    assert [len(ids) for ids in tokenizer.encode_batch(LINES)] == [6, 4]
    for line in LINES:
        assert tokenizer.decode(tokenizer.encode(line)) == line
    assert tokenizer.encode("(S (VP XX") == [tokenizer.vocabulary["(S"], UNK_ID, tokenizer.vocabulary["XX"]]
    tokenizer.save(tmp_path / "tokenizer.tgt.json")
    again = load_tokenizer(tmp_path / "tokenizer.tgt.json")
    assert (again.fingerprint, again.vocabulary) == (tokenizer.fingerprint, tokenizer.vocabulary)
    assert train_symbols(reversed(LINES)).fingerprint == tokenizer.fingerprint


def test_what_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no text"):
        train_symbols(["", " "])
    with pytest.raises(DataError, match=r"is called </s>, which has a meaning of its own"):
        train_symbols(["a </s>"])
    path = tmp_path / "tokenizer.json"
    train_symbols(LINES).save(path)
    path.write_text(path.read_text(encoding="utf-8").replace('"<unk>"', '"XX"', 1), encoding="utf-8")
    with pytest.raises(CheckpointError):
        load_tokenizer(path)
