"""WordPiece; ``test_every_tokenizer.py`` tests the contract of every kind."""

from pathlib import Path

import pytest

from edits import Edit, edit_json
from transduce.errors import CheckpointError
from transduce.text import Tokenizer, load_tokenizer, train_wordpiece

TEXTS = ["low low low", "lower newest", "newest widest", "newest 12 % </s> </s> <pad><pad>"] * 3
SMALLEST = 516


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_wordpiece(TEXTS, vocab_size=560)


def test_a_piece_inside_a_word_is_another_than_at_its_start(tokenizer: Tokenizer) -> None:
    start = tokenizer.encode("%")[-1:]  # "▁%"
    inside = tokenizer.encode("1%")[-1:]  # a word of its own after the digit
    assert tokenizer.pieces(inside) == ["%"]
    assert start != inside


def test_a_small_corpus_gives_the_pairs_that_occur_twice() -> None:
    tokenizer = train_wordpiece(["abc abd"], vocab_size=1000)
    assert tokenizer.pieces(range(SMALLEST, tokenizer.size)) == ["▁a", "▁ab"]


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (lambda d: d["model"].update(continuing_subword_prefix="##"), r"\bcontinuing_subword_prefix\b.*'##'"),
        (lambda d: d["model"].pop("unk_token"), r"\bunk_token\b.*\bNone\b"),
        (lambda d: d["model"].update(max_input_chars_per_word=10_000), r"\bmax_input_chars_per_word\b.*\b10000\b"),
        (lambda d: d["model"]["vocab"].update({"zz": d["model"]["vocab"].pop("…!")}), r"\bbytes\b"),
        (lambda d: d["model"]["vocab"].update({"zz": d["model"]["vocab"].pop("Ġ")}), r"\bbytes\b"),
        (lambda d: d["pre_tokenizer"]["pretokenizers"].pop(), r"\bpre_tokenizer\b"),
        (lambda d: d.update(decoder=None), r"\bdecoder\b"),
        (lambda d: d["decoder"]["decoders"].pop(0), r"\bdecoder\b"),
        (lambda d: d["decoder"]["decoders"].pop(), r"\bdecoder\b"),
    ],
)
def test_a_file_that_would_lose_text_is_refused(tokenizer: Tokenizer, tmp_path: Path, edit: Edit, named: str) -> None:
    path = tmp_path / "saved.json"
    tokenizer.save(path)
    edit_json(path, edit)
    with pytest.raises(CheckpointError, match=rf"saved\.json.*{named}") as caught:
        load_tokenizer(path)
    assert "\n" not in str(caught.value)
