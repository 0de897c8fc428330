"""Our scores against sacreBLEU's own objects and against BLEU written anew from its definition."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest
from sacrebleu import BLEU, CHRF

from transduce.metrics import chrf_score, multi30k_bleu, paired_bootstrap, paper_bleu, sacrebleu_score

REFERENCES = [
    "Der CO2-Ausstoß sank 2013 um 3,5 Prozent, sagte Dr. Müller.",
    "„Das war's“, rief sie, „und nun?“",
    "Zwei Männer stehen vor dem Rathaus & warten (seit gestern) auf den Bus-Fahrer.",
]
HYPOTHESES = [
    "Der CO2-Verbrauch sank 2013 um 3,5 Prozent, sagt Dr. Müller.",
    '"Das war\'s", rief sie, "und jetzt?"',
    "zwei Männer stehen vor dem Rathaus & warten auf den Bus-Fahrer.",
]
# The same by hand: quotation marks made plain, split as the Moses tokenizer does, hyphens inside words as tokens.
PAPER_REFERENCES = [
    "Der CO2 ##AT##-##AT## Ausstoß sank 2013 um 3,5 Prozent , sagte Dr. Müller .",
    "&quot; Das war &apos; s &quot; , rief sie , &quot; und nun ? &quot;",
    "Zwei Männer stehen vor dem Rathaus &amp; warten ( seit gestern ) auf den Bus ##AT##-##AT## Fahrer .",
]
PAPER_HYPOTHESES = [
    "Der CO2 ##AT##-##AT## Verbrauch sank 2013 um 3,5 Prozent , sagt Dr. Müller .",
    "&quot; Das war &apos; s &quot; , rief sie , &quot; und jetzt ? &quot;",
    "zwei Männer stehen vor dem Rathaus &amp; warten auf den Bus ##AT##-##AT## Fahrer .",
]


def n_grams(tokens: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[i:] for i in range(n)), strict=False))


def bleu_by_definition(hypotheses: list[str], references: list[str]) -> float:
    """BP times the geometric mean of the clipped precisions, from token strings, without smoothing, in percent."""
    pairs = [(hyp.split(), ref.split()) for hyp, ref in zip(hypotheses, references, strict=True)]
    log_precision = 0.0
    for n in range(1, 5):
        matches = sum((n_grams(hyp, n) & n_grams(ref, n)).total() for hyp, ref in pairs)
        if matches == 0:
            return 0.0
        log_precision += math.log(matches / sum(max(len(hyp) - n + 1, 0) for hyp, _ in pairs)) / 4
    hyp_length, ref_length = sum(len(hyp) for hyp, _ in pairs), sum(len(ref) for _, ref in pairs)
    return 100 * math.exp(min(0.0, 1 - ref_length / hyp_length) + log_precision)


def test_sacrebleu_is_sacrebleus_with_its_signature():
    metric = BLEU()
    expected = metric.corpus_score(HYPOTHESES, [REFERENCES]).score
    score = sacrebleu_score(HYPOTHESES, REFERENCES)
    assert (score.score, score.signature) == (expected, str(metric.get_signature()))


def test_chrf_is_sacrebleus_with_its_signature():
    metric = CHRF()
    expected = metric.corpus_score(HYPOTHESES, [REFERENCES]).score
    score = chrf_score(HYPOTHESES, REFERENCES)
    assert (score.score, score.signature) == (expected, str(metric.get_signature()))


def test_paper_bleu_is_bleu_of_hand_made_tokens():
    expected = bleu_by_definition(PAPER_HYPOTHESES, PAPER_REFERENCES)
    assert 50 < expected < 90
    assert paper_bleu(HYPOTHESES, REFERENCES, language="de").score == pytest.approx(expected, rel=1e-12)


def test_multi30k_bleu_is_bleu_of_hand_made_tokens():
    hypotheses = ["Ein Mann mit Hut – er lacht.", "Zwei Hunde („Rex“ und „Max“) laufen schnell."]
    references = ["ein Mann mit Hut - er lächelt.", 'Drei Hunde ("Rex" und "Max") laufen.']
    expected = bleu_by_definition(
        ["ein mann mit hut - er lacht .", "zwei hunde ( &quot; rex &quot; und &quot; max &quot; ) laufen schnell ."],
        ["ein mann mit hut - er lächelt .", "drei hunde ( &quot; rex &quot; und &quot; max &quot; ) laufen ."],
    )
    assert 50 < expected < 90
    assert multi30k_bleu(hypotheses, references, language="de").score == pytest.approx(expected, rel=1e-12)


def test_precisions_are_clipped():
    # 7 of "the", clipped to the 4 of the reference; 6 bigrams clipped to 3, 5 trigrams to 2, 4 of order 4 to 1
    expected = 100 * (4 / 7 * 3 / 6 * 2 / 5 * 1 / 4) ** 0.25
    for score in (
        sacrebleu_score(["the " * 7], ["the " * 4]),
        paper_bleu(["the " * 7], ["the " * 4], language="en"),
        multi30k_bleu(["the " * 7], ["the " * 4], language="en"),
    ):
        assert score.score == pytest.approx(expected)


def test_short_output_pays_the_brevity_penalty():
    # everything right, 5 tokens of 8
    expected = 100 * math.exp(1 - 8 / 5)
    assert sacrebleu_score(["a b c d e"], ["a b c d e f g h"]).score == pytest.approx(expected)
    assert paper_bleu(["a b c d e"], ["a b c d e f g h"], language="en").score == pytest.approx(expected)


def test_the_bootstrap_is_that_of_drawn_texts_scored_anew():
    rng = random.Random(1)
    references = [" ".join(rng.choices("abcdefgh", k=10)) for _ in range(30)]
    a = [line.replace("a", "x", 1) for line in references]
    b = [line.replace("b", "x", 1) for line in references]
    drawn = np.random.default_rng(5).integers(30, size=(60, 30))

    def bleu_on(rows: list[int], hypotheses: list[str]) -> float:
        return BLEU().corpus_score([hypotheses[i] for i in rows], [[references[i] for i in rows]]).score

    differences = np.array([bleu_on(rows, b) - bleu_on(rows, a) for rows in drawn.tolist()])
    observed = bleu_on(list(range(30)), b) - bleu_on(list(range(30)), a)
    n_as_large = sum(abs(difference - differences.mean()) >= abs(observed) for difference in differences)

    result = paired_bootstrap(a, b, references, n_resamples=60, seed=5)
    assert 0 < n_as_large < 60
    assert result.difference == pytest.approx(observed)
    assert result.interval == pytest.approx((np.percentile(differences, 2.5), np.percentile(differences, 97.5)))
    assert result.p_value == pytest.approx((n_as_large + 1) / 61)
