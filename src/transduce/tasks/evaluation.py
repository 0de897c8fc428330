"""Translate a test set and score it, at the end of a run and for ``transduce evaluate``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch

from transduce.config import RunConfig, SearchConfig
from transduce.errors import DataError
from transduce.metrics import TokenisedBleu, TranslationScores, perplexity, score_translations
from transduce.model import EncoderDecoder
from transduce.tasks.preparation import Prepared
from transduce.tasks.reranking import Reranker
from transduce.tasks.translation import TranslationValidation
from transduce.tasks.translator import Translator

__all__ = ["Evaluation", "dev_perplexity", "evaluate"]


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
    split: bool = False,
    also: Collection[TokenisedBleu] = (),
) -> Evaluation:
    """Scores of a translator on a test set, with the tokenised BLEUs that ``also`` names.

    Its lines are taken as they are, unless they are to be ``split`` into sentences.
    Raises DataError if the two sides have different numbers of lines.
    """
    if len(sources) != len(references):
        raise DataError(
            f"{len(sources):,} source lines but {len(references):,} references; they must align line by line"
        )
    translations = [each.text for each in translator.translate_lines(sources, search=search, split=split)]
    scores = score_translations(translations, references, language=translator.tgt_language, also=also)
    return Evaluation(scores, tuple(translations))


def dev_perplexity(model: EncoderDecoder, prepared: Prepared, config: RunConfig) -> float:
    """Per token of the dev text, not smoothed, in the precision of training. Table 3, PPL.

    Raises DataError if there is no dev text.
    """
    text = prepared.text("dev")
    if prepared.dev is None or text is None:
        raise DataError(f"{prepared.folder} has no dev text")
    validation = TranslationValidation(
        lambda: model,
        prepared.tokenizers,
        prepared.dev,
        text,
        config,
        device=model.output_weight.device,
    )
    with torch.no_grad():
        return perplexity(validation.mean_nll_nats(), 1)
