"""The scores of a set of translations, as ``transduce score`` and ``evaluate`` print them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any, Literal

from transduce.config import base_language
from transduce.metrics.bleu import Score, chrf_score, require_parallel, sacrebleu_score
from transduce.metrics.tokenised_bleu import multi30k_bleu, paper_bleu

__all__ = ["TOKENISED_BLEUS", "TokenisedBleu", "TranslationScores", "customary_bleus", "score_translations"]

MIN_BLEU = 2.0  # of translations; frequent words and phrases alone have some tenths
TokenisedBleu = Literal["paper_bleu", "multi30k_bleu"]
TOKENISED_BLEUS: Mapping[TokenisedBleu, Callable[..., Score]] = {
    "paper_bleu": paper_bleu,
    "multi30k_bleu": multi30k_bleu,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationScores:
    """The scores of one set of translations: sacreBLEU and chrF, and tokenised BLEUs if requested."""

    sacrebleu: Score
    chrf: Score
    paper_bleu: Score | None = None
    multi30k_bleu: Score | None = None
    sentences: int

    @property
    def is_by_chance(self) -> bool:
        """Whether the translations have hardly more in common with the references than any text of the language."""
        return self.sacrebleu.score < MIN_BLEU

    def as_json(self) -> dict[str, Any]:
        """Return the computed scores: ``{"sacrebleu": {"score": ..., "signature": ...}, "chrf": ..., ...}``."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def score_translations(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *further_references: Sequence[str],
    language: str,
    also: Collection[TokenisedBleu] = (),
    tokenizer: str | None = None,
) -> TranslationScores:
    """Score raw ``hypotheses`` against raw references, one or several for each line.

    ``language`` selects sacreBLEU's tokenizer, unless one is named; ``also`` adds tokenised BLEUs.
    Raises DataError if the numbers of hypotheses and references differ or are 0, ConfigError for an unknown tokenizer.

    >>> from transduce.metrics import TOKENISED_BLEUS
    >>> translations, references = ["Ein Hund schläft tief."], ["Ein Hund schläft fest."]
    >>> scores = score_translations(translations, references, language="de", also=TOKENISED_BLEUS)
    >>> f"{scores.sacrebleu.score:.1f} {scores.chrf.score:.1f} {scores.paper_bleu.score:.1f}"
    '42.7 72.9 0.0'
    """
    texts = hypotheses, references, *further_references
    require_parallel(*texts)
    moses_language = base_language(language)
    tokenised = {name: TOKENISED_BLEUS[name](*texts, language=moses_language) for name in also}
    return TranslationScores(
        sacrebleu=sacrebleu_score(*texts, language=language, tokenizer=tokenizer),
        chrf=chrf_score(*texts),
        paper_bleu=tokenised.get("paper_bleu"),
        multi30k_bleu=tokenised.get("multi30k_bleu"),
        sentences=len(hypotheses),
    )


def customary_bleus(text_name: str) -> tuple[TokenisedBleu, ...]:
    """Return the tokenised BLEUs that papers report for a test set, by its name: Multi30k or WMT's newstest.

    >>> customary_bleus("multi30k/test_2016_flickr"), customary_bleus("wmt_news/newstest2014")
    (('multi30k_bleu',), ('paper_bleu',))
    >>> customary_bleus("data/multi30k/val.en with data/multi30k/val.de"), customary_bleus("my.en with my.de")
    (('multi30k_bleu',), ())
    """
    paths = [PurePath(part) for name in text_name.split(", ") for part in name.split(" with ")]
    if all(path.parent.name == "multi30k" for path in paths):
        return ("multi30k_bleu",)
    if all(path.parent.name == "wmt_news" and path.name.startswith("newstest") for path in paths):
        return ("paper_bleu",)
    return ()
