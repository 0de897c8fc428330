"""What a row of Table 3 changes, beside what another seed of base changes."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import mean, stdev

from transduce_paper.intervals import student_t
from transduce_paper.run_records import RunRecord
from transduce_paper.table3_rows import ROWS

__all__ = [
    "NEGLIGIBLE_BLEU", "NEGLIGIBLE_PPL", "bleu_of", "effect_on_bleu", "effect_on_perplexity", "margin_of",
    "perplexities_of", "perplexity_of", "verdict",
]  # fmt: skip

# Differences in the paper up to these count as no effect: it has one run per row and calls E "nearly identical".
NEGLIGIBLE_PPL, NEGLIGIBLE_BLEU = 0.02, 0.1


def bleu_of(record: RunRecord, metric: str = "sacrebleu") -> float:
    """Return the BLEU of a run on its dev text."""
    return float(record.dev_scores[metric]["score"])


def perplexity_of(record: RunRecord) -> float:
    """Return the perplexity of a run on its dev text."""
    return record.dev_perplexity


def perplexities_of(records: Sequence[RunRecord]) -> list[float]:
    """Return the perplexity of each run."""
    return list(map(perplexity_of, records))


def effect_on_perplexity(name: str, record: RunRecord, base: Sequence[float]) -> str:
    """Compare the change of the perplexity with the paper's."""
    printed = ROWS[name].perplexity - ROWS["base"].perplexity
    return verdict(printed, record.dev_perplexity, base, negligible=NEGLIGIBLE_PPL)


def effect_on_bleu(name: str, record: RunRecord, base: Sequence[float]) -> str:
    """Compare the change of the BLEU with the paper's."""
    return verdict(ROWS[name].bleu - ROWS["base"].bleu, bleu_of(record), base, negligible=NEGLIGIBLE_BLEU)


def verdict(printed_effect: float, ours: float, base: Sequence[float], *, negligible: float = 0.0) -> str:
    """Compare a difference from the base runs with the paper's: is it beyond seed noise, and in the same direction?

    >>> verdict(-0.5, 20.0, [25.0, 25.2, 24.9, 25.1]), verdict(-0.5, 25.1, [25.0, 25.2, 24.9, 25.1])
    ('as in the paper', 'paper only')
    """
    effect = ours - mean(base)
    is_effect, is_printed = abs(effect) > margin_of(base), abs(printed_effect) > negligible + 1e-9
    if not is_effect:
        return "paper only" if is_printed else "none in either"
    if not is_printed:
        return "ours only"
    return "as in the paper" if effect * printed_effect > 0 else "opposite"


def margin_of(base: Sequence[float]) -> float:
    """Return the half width of the 95 % prediction interval of one more run around the mean of these."""
    return student_t(len(base) - 1) * stdev(base) * sqrt(1 + 1 / len(base))
