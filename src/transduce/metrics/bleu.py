"""BLEU and chrF of raw text, computed by sacreBLEU, with signatures.

Both take detokenised text, so that scores of different systems are comparable: a custom tokenisation can change BLEU
by more than most model improvements. Both sides are compared in Unicode's form NFC, in which translations are written:
text that looks the same is the same. Where that changed a line, the signature says ``norm:NFC``; else the score is
sacreBLEU's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from transduce.composition import composed
from transduce.errors import DataError
from transduce.metrics.bleu_tokenizers import bleu_tokenizer, bleu_with

if TYPE_CHECKING:  # sacrebleu is imported when something is scored
    from sacrebleu import BLEU, CHRF

__all__ = [
    "Score", "chrf_score", "corpus_score", "require_parallel", "sacrebleu_score", "sentence_chrf_scores",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Score:
    """A score and how it was computed."""

    score: float  # percent
    signature: str  # sacreBLEU's: all settings and versions

    def __str__(self) -> str:
        return f"{self.score:.2f} ({self.signature})"


def sacrebleu_score(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *further_references: Sequence[str],
    language: str | None = None,
    tokenizer: str | None = None,
) -> Score:
    """Return BLEU of raw text with sacreBLEU's defaults: cased, 13a tokenisation.

    For a ``language``, or a script of the references, without spaces between words, characters are counted; another
    ``tokenizer`` of sacreBLEU may be named. ``further_references`` are other translations of the same lines.
    Raises DataError if the numbers of hypotheses and references differ or are 0, ConfigError for an unknown tokenizer.

    >>> print(sacrebleu_score(["Ein Hund schläft im Garten ."], ["Ein Hund schläft im Garten."]))
    100.00 (nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:...)
    >>> print(sacrebleu_score(["狗在花园里睡觉。"], ["狗在花园里睡觉。"], language="zh"))
    100.00 (nrefs:1|case:mixed|eff:no|tok:zh|smooth:exp|version:...)
    """
    metric = bleu_with(tokenizer or bleu_tokenizer(language, references))
    return corpus_score(metric, hypotheses, references, *further_references)


def chrf_score(hypotheses: Sequence[str], references: Sequence[str], *further_references: Sequence[str]) -> Score:
    """Return chrF2, the character n-gram F-score with n up to 6 and beta = 2.

    Of several references, each line has the one with the best score.
    Raises DataError if the numbers of hypotheses and references differ or are 0.

    >>> print(chrf_score(["Ein Hund schläft."], ["Ein Hund schläft."]))
    100.00 (nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:...)
    """
    from sacrebleu import CHRF

    return corpus_score(CHRF(), hypotheses, references, *further_references)


def sentence_chrf_scores(hypotheses: Sequence[str], reference: str) -> list[float]:
    """Return chrF2 of each hypothesis for one reference, percent, with sacreBLEU's settings for sentences.

    >>> sentence_chrf_scores(["Ein Hund schläft.", "Eine Katze."], "Ein Hund schläft.")[0]
    100.0
    """
    from sacrebleu import CHRF

    metric, references = CHRF(), [composed(reference)]
    return [min(metric.sentence_score(each, references).score, 100.0) for each in map(composed, hypotheses)]


def corpus_score(
    metric: BLEU | CHRF,
    hypotheses: Sequence[str],
    *references: Sequence[str],
    prepare: Callable[[str], str] | None = None,
    settings: Mapping[str, str] | None = None,
) -> Score:
    """Return the corpus-level score under ``metric``, of lines changed by ``prepare``.

    ``settings`` are added to the signature: preprocessing that sacreBLEU does not know about.
    Raises DataError if the numbers of hypotheses and references differ or are 0.
    """
    require_parallel(hypotheses, *references)
    given = [list(lines) for lines in (hypotheses, *references)]
    texts = [list(map(composed, lines)) for lines in given]
    norm = {"norm": "NFC"} if texts != given else {}
    if prepare is not None:
        texts = [list(map(prepare, lines)) for lines in texts]
    score = metric.corpus_score(texts[0], texts[1:]).score
    signature = metric.get_signature()
    for key, value in {**(settings or {}), **norm}.items():
        signature.update(key, value)
    return Score(score=min(score, 100.0), signature=str(signature))  # exp and log may round to 100.00000000000004


def require_parallel(hypotheses: Sequence[str], *references: Sequence[str]) -> None:
    """Raise DataError unless there is one reference per hypothesis in each list, and at least one of each."""
    for each in references:
        if len(hypotheses) != len(each):
            raise DataError(
                f"{len(hypotheses):,} hypotheses but {len(each):,} references; they must align line by line"
            )
    if not hypotheses:
        raise DataError("0 hypotheses and 0 references; a score needs at least one pair")
