import subprocess
import sys
from collections.abc import Iterator

import pytest

from transduce.errors import ConfigError, DataError
from transduce.text import SPECIAL_SYMBOLS, train_bpe

TEXTS = ["low low low", "lower newest", "newest widest", "newest 12 % </s> </s> <pad><pad>"] * 3


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
        "日本語 \U0001f600 नमस्ते",
        "\0\x01\x7f",
        "don't",
        "a  b",
        "é e\u0301",
    ],
)
def test_nothing_is_lost(text: str) -> None:
    tokenizer = train_bpe(TEXTS, vocab_size=300)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert all(id >= len(SPECIAL_SYMBOLS) for id in ids)


def test_a_word_is_spelled_alike_at_the_start_and_inside() -> None:
    tokenizer = train_bpe(TEXTS, vocab_size=300)
    newest = tokenizer.encode("newest")
    assert tokenizer.pieces(newest) == ["▁newest"]
    assert tokenizer.encode("newest newest") == newest * 2


def test_vocab_size_counts_special_symbols_and_bytes() -> None:
    assert train_bpe(TEXTS, vocab_size=260).size == 260
    assert train_bpe(TEXTS, vocab_size=266).size == 266
    with pytest.raises(ConfigError, match=r"at least 260 .* got 259"):
        train_bpe(TEXTS, vocab_size=259)


def test_a_small_corpus_gives_a_smaller_vocabulary() -> None:
    tokenizer = train_bpe(["abc abd"], vocab_size=1000)
    assert tokenizer.pieces(range(260, tokenizer.size)) == ["ab", "▁ab"]


def test_training_reads_a_stream_once_and_depends_on_nothing_else() -> None:
    read = []

    def stream() -> Iterator[str]:
        for text in TEXTS:
            read.append(text)
            yield text

    tokenizer = train_bpe(stream(), vocab_size=300)
    assert read == TEXTS
    assert tokenizer.fingerprint == train_bpe(TEXTS, vocab_size=300).fingerprint
    assert tokenizer.fingerprint == train_bpe(["", *reversed(TEXTS)], vocab_size=300).fingerprint


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_no_text_is_an_error(texts: list[str]) -> None:
    with pytest.raises(DataError, match="cannot be learned from no text"):
        train_bpe(texts, vocab_size=300)


def test_an_error_of_the_stream_comes_through() -> None:
    def stream() -> Iterator[str]:
        yield "a text"
        raise DataError("train.en:2 is not UTF-8")

    with pytest.raises(DataError, match=r"train\.en:2 is not UTF-8"):
        train_bpe(stream(), vocab_size=300)


def test_training_and_encoding_print_nothing_and_need_no_torch() -> None:
    program = (
        "import os, sys\n"
        "from transduce.text import train_bpe\n"
        "tokenizer = train_bpe(['a dog and a cat'] * 50, vocab_size=300)\n"
        "tokenizer.encode_batch(['a dog'] * 500)\n"
        "assert 'torch' not in sys.modules\n"
        "if os.fork():\n"
        "    os.wait()\n"
        "else:\n"
        "    tokenizer.encode_batch(['a dog'] * 500)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
