"""Vocabularies of language models: characters, bytes, and tokens that no text contains."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from said import naming
from transduce.config import DataConfig
from transduce.errors import ConfigError, DataError
from transduce.tasks.tokenizers import tokenizer_trainer
from transduce.text import (
    LANGUAGE_MODEL_TOKENS,
    MASK_TOKEN,
    SENTINELS,
    Tokenizer,
    byte_tokenizer,
    train_bpe,
    train_characters,
    train_wordpiece,
)

TEXT = ["a <mask> here", "<extra_id_0> and <extra_id_17>", "süß"] * 20
TRAINED = {
    "bpe": train_bpe(TEXT, vocab_size=420, extra_tokens=LANGUAGE_MODEL_TOKENS),
    "wordpiece": train_wordpiece(TEXT, vocab_size=700, extra_tokens=LANGUAGE_MODEL_TOKENS),
    "characters": train_characters(TEXT, vocab_size=500, extra_tokens=LANGUAGE_MODEL_TOKENS),
    "bytes": byte_tokenizer(extra_tokens=LANGUAGE_MODEL_TOKENS),
}
every_kind = pytest.mark.parametrize("tokenizer", TRAINED.values(), ids=TRAINED)


@every_kind
def test_extra_tokens_are_the_last_ids(tokenizer: Tokenizer) -> None:
    ids = [tokenizer.vocabulary[token] for token in (MASK_TOKEN, *SENTINELS)]
    assert ids == list(range(tokenizer.size - 101, tokenizer.size))


@every_kind
@given(st.lists(st.sampled_from([*LANGUAGE_MODEL_TOKENS[:3], " ", "a", "ß", "<", ">", "mask", "extra_id_0"])))
def test_no_text_is_encoded_to_them(tokenizer: Tokenizer, parts: list[str]) -> None:
    text = "".join(parts)
    ids = tokenizer.encode(text)
    assert max(ids, default=0) < tokenizer.size - 101
    assert tokenizer.decode(ids) == text


def test_characters_are_tokens_and_others_are_bytes() -> None:
    tokenizer = train_characters(["süß süß", "für"], vocab_size=400)
    assert tokenizer.pieces(tokenizer.encode("süß")) == ["▁", "s", "ü", "ß"]
    assert tokenizer.size == 4 + 256 + 2
    assert len(tokenizer.encode("é")) == 3
    rare = train_characters(["süß süß", "für é"], vocab_size=400, min_count=2)
    assert rare.size == 4 + 256 + 2
    with pytest.raises(ConfigError, match=naming("vocab_size", 262, 261)):
        train_characters(["süß"], vocab_size=261)
    with pytest.raises(DataError, match="no text"):
        train_characters([""], vocab_size=400)


def test_bytes_are_tokens() -> None:
    tokenizer = byte_tokenizer()
    assert tokenizer.size == 260
    assert len(tokenizer.encode("ß")) == 3  # a space before it, and two bytes


def test_the_configuration_chooses_them() -> None:
    for kind, tokenizer in (("characters", TRAINED["characters"]), ("bytes", TRAINED["bytes"])):
        config = DataConfig(tokenizer=kind, vocab_size=500)  # type: ignore[arg-type]
        trained = tokenizer_trainer(config, extra_tokens=LANGUAGE_MODEL_TOKENS)(TEXT)
        assert trained.fingerprint == tokenizer.fingerprint
