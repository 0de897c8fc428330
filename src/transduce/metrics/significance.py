"""Paired bootstrap resampling: a significance test for the BLEU difference of two systems.

Test sets of the same size are drawn with replacement from the given one, and both systems are scored on each. BLEU
depends on a set only through sums over its sentences (lengths, n-grams, matches), so a resample costs one sum, and no
text is read twice.

sacreBLEU has this test too, but takes its seed from the environment, gives no interval for the difference, counts only
one tail, and calls two identical systems different.

Shapes: R resamples, N rows (sentences), X sums that determine BLEU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.composition import composed
from transduce.metrics.bleu import Score, sacrebleu_score
from transduce.metrics.bleu_tokenizers import bleu_tokenizer, bleu_with

__all__ = ["PairedBootstrap", "paired_bootstrap"]


@dataclass(frozen=True, slots=True)
class PairedBootstrap:
    """System B compared with system A on the same test set, in sacreBLEU points."""

    a: Score
    b: Score
    difference: float  # B minus A
    interval: tuple[float, float]  # 95% confidence interval of the difference
    p_value: float  # two-sided: probability of a difference this large between equally good systems
    n_resamples: int
    seed: int

    def as_json(self) -> dict[str, Any]:
        """Return ``{"a": {"score": ..., "signature": ...}, "b": ..., "difference": ..., "interval": ..., ...}``."""
        return asdict(self)


def paired_bootstrap(
    hypotheses_a: Sequence[str],
    hypotheses_b: Sequence[str],
    references: Sequence[str],
    *further_references: Sequence[str],
    n_resamples: int = 1000,
    seed: int,
    language: str | None = None,
    tokenizer: str | None = None,
) -> PairedBootstrap:
    """Compare two systems by sacreBLEU on ``n_resamples`` resampled test sets.

    References and tokenizer: see ``sacrebleu_score``.
    Raises DataError if the numbers of lines differ or are 0, ValueError if ``n_resamples`` is below 1.

    >>> references = ["Ein Hund schläft im Garten.", "Zwei Kinder spielen Ball."]
    >>> paired_bootstrap(references, references, references, seed=1).p_value
    1.0
    """
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be at least 1, got {n_resamples}")
    tokenizer, systems = tokenizer or bleu_tokenizer(language, references), (hypotheses_a, hypotheses_b)
    all_references = references, *further_references
    a, b = (sacrebleu_score(hypotheses, *all_references, tokenizer=tokenizer) for hypotheses in systems)
    difference = b.score - a.score
    sums_a_NX, sums_b_NX = (_sentence_sums(tokenizer, hypotheses, *all_references) for hypotheses in systems)
    differences_R = _resampled_differences(sums_a_NX, sums_b_NX, n_resamples=n_resamples, seed=seed)
    # Under the null hypothesis the differences have the same distribution, but with mean 0.
    n_as_large = int(np.count_nonzero(np.abs(differences_R - differences_R.mean()) >= abs(difference)))
    low, high = np.percentile(differences_R, [2.5, 97.5])
    return PairedBootstrap(
        a=a,
        b=b,
        difference=difference,
        interval=(float(low), float(high)),
        p_value=(n_as_large + 1) / (n_resamples + 1),  # the given test set is one more resample: p is never 0
        n_resamples=n_resamples,
        seed=seed,
    )


def _sentence_sums(tokenizer: str, hypotheses: Sequence[str], *references: Sequence[str]) -> NDArray[np.int64]:
    """Return each sentence's two lengths, then its matches and n-grams of orders 1 to 4, ``(N, X)`` with X = 10."""
    metric = bleu_with(tokenizer, effective_order=True)  # only to avoid a warning for single sentences
    sentences = zip(*(map(composed, lines) for lines in (hypotheses, *references)), strict=True)
    scores = [metric.sentence_score(hypothesis, of_line) for hypothesis, *of_line in sentences]
    return np.array([[score.sys_len, score.ref_len, *score.counts, *score.totals] for score in scores], dtype=np.int64)


def _resampled_differences(
    sums_a_NX: NDArray[np.int64], sums_b_NX: NDArray[np.int64], *, n_resamples: int, seed: int
) -> NDArray[np.float64]:
    """Return BLEU of B minus BLEU of A on each resample, ``(R,)``; both systems are scored on the same resamples."""
    rng = np.random.default_rng(seed)
    n_sentences = len(sums_a_NX)
    differences_R = np.empty(n_resamples)
    for i in range(n_resamples):
        n_draws_N = np.bincount(rng.integers(n_sentences, size=n_sentences), minlength=n_sentences)
        differences_R[i] = _bleu_of_sums(n_draws_N @ sums_b_NX) - _bleu_of_sums(n_draws_N @ sums_a_NX)
    return differences_R


def _bleu_of_sums(sums_X: NDArray[np.int64]) -> float:
    from sacrebleu import BLEU

    hyp_length, ref_length, *n_grams = sums_X.tolist()
    return BLEU.compute_bleu(n_grams[:4], n_grams[4:], hyp_length, ref_length, smooth_method="exp").score
