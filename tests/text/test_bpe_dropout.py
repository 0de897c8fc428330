import re
from itertools import chain

import pytest

from transduce.errors import ConfigError
from transduce.text import BpeDropout, Tokenizer, bpe_dropout, train_bpe, train_wordpiece

TEXTS = ["the lowest tower", "the newest tower", "", "the widest newest lowest tower's 12 </s>", "日本 tower"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_bpe(TEXTS * 3, vocab_size=300)


def test_with_all_merges_dropped_it_is_single_bytes(tokenizer: Tokenizer) -> None:
    [[ids], [none]] = BpeDropout(tokenizer, p_drop=1, seed=1).sample(["the 日", ""], 1)
    assert tokenizer.pieces(ids) == ["▁", "t", "h", "e", "▁", "\\xe6", "\\x97", "\\xa5"]
    assert none == []


@pytest.mark.parametrize("masks", [False, True])
def test_characters_of_the_alphabet_are_never_split(masks: bool) -> None:
    tokenizer = train_bpe(["süße töne über 日本"] * 3, vocab_size=400, alphabet="characters", masks=masks)
    assert len(tokenizer.encode("süße 日本")) == 2
    [[ids]] = BpeDropout(tokenizer, p_drop=1, seed=1).sample(["süße 日本 ж"], 1)
    assert tokenizer.pieces(ids) == ["▁", "s", "ü", "ß", "e", "▁", "日", "本", "▁", "\\xd0", "\\xb6"]
    samples = BpeDropout(tokenizer, p_drop=0.3, seed=1).sample(["süße töne"], 20)
    assert len({tuple(ids) for ids in samples[0]}) > 5
    assert not any("\\x" in piece for ids in samples[0] for piece in tokenizer.pieces(ids))


def test_samples_differ_and_lose_nothing(tokenizer: Tokenizer) -> None:
    for text, samples in zip(TEXTS, BpeDropout(tokenizer, p_drop=0.3, seed=1).sample(TEXTS, 20), strict=True):
        assert len(samples) == 20
        assert tokenizer.decode_batch(samples) == [text] * 20
        assert len({tuple(ids) for ids in samples}) > 5 or not text


def test_samples_do_not_change(tokenizer: Tokenizer) -> None:
    """The same ids on every machine and Python version: resumed runs depend on them."""
    [samples] = BpeDropout(tokenizer, p_drop=0.5, seed=2020).sample(["the lowest tower"], 3)
    assert [" ".join(tokenizer.pieces(ids)) for ids in samples] == [
        "▁ t he ▁lowest ▁ t owe r",
        "▁ t h e ▁ l o w e st ▁ t o we r",
        "▁t he ▁ l o we st ▁t owe r",
    ]


def test_samples_depend_on_the_number_of_texts_so_far(tokenizer: Tokenizer) -> None:
    sampler = BpeDropout(tokenizer, p_drop=0.3, seed=7)
    assert sampler.sample(TEXTS * 4, 3) != sampler.sample(TEXTS * 4, 3)


def test_evicting_segmentations_does_not_matter(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = TEXTS * 4
    cached = BpeDropout(tokenizer, p_drop=0.3, seed=7).sample(texts, 3)
    monkeypatch.setattr(bpe_dropout, "MAX_CACHED", 0)
    sampler = BpeDropout(tokenizer, p_drop=0.3, seed=7)
    assert sampler.sample(texts, 3) == cached
    assert len(sampler._pools) <= len(tokenizer.words(texts[-1]))


def test_a_seed_changes_all(tokenizer: Tokenizer) -> None:
    text = " ".join(TEXTS)
    samples = [BpeDropout(tokenizer, p_drop=0.3, seed=seed).sample([text], 1) for seed in (-1, 0, 1, 2, 2**70)]
    assert all(samples.count(sample) == 1 for sample in samples)


def test_a_word_costs_a_pool_at_most(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    n_segmentations = 0
    segment = bpe_dropout._Merges.segment

    def counting(*args: object, **options: object) -> tuple[int, ...]:
        nonlocal n_segmentations
        n_segmentations += 1
        return segment(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(bpe_dropout._Merges, "segment", counting)
    sampler = BpeDropout(tokenizer, p_drop=0.3, seed=1)
    sampler.sample(["tower"], 2)
    assert n_segmentations <= 2
    sampler.sample(["tower tower"] * 100, 8)
    assert n_segmentations == bpe_dropout.POOL_SIZE


def test_more_dropout_gives_more_tokens(tokenizer: Tokenizer) -> None:
    n_tokens = []
    for p_drop in (0, 0.1, 0.3, 0.6, 0.9, 1):
        samples = chain.from_iterable(BpeDropout(tokenizer, p_drop=p_drop, seed=1).sample(TEXTS, 30))
        n_tokens.append(sum(map(len, samples)))
    assert n_tokens == sorted(set(n_tokens))


def test_a_word_of_thousands_of_letters_is_possible(tokenizer: Tokenizer) -> None:
    text = "towerlowest" * 400
    [[ids]] = BpeDropout(tokenizer, p_drop=0.1, seed=1).sample([text], 1)
    assert tokenizer.decode(ids) == text
    assert len(ids) < len(text) / 2  # a merge dropped in one step can be applied in the next


@pytest.mark.parametrize("p_drop", [-0.1, 1.01, float("nan")])
def test_an_invalid_probability_is_refused(tokenizer: Tokenizer, p_drop: float) -> None:
    with pytest.raises(ConfigError, match=rf"\bp_drop\b.*\b0\b.*\b1\b.*{re.escape(str(p_drop))}"):
        BpeDropout(tokenizer, p_drop=p_drop, seed=1)


def test_a_tokenizer_without_merges_is_refused() -> None:
    pieces = train_wordpiece(TEXTS, vocab_size=600)
    assert pieces.merges is None
    with pytest.raises(ConfigError, match=r"\btrain_bpe\b"):
        BpeDropout(pieces, p_drop=0.1, seed=1)


def test_bytes_alone_have_nothing_to_drop() -> None:
    tokenizer = train_bpe(TEXTS, vocab_size=260)
    assert tokenizer.merges == []
    assert BpeDropout(tokenizer, p_drop=0.5, seed=1).sample(TEXTS, 1) == [[tokenizer.encode(text)] for text in TEXTS]
