"""BPE-dropout against all of its outcomes: in every step, every set of merges that can be left out."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise, product

import pytest

from transduce.text import BpeDropout, Tokenizer, train_bpe

Pieces = tuple[str, ...]
N_SEEDS = 2000
POOL_SIZE = 64


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    texts = ["banana bandana ananas anna nab lower lower newest newest lowest"] * 3
    return train_bpe(texts, vocab_size=285)


def merges_of(tokenizer: Tokenizer) -> list[tuple[str, str]]:
    assert tokenizer.merges
    return [(left.replace("Ġ", "▁"), right.replace("Ġ", "▁")) for left, right in tokenizer.merges]


def all_outcomes(word: Pieces, merges: list[tuple[str, str]], p_drop: float) -> Mapping[Pieces, float]:
    """The probability of each segmentation, by a sum over all sets of places that may be left out."""
    positions = [place for place, pair in enumerate(pairwise(word)) if pair in merges]
    probabilities: defaultdict[Pieces, float] = defaultdict(float)
    for is_left_out in product([False, True], repeat=len(positions)):
        probability = math.prod(p_drop if out else 1 - p_drop for out in is_left_out)
        remaining = [place for place, out in zip(positions, is_left_out, strict=True) if not out]
        if not remaining:
            probabilities[word] += probability
            continue
        best = min(remaining, key=lambda place: (merges.index((word[place], word[place + 1])), place))
        merged = (*word[:best], word[best] + word[best + 1], *word[best + 2 :])
        for result, share in all_outcomes(merged, merges, p_drop).items():
            probabilities[result] += probability * share
    return probabilities


def assert_drawn_from(expected: Mapping[Pieces, float], observed: Iterable[Pieces]) -> None:
    """Chi-squared, rare outcomes put together, is less than five standard deviations above its mean."""
    counts = Counter(observed)
    assert counts.keys() <= expected.keys()
    n_observed = counts.total()
    cells = [(counts[outcome], n_observed * share) for outcome, share in expected.items()]
    common = [(count, mean) for count, mean in cells if mean >= 5]
    rare = [(count, mean) for count, mean in cells if mean < 5]
    if rare:
        common.append((sum(count for count, _ in rare), sum(mean for _, mean in rare)))
    assert len(common) > 2
    chi_squared = sum((count - mean) ** 2 / mean for count, mean in common)
    freedom = len(common) - 1
    assert chi_squared < freedom + 5 * math.sqrt(2 * freedom)


def test_all_outcomes_of_two_letters_worked_out_by_hand() -> None:
    assert all_outcomes(("a", "a", "a"), [("a", "a")], 0.25) == {
        ("aa", "a"): 0.75,  # the left place stays, whatever becomes of the right one
        ("a", "aa"): 0.25 * 0.75,
        ("a", "a", "a"): 0.25 * 0.25,
    }


@pytest.mark.parametrize(("word", "p_drop"), [("banana", 0.1), ("lowest", 0.5), ("banana", 0.8)])
def test_first_and_last_draws_of_many_seeds(tokenizer: Tokenizer, word: str, p_drop: float) -> None:
    expected = all_outcomes(("▁", *word), merges_of(tokenizer), p_drop)
    assert sum(expected.values()) == pytest.approx(1)
    firsts, lasts = [], []
    for seed in range(N_SEEDS):
        [samples] = BpeDropout(tokenizer, p_drop=p_drop, seed=seed).sample([word], 5)
        firsts.append(tuple(tokenizer.pieces(samples[0])))
        lasts.append(tuple(tokenizer.pieces(samples[-1])))
    assert_drawn_from(expected, firsts)
    assert_drawn_from(expected, lasts)


def test_two_draws_of_a_word_are_independent_but_for_the_same_place_in_the_pool(tokenizer: Tokenizer) -> None:
    one = all_outcomes(("▁", *"newest"), merges_of(tokenizer), 0.4)
    expected = {
        (*first, "|", *second): share * ((1 - 1 / POOL_SIZE) * other + (first == second) / POOL_SIZE)
        for first, share in one.items()
        for second, other in one.items()
    }
    pairs = []
    for seed in range(N_SEEDS):
        [[first], [second]] = BpeDropout(tokenizer, p_drop=0.4, seed=seed).sample(["newest"] * 2, 1)
        pairs.append((*tokenizer.pieces(first), "|", *tokenizer.pieces(second)))
    assert_drawn_from(expected, pairs)


def test_words_of_one_sampler_are_drawn_independently(tokenizer: Tokenizer) -> None:
    """Words that begin alike and end with letters that nothing merges with: their beginnings have one distribution."""
    endings = ["".join(letters) for letters in product("qxzjkv", repeat=4)]
    [[ids]] = BpeDropout(tokenizer, p_drop=0.3, seed=1).sample([" ".join(f"lowest{end}" for end in endings)], 1)
    words = "\n".join(tokenizer.pieces(ids)).replace("\n▁", "\n\n▁").split("\n\n")
    beginnings = [tuple(word.split("\n")[:-4]) for word in words]
    assert len(beginnings) == len(endings)
    assert_drawn_from(all_outcomes(("▁", *"lowest"), merges_of(tokenizer), 0.3), beginnings)


def test_a_full_pool_is_picked_from_evenly(tokenizer: Tokenizer) -> None:
    """Each place of the pool is picked about 200 times; places with the same segmentation add up."""
    [samples] = BpeDropout(tokenizer, p_drop=0.5, seed=3).sample(["bandana"], 64 * 200)
    counts = Counter(tuple(ids) for ids in samples)
    assert len(counts) <= POOL_SIZE
    for count in counts.values():
        multiple = max(1, round(count / 200))
        assert abs(count - 200 * multiple) < 5 * math.sqrt(200 * multiple)
