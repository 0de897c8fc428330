"""Translate a test set and score it, at the end of a run and for ``transduce evaluate``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transduce.config import SearchConfig
from transduce.errors import DataError
from transduce.metrics import TranslationScores, score_translations
from transduce.tasks.reranking import Reranker
from transduce.tasks.translator import Translator

__all__ = ["Evaluation", "evaluate"]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores, and the translations that they judge."""

    scores: TranslationScores
    translations: tuple[str, ...]


def evaluate(
    translator: Translator | Reranker,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    search: SearchConfig | None = None,
) -> Evaluation:
    """Scores of a translator on a test set. Raises DataError if the two sides have different numbers of lines."""
    if len(sources) != len(references):
        raise DataError(
            f"{len(sources):,} source lines but {len(references):,} references; they must align line by line"
        )
    translations = translator.translate(sources, search=search)
    scores = score_translations(translations, references, language=translator.tgt_language)
    return Evaluation(scores, tuple(translations))
