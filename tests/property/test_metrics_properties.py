from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.metrics import TOKENISED_BLEUS, paired_bootstrap, perplexity, score_translations

# Words that meet often enough to match, and what tokenizers treat specially.
WORDS = st.sampled_from(
    ["ein", "Hund", "schläft", "im", "CO2-Ausstoß", "„ja“", "z.B.", "3,5", "&", "...", "’s", ".", ","]
)
LINES = st.one_of(st.lists(WORDS, max_size=12).map(" ".join), st.text(max_size=20))
PAIRS = st.lists(st.tuples(LINES, LINES), min_size=1, max_size=6)
few = settings(max_examples=12)  # each computes four scores, some of them twice
SCORE_NAMES = ("sacrebleu", "chrf", "paper_bleu", "multi30k_bleu")


def scores_of(pairs: list[tuple[str, str]]) -> dict[str, float]:
    hypotheses, references = [hyp for hyp, _ in pairs], [ref for _, ref in pairs]
    scores = score_translations(hypotheses, references, language="de", also=TOKENISED_BLEUS).as_json()
    return {name: scores[name]["score"] for name in SCORE_NAMES}


@few
@given(PAIRS)
def test_scores_are_percentages_and_case_counts_in_all_but_multi30ks(pairs):
    scores = scores_of(pairs)
    assert all(0.0 <= score <= 100.0 for score in scores.values())
    lowered = scores_of([(hyp, ref.lower()) for hyp, ref in pairs if hyp.isascii()] or [("a", "a")])
    plain = scores_of([(hyp, ref) for hyp, ref in pairs if hyp.isascii()] or [("a", "a")])
    assert lowered["multi30k_bleu"] == pytest.approx(plain["multi30k_bleu"])


@few
@given(PAIRS, st.randoms(use_true_random=False))
def test_the_order_of_the_corpus_does_not_matter(pairs, rng: random.Random):
    shuffled = rng.sample(pairs, len(pairs))
    assert scores_of(shuffled) == pytest.approx(scores_of(pairs))


@few
@given(PAIRS)
def test_a_corpus_twice_over_scores_the_same_bleu_unless_smoothed(pairs):
    once, twice = scores_of(pairs), scores_of(pairs + pairs)
    assert twice["paper_bleu"] == pytest.approx(once["paper_bleu"])
    assert twice["multi30k_bleu"] == pytest.approx(once["multi30k_bleu"])


@few
@given(st.lists(st.lists(WORDS, min_size=4, max_size=12).map(" ".join), min_size=1, max_size=6))
def test_a_perfect_translation_scores_100(lines):
    assert scores_of([(line, line) for line in lines]) == pytest.approx(dict.fromkeys(SCORE_NAMES, 100.0))


@few
@given(PAIRS, st.integers(0, 2**32))
def test_a_bootstrap_p_value_is_a_probability_and_the_interval_is_ordered(pairs, seed):
    hypotheses, references = [hyp for hyp, _ in pairs], [ref for _, ref in pairs]
    result = paired_bootstrap(hypotheses, references, references, n_resamples=10, seed=seed)
    assert 0 < result.p_value <= 1
    low, high = result.interval
    assert -100 - 1e-9 <= low <= high <= 100 + 1e-9
    mirrored = paired_bootstrap(references, hypotheses, references, n_resamples=10, seed=seed)
    assert (mirrored.a, mirrored.b, mirrored.p_value) == (result.b, result.a, result.p_value)
    assert (mirrored.difference, *mirrored.interval) == pytest.approx((-result.difference, -high, -low))


@given(st.floats(0, 1e6), st.integers(1, 10**6))
def test_perplexity_is_at_least_1(nats, n_tokens):
    assert perplexity(nats, n_tokens) >= 1
