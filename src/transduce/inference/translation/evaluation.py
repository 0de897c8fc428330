"""Translate and score a test set, at the end of a run and for ``transduce evaluate``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from transduce.config import SearchConfig
from transduce.errors import DataError
from transduce.inference.translation.best_of_samples import BestOfSamples
from transduce.inference.translation.parts import Translation
from transduce.inference.translation.reranking import Reranker
from transduce.inference.translation.translator import Translator
from transduce.metrics import TokenisedBleu, TranslationScores, score_translations

__all__ = ["Evaluation", "evaluate"]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Translations of a test set and their scores."""

    scores: TranslationScores
    translations: tuple[str, ...]


def evaluate(
    translator: Translator | Reranker | BestOfSamples,
    sources: Sequence[str],
    references: Sequence[str],
    *further_references: Sequence[str],
    search: SearchConfig | None = None,
    split: bool = False,
    also: Collection[TokenisedBleu] = (),
    tokenizer: str | None = None,
    on_translation: Callable[[Translation], object] = lambda translation: None,
    report: Callable[[int], object] = lambda n_lines: None,
) -> Evaluation:
    """Evaluate a translator on a test set, with the tokenised BLEUs named in ``also``.

    Lines are translated as a whole, unless ``split`` into sentences, and else as users' lines are; ``on_translation``
    is called with each, ``report`` with the number of lines done. sacreBLEU's ``tokenizer`` is by default that of the
    target language.
    Raises DataError if the sides have different numbers of lines.
    """
    for each in (references, *further_references):
        if len(sources) != len(each):
            raise DataError(f"{len(sources):,} source lines, {len(each):,} references; they must align line by line")
    translations = list[str]()
    for translation in translator.translate_lines(sources, search=search, split=split, report=report):
        on_translation(translation)
        translations.append(translation.text)
    scores = score_translations(
        translations, references, *further_references, language=translator.tgt_language, also=also, tokenizer=tokenizer
    )
    return Evaluation(scores, tuple(translations))
