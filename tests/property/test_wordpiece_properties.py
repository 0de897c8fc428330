from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from transduce.text import SPECIAL_SYMBOLS, Tokenizer, normalise, train_wordpiece

TRICKY_TEXT = st.lists(
    st.sampled_from(
        [
            *SPECIAL_SYMBOLS,
            " ",
            "\u00a0",
            "\u2028",
            "Ġ",
            "▁",
            "##",
            "…",
            "…e",
            "\U0001f600",
            "ሰላም",
            "low" * 30,
            "'s",
            "12",
        ]
    )
).map("".join)


@cache
def tokenizer() -> Tokenizer:
    return train_wordpiece(["low lower newest widest", "the cat's 12 hats </s>", "Ġ Ġ ▁ ▁ … …"] * 2, vocab_size=600)


@given(st.text() | TRICKY_TEXT)
def test_nothing_of_a_text_is_lost(raw: str) -> None:
    for text in (raw, normalise(raw)):
        ids = tokenizer().encode(text)
        assert tokenizer().decode(ids) == text
        assert all(len(SPECIAL_SYMBOLS) <= id < tokenizer().size for id in ids)


@given(st.text(min_size=1, max_size=3), st.integers(1, 5_000))
def test_long_words_lose_nothing(part: str, n_times: int) -> None:
    text = normalise(part * n_times)
    assert tokenizer().decode(tokenizer().encode(text)) == text


@given(st.lists(TRICKY_TEXT, max_size=5))
def test_a_batch_is_encoded_like_its_texts(texts: list[str]) -> None:
    rows = tokenizer().encode_batch(texts)
    assert rows == [tokenizer().encode(text) for text in texts]
    assert tokenizer().decode_batch(rows) == texts


@given(st.text(st.characters(codec="utf-8", exclude_characters="\\▁")).map(normalise))
def test_pieces_spell_the_text(text: str) -> None:
    spelled = "".join(tokenizer().pieces(tokenizer().encode(text)))
    as_bytes = spelled.replace("▁", " ").encode("utf-8").decode("unicode_escape").encode("latin-1")
    assert as_bytes.decode("utf-8") == (f" {text}" if text else "")
