"""BLEU and chrF of raw text, computed by sacreBLEU, with signatures.

Both take detokenised text, so that scores of different systems are comparable: a custom tokenisation can change BLEU
by more than most model improvements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from transduce.errors import DataError

if TYPE_CHECKING:  # sacrebleu is imported when something is scored
    from sacrebleu import BLEU, CHRF

__all__ = [
    "Score", "chrf_score", "corpus_score", "looks_tokenised", "require_parallel", "sacrebleu_score",
    "sentence_chrf_scores",
]  # fmt: skip

STOP = re.compile(r"[.,](?=\s|$)")  # French puts a space before : ; ! ?
SPACED_STOP = re.compile(r"\s[.,](?=\s|$)")


@dataclass(frozen=True, slots=True)
class Score:
    """A score and how it was computed."""

    score: float  # percent
    signature: str  # sacreBLEU's: all settings and versions

    def __str__(self) -> str:
        return f"{self.score:.2f} ({self.signature})"


def sacrebleu_score(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Return BLEU of raw text with sacreBLEU's defaults: 13a tokenisation, cased.

    13a is meant for languages that put spaces between words.
    Raises DataError if the numbers of hypotheses and references differ or are 0.

    >>> print(sacrebleu_score(["Ein Hund schläft im Garten ."], ["Ein Hund schläft im Garten."]))
    100.00 (nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:...)
    """
    from sacrebleu import BLEU

    return corpus_score(BLEU(force=True), hypotheses, references)  # force: no warning about tokenised text


def chrf_score(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Return chrF2, the character n-gram F-score with n up to 6 and beta = 2.

    Raises DataError if the numbers of hypotheses and references differ or are 0.

    >>> print(chrf_score(["Ein Hund schläft."], ["Ein Hund schläft."]))
    100.00 (nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:...)
    """
    from sacrebleu import CHRF

    return corpus_score(CHRF(), hypotheses, references)


def sentence_chrf_scores(hypotheses: Sequence[str], reference: str) -> list[float]:
    """Return chrF2 of each hypothesis for one reference, percent, with sacreBLEU's settings for sentences.

    >>> sentence_chrf_scores(["Ein Hund schläft.", "Eine Katze."], "Ein Hund schläft.")[0]
    100.0
    """
    from sacrebleu import CHRF

    metric = CHRF()
    return [min(metric.sentence_score(hypothesis, [reference]).score, 100.0) for hypothesis in hypotheses]


def corpus_score(
    metric: BLEU | CHRF,
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    settings: Mapping[str, str] | None = None,
) -> Score:
    """Return the corpus-level score under ``metric``.

    ``settings`` are added to the signature: preprocessing that sacreBLEU does not know about.
    Raises DataError if the numbers of hypotheses and references differ or are 0.
    """
    require_parallel(hypotheses, references)
    score = metric.corpus_score(hypotheses, [references]).score
    signature = metric.get_signature()
    for key, value in (settings or {}).items():
        signature.update(key, value)
    return Score(score=min(score, 100.0), signature=str(signature))  # exp and log may round to 100.00000000000004


def require_parallel(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Raise DataError unless there is one reference per hypothesis, and at least one of each."""
    if len(hypotheses) != len(references):
        raise DataError(
            f"{len(hypotheses):,} hypotheses but {len(references):,} references; they must align line by line"
        )
    if not hypotheses:
        raise DataError("0 hypotheses and 0 references; a score needs at least one pair")


def looks_tokenised(lines: Iterable[str]) -> bool:
    """Return whether text looks tokenised: most lines with a full stop or comma have a space before it.

    Such text should be detokenised before scoring.

    >>> looks_tokenised(["Ein Hund schläft ."]), looks_tokenised(["Ein Hund schläft."])
    (True, False)
    """
    with_stop = [line for line in lines if STOP.search(line)]
    n_spaced = sum(SPACED_STOP.search(line) is not None for line in with_stop)
    return 2 * n_spaced > len(with_stop)
