"""What a row of Table 3 changes, beside what another seed changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean

from transduce_paper.intervals import NEARLY_IDENTICAL, Interval, interval_of_difference
from transduce_paper.run_records import RunRecord
from transduce_paper.table3.longer_runs import Rows
from transduce_paper.table3.rows import ROWS

__all__ = [
    "LEARNED", "NEGLIGIBLE_BLEU", "NEGLIGIBLE_PPL", "NOT_LEARNED", "bleu_of", "change_between", "change_of",
    "effect_on_bleu", "effect_on_perplexity", "has_learned", "is_as_in_the_paper", "is_equal", "mean_of", "minutes_of",
    "perplexity_of", "verdict",
]  # fmt: skip

# Differences in the paper up to these count as no effect: it has one run per row and calls E "nearly identical".
NEGLIGIBLE_PPL, NEGLIGIBLE_BLEU = 0.02, 0.1
LEARNED = 0.5  # of base's BLEU: a model below it has not learned to translate, however long it was trained
NOT_LEARNED = "not learned"


def bleu_of(record: RunRecord, metric: str = "sacrebleu") -> float:
    """Return the BLEU of a run on its dev text."""
    return float(record.dev_scores[metric]["score"])


def perplexity_of(record: RunRecord) -> float:
    """Return the perplexity of a run on its dev text."""
    return record.dev_perplexity


def minutes_of(record: RunRecord) -> float:
    """Return the minutes of a run from start to end, its validations included."""
    return record.minutes


def mean_of(score: Callable[[RunRecord], float], runs: Sequence[RunRecord]) -> float:
    """Return the mean score of the runs of a row."""
    return mean(map(score, runs))


def change_of(name: str, rows: Rows, score: Callable[[RunRecord], float]) -> Interval:
    """Return how much a row changes a score of base, with the interval of seeds pooled over all rows that have some."""
    return change_between(name, "base", rows, score)


def change_between(name: str, other: str, rows: Rows, score: Callable[[RunRecord], float]) -> Interval:
    """Return how much the score of a row is above that of another, with the same interval."""
    scores = {each: list(map(score, runs)) for each, runs in rows.items()}
    return interval_of_difference(scores[name], scores[other], scores.values())


def has_learned(name: str, rows: Rows) -> bool:
    """Whether a row has learned to translate; if not, it tells how it was trained, and nothing of what it changes."""
    return mean_of(bleu_of, rows[name]) >= LEARNED * mean_of(bleu_of, rows["base"])


def effect_on_perplexity(name: str, rows: Rows) -> str:
    """Compare the change of the perplexity with the paper's."""
    if not has_learned(name, rows):
        return NOT_LEARNED
    printed = ROWS[name].perplexity - ROWS["base"].perplexity
    return verdict(printed, change_of(name, rows, perplexity_of), negligible=NEGLIGIBLE_PPL)


def effect_on_bleu(name: str, rows: Rows) -> str:
    """Compare the change of the BLEU with the paper's."""
    if not has_learned(name, rows):
        return NOT_LEARNED
    return verdict(ROWS[name].bleu - ROWS["base"].bleu, change_of(name, rows, bleu_of), negligible=NEGLIGIBLE_BLEU)


def is_equal(name: str, rows: Rows, score: Callable[[RunRecord], float]) -> bool:
    """Whether a row's score is that of base: the whole interval of the difference is within 2 % of base's."""
    bound = NEARLY_IDENTICAL * mean_of(score, rows["base"])
    return change_of(name, rows, score).is_within(bound) is True


def is_as_in_the_paper(name: str, rows: Rows) -> bool:
    """Whether perplexity and BLEU both change as in the paper; where it has no effect, they have to be equal."""
    return all(
        effect == "as in the paper" or (effect == "none in either" and is_equal(name, rows, score))
        for effect, score in (
            (effect_on_perplexity(name, rows), perplexity_of), (effect_on_bleu(name, rows), bleu_of),
        )
    )  # fmt: skip


def verdict(printed: float, ours: Interval, *, negligible: float = 0.0) -> str:
    """Compare a change with the paper's: is it beyond seed noise, and in the same direction?

    >>> verdict(-0.5, Interval(-5.0, 0.3)), verdict(-0.5, Interval(-0.2, 0.3))
    ('as in the paper', 'paper only')
    """
    is_printed = abs(printed) > negligible + 1e-9
    if ours.is_above_zero is None:
        return "paper only" if is_printed else "none in either"
    if not is_printed:
        return "ours only"
    return "as in the paper" if ours.difference * printed > 0 else "opposite"
