"""Texts with gaps as ids: a gap includes the space before it, except where spaces are tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.errors import DataError
from transduce.text import Tokenizer, byte_tokenizer, normalise, train_bpe, train_characters, train_wordpiece
from transduce.text.documents import DocumentCodec
from transduce.text.gaps import GapCodec

TEXT = ["the dogs sleep, the dog sleeps.", "a cat reads the news; the cats read."]
GAP = 9_999


def encoded(tokenizer: Tokenizer, text: str) -> list[str]:
    codec = GapCodec(DocumentCodec(tokenizer))
    ids = codec.encode(text, [GAP] * codec.n_gaps(text))
    return ["_" if id == GAP else tokenizer.pieces([id])[0] for id in ids]


def test_a_gap_is_a_word_with_its_space() -> None:
    bpe = train_bpe(TEXT * 3, vocab_size=330)
    assert encoded(bpe, "the <mask> sleeps.") == ["▁the", "_", *bpe.pieces(bpe.encode("sleeps.")), "\n"]
    assert encoded(bpe, "<mask> dog")[:2] == ["_", "▁dog"]
    assert encoded(bpe, "the <mask> <mask>") == ["▁the", "_", "_", "\n"]
    assert encoded(bpe, "the <mask>s")[1:3] == ["_", "s"]
    assert encoded(bpe, "the <mask>, the")[1:4] == ["_", ",", "▁the"]
    assert encoded(bpe, "the\n<mask>") == ["▁the", "\n", "_", "\n"]


@pytest.mark.parametrize("tokenizer", [byte_tokenizer(), train_characters(TEXT, vocab_size=400)])
def test_with_spaces_as_tokens_a_gap_has_none(tokenizer: Tokenizer) -> None:
    assert encoded(tokenizer, "a <mask> b") == ["▁", "a", "▁", "_", "▁", "b", "\n"]
    assert encoded(tokenizer, "c<mask>t") == ["▁", "c", "_", "t", "\n"]
    assert encoded(tokenizer, "<mask><mask>t") == ["▁", "_", "_", "t", "\n"]


@given(st.lists(st.text("ab .,é日\n"), min_size=1, max_size=4))
def test_characters_there_and_back(parts: list[str]) -> None:
    """A gap that stands for a character gives the ids of the text with this character, where spaces are tokens."""
    codec = GapCodec(DocumentCodec(byte_tokenizer()))
    (gap,) = byte_tokenizer().encode("x")[1:]
    text = "<mask>".join(parts)
    ids = codec.encode(text, [gap] * (len(parts) - 1))
    lines = text.replace("<mask>", "x").removesuffix("\n").split("\n")
    assert codec.documents.decode(ids) == "".join(f"{normalise(line)}\n" for line in lines)


def test_gaps_are_counted_as_they_are_read() -> None:
    """Normalisation may make a gap, or take one away."""
    codec = GapCodec(DocumentCodec(byte_tokenizer()))
    for text, n in (("<ma\0sk> a", 1), ("<mask\u0338> a", 1), ("<mask>\u0338 a", 0)):
        assert codec.n_gaps(text) == codec.encode(text, [GAP] * codec.n_gaps(text)).count(GAP), text
        assert codec.n_gaps(text) in (n, 1 - n)


def test_word_pieces_inside_a_word_are_those_of_training() -> None:
    wordpiece = train_wordpiece(TEXT * 3, vocab_size=700)
    assert encoded(wordpiece, "dog<mask>") == ["▁dog", "_", "\n"]
    codec = GapCodec(DocumentCodec(wordpiece))
    after = codec.encode("the d<mask>s sleep", [GAP])
    inside = after[after.index(GAP) + 1]
    assert inside == wordpiece.vocabulary["…s"]
    assert encoded(wordpiece, "the <mask>, the")[2] == ","


def test_as_many_ids_as_gaps() -> None:
    codec = GapCodec(DocumentCodec(byte_tokenizer()))
    with pytest.raises(DataError, match="2 gaps for 1 ids"):
        codec.encode("<mask> <mask>", [GAP])
