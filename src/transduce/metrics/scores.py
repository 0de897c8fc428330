"""All scores of a set of translations at once: what ``transduce score`` and ``evaluate`` print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from transduce.metrics.bleu import Score, chrf_score, require_parallel, sacrebleu_score
from transduce.metrics.tokenised_bleu import multi30k_bleu, paper_bleu

__all__ = ["TranslationScores", "score_translations"]


@dataclass(frozen=True, slots=True)
class TranslationScores:
    """The scores of one set of translations. The headline is sacreBLEU; the tokenised ones stand beside it."""

    sacrebleu: Score
    chrf: Score
    paper_bleu: Score
    multi30k_bleu: Score
    sentences: int

    def as_json(self) -> dict[str, Any]:
        """``{"sacrebleu": {"score": ..., "signature": ...}, "chrf": ..., ..., "sentences": ...}``."""
        return asdict(self)


def score_translations(hypotheses: Sequence[str], references: Sequence[str], *, language: str) -> TranslationScores:
    """Every score of raw ``hypotheses`` against one raw reference each; ``language`` (``"de"``) is the target's.

    Raises DataError if there is not one reference for each hypothesis.

    >>> scores = score_translations(["Ein Hund schläft tief."], ["Ein Hund schläft fest."], language="de")
    >>> f"{scores.sacrebleu.score:.1f} {scores.chrf.score:.1f} {scores.paper_bleu.score:.1f}"
    '42.7 72.9 0.0'
    """
    require_parallel(hypotheses, references)
    return TranslationScores(
        sacrebleu=sacrebleu_score(hypotheses, references),
        chrf=chrf_score(hypotheses, references),
        paper_bleu=paper_bleu(hypotheses, references, language=language),
        multi30k_bleu=multi30k_bleu(hypotheses, references, language=language),
        sentences=len(hypotheses),
    )
