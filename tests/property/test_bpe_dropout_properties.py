from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from transduce.text import SPECIAL_TOKENS, BpeDropout, Tokenizer, train_bpe

TRICKY_TEXT = st.lists(
    st.sampled_from(
        [*SPECIAL_TOKENS, " ", "\u00a0", "\u2028", "e\u0301", "Ġ", "▁", "\U0001f600", "low", "west", "'s", "12"]
    )
).map("".join)
TEXT = st.text() | TRICKY_TEXT
P_DROP = st.floats(0, 1)
SEED = st.integers()


@cache
def tokenizer() -> Tokenizer:
    return train_bpe(["low lower newest widest", "the cat's 12 hats </s>", "Ġ Ġ ▁ ▁"] * 2, vocab_size=320)


@given(TEXT, P_DROP, SEED)
def test_nothing_is_lost(text: str, p_drop: float, seed: int) -> None:
    [samples] = BpeDropout(tokenizer(), p_drop=p_drop, seed=seed).sample([text], 3)
    assert tokenizer().decode_batch(samples) == [text] * 3
    assert all(len(SPECIAL_TOKENS) <= id < tokenizer().size for ids in samples for id in ids)


@given(TEXT, SEED)
def test_the_limits_are_the_plain_encoding_and_single_bytes(text: str, seed: int) -> None:
    [[plain]] = BpeDropout(tokenizer(), p_drop=0, seed=seed).sample([text], 1)
    assert plain == tokenizer().encode(text)
    [[ids]] = BpeDropout(tokenizer(), p_drop=1, seed=seed).sample([text], 1)
    assert len(ids) == (len(f" {text}".encode()) if text else 0)


@given(TEXT, P_DROP, SEED)
def test_no_sample_is_shorter_than_words_or_longer_than_bytes(text: str, p_drop: float, seed: int) -> None:
    words = tokenizer().words(text)
    [[ids]] = BpeDropout(tokenizer(), p_drop=p_drop, seed=seed).sample([text], 1)
    assert len(words) <= len(ids) <= sum(map(len, words))


@given(st.lists(TEXT, max_size=6), st.integers(0, 6), P_DROP, SEED)
def test_texts_may_come_in_any_number_of_calls(texts: list[str], cut: int, p_drop: float, seed: int) -> None:
    at_once = BpeDropout(tokenizer(), p_drop=p_drop, seed=seed).sample(texts, 2)
    sampler = BpeDropout(tokenizer(), p_drop=p_drop, seed=seed)
    assert sampler.sample(texts[:cut], 2) + sampler.sample(texts[cut:], 2) == at_once
