import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from transduce.errors import CheckpointError, ConfigError, DataError
from transduce.text import SPECIAL_SYMBOLS, Tokenizer, load_tokenizer, train_wordpiece

TEXTS = ["low low low", "lower newest", "newest widest", "newest 12 % </s> </s> <pad><pad>"] * 3
SMALLEST = 516


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_wordpiece(TEXTS, vocab_size=560)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        " a",
        " ",
        "<pad>",
        "</s> <s><unk>",
        "low</s>",
        "##est … …low",
        "日本語 \U0001f600 नमस्ते",
        "\0\x01\x7f\n\x85",
        "don't",
        "a  b",
        "é e\u0301",
        "newest" * 2_000,
        "日" * 3_000,
    ],
)
def test_nothing_is_lost(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert all(id >= len(SPECIAL_SYMBOLS) for id in ids)


def test_a_word_is_spelled_alike_at_the_start_and_inside(tokenizer: Tokenizer) -> None:
    newest = tokenizer.encode("newest")
    assert tokenizer.pieces(newest) == ["▁newest"]
    assert tokenizer.encode("newest newest") == newest * 2


def test_a_piece_inside_a_word_is_another_than_at_its_start(tokenizer: Tokenizer) -> None:
    start, inside = (
        tokenizer.encode("%")[-1:],
        tokenizer.encode("1%")[-1:],
    )  # "▁%" is one word, "%" after a digit another
    assert tokenizer.pieces(inside) == ["%"]
    assert start != inside


def test_pieces_are_shown_without_the_mark(tokenizer: Tokenizer) -> None:
    assert "".join(tokenizer.pieces(tokenizer.encode("slow newest"))) == "▁slow▁newest"


def test_vocab_size_counts_special_symbols_and_bytes() -> None:
    assert train_wordpiece(TEXTS, vocab_size=SMALLEST).size == SMALLEST
    assert train_wordpiece(TEXTS, vocab_size=522).size == 522
    with pytest.raises(ConfigError, match=r"at least 516 .* got 515"):
        train_wordpiece(TEXTS, vocab_size=515)


def test_a_small_corpus_gives_a_smaller_vocabulary() -> None:
    tokenizer = train_wordpiece(["abc abd"], vocab_size=1000)
    assert tokenizer.pieces(range(SMALLEST, tokenizer.size)) == ["▁a", "▁ab"]


def test_the_vocabulary_is_full_where_the_corpus_is_large_enough() -> None:
    texts = [f"{first}{second}{third}" for first in "abcdefgh" for second in "ijklmnop" for third in "qrstuvw"] * 20
    assert train_wordpiece(texts, vocab_size=900).size == 900


def test_training_reads_a_stream_once_and_depends_on_nothing_else() -> None:
    read = []

    def stream() -> Iterator[str]:
        for text in TEXTS:
            read.append(text)
            yield text

    tokenizer = train_wordpiece(stream(), vocab_size=550)
    assert read == TEXTS
    assert tokenizer.fingerprint == train_wordpiece(TEXTS, vocab_size=550).fingerprint
    assert tokenizer.fingerprint == train_wordpiece(["", *reversed(TEXTS)], vocab_size=550).fingerprint


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_no_text_is_an_error(texts: list[str]) -> None:
    with pytest.raises(DataError, match="cannot be learned from no text"):
        train_wordpiece(texts, vocab_size=600)


def test_an_error_of_the_stream_comes_through() -> None:
    def stream() -> Iterator[str]:
        yield "a text"
        raise DataError("train.en:2 is not UTF-8")

    with pytest.raises(DataError, match=r"train\.en:2 is not UTF-8"):
        train_wordpiece(stream(), vocab_size=600)


def test_a_saved_tokenizer_is_the_same(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "tokenizer.json")
    loaded = load_tokenizer(tmp_path / "tokenizer.json")
    assert (loaded.fingerprint, loaded.size) == (tokenizer.fingerprint, tokenizer.size)
    assert loaded.encode("the newest Fluß") == tokenizer.encode("the newest Fluß")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda d: d["model"].update(type="BPE"), "sets unk_token"),
        (lambda d: d["model"].update(continuing_subword_prefix="##"), "sets continuing_subword_prefix to '##'"),
        (lambda d: d["model"].pop("unk_token"), "sets unk_token to None"),
        (lambda d: d["model"].update(max_input_chars_per_word=10_000), "sets max_input_chars_per_word"),
        (lambda d: d["model"]["vocab"].update({"zz": d["model"]["vocab"].pop("…!")}), "lacks bytes"),
        (lambda d: d["model"]["vocab"].update({"zz": d["model"]["vocab"].pop("Ġ")}), "lacks bytes"),
        (lambda d: d["model"]["vocab"].update({"<pad>": 2, "</s>": 0}), "at ids 0 to 3"),
        (lambda d: d["pre_tokenizer"]["pretokenizers"].pop(), "has another pre_tokenizer"),
        (lambda d: d.update(pre_tokenizer=None), "has another pre_tokenizer"),
        (lambda d: d["decoder"]["decoders"].pop(0), "has another decoder"),
        (lambda d: d["decoder"]["decoders"].pop(), "has another decoder"),
    ],
)
def test_a_tokenizer_of_another_system_is_refused(
    tokenizer: Tokenizer, tmp_path: Path, edit: Callable[[dict[str, Any]], object], message: str
) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizer.save(path)
    description = json.loads(path.read_bytes())
    edit(description)
    path.write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(CheckpointError, match=message) as caught:
        load_tokenizer(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
