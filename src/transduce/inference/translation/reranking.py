"""Noisy-channel reranking: rescore the n-best translations with a model of the reverse direction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Unpack

from transduce.config import SearchConfig
from transduce.errors import CheckpointError
from transduce.inference.translation.forced_scores import log_probabilities
from transduce.inference.translation.parts import ScoredText, TranslatedSegment, Translation
from transduce.inference.translation.translator import LineOptions, Translator
from transduce.search import LengthPenalty
from transduce.text.markup import Unit

__all__ = ["Reranker"]


class Reranker:
    """Translate with ``translator``, then rerank its whole beam. Not in the paper.

    For source x and translation y, with lengths in tokens including EOS, the score is the translator's, log p(y | x) /
    lp(|y|), plus ``weight`` times that of the reverse direction, log p(x | y) / lp(|x|). The latter penalises
    translations that omit something.

    Raises CheckpointError if ``reverse`` is not of the reverse direction.
    """

    def __init__(self, translator: Translator, reverse: Translator, *, weight: float) -> None:
        languages, reverse_languages = ((each.src_language, each.tgt_language) for each in (translator, reverse))
        if languages != reverse_languages[::-1]:
            raise CheckpointError(
                f"the reverse model translates {'-'.join(reverse_languages)}; {'-'.join(languages)} needs one for "
                f"{'-'.join(languages[::-1])}"
            )
        if not (reverse.engine.is_left_to_right and translator.engine.is_left_to_right):
            raise CheckpointError(
                "reranking needs models that write from left to right; one of them is for mask-predict"
            )
        self.translator, self.reverse, self.weight = translator, reverse, weight
        self.src_language, self.tgt_language = languages
        self.search, self.max_source_tokens = translator.search, translator.max_source_tokens
        self.has_masks, self.memory = translator.has_masks, translator.memory

    def translate(self, texts: Sequence[str], *, search: SearchConfig | None = None) -> list[str]:
        """Translate a list of texts."""
        return [translation.text for translation in self.translate_lines(texts, search=search)]

    def translate_lines(
        self, lines: Iterable[str | Unit], *, search: SearchConfig | None = None, **options: Unpack[LineOptions]
    ) -> Iterator[Translation]:
        """Translate a stream of lines, in order; empty lines stay empty. Reranking always needs the scores.

        Raises ConfigError for a prefix.
        """
        options["is_scored"] = True
        return self.translator.translate_lines(lines, search=search, rerank=self._rerank, **options)

    def _rerank(
        self, sources: Sequence[str], translated: Sequence[TranslatedSegment], search: SearchConfig
    ) -> list[TranslatedSegment]:
        """Rerank the candidates of each segment by the combined score; return its n-best."""
        pairs = [(best.text, source) for source, each in zip(sources, translated, strict=True) for best in each.n_best]
        reverse_scores = iter(log_probabilities(self.reverse, pairs, penalty=LengthPenalty.of(search)))
        reranked = []
        for each in translated:
            rescored = [ScoredText(best.text, best.score + self.weight * next(reverse_scores)) for best in each.n_best]
            rescored.sort(key=lambda best: best.score, reverse=True)  # stable: ties stay in the translator's order
            reranked.append(replace(each, n_best=tuple(rescored[: search.n_best])))
        return reranked
