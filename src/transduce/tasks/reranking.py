"""Noisy-channel reranking: rescore the n-best translations with a model of the reverse direction.

Shapes: B pairs, S source positions, T target positions, N real target positions of all pairs, D d_model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import repeat

import torch
import torch.nn.functional as F

from transduce.config import SearchConfig
from transduce.data import pad_rows, plan_by_length
from transduce.errors import CheckpointError
from transduce.model import MaskedTransformer
from transduce.search import length_penalty
from transduce.tasks.translation_parts import ScoredText, TranslatedSegment, Translation
from transduce.tasks.translator import CHUNK_LINES, Translator
from transduce.text import BOS_ID, EOS_ID, normalise
from transduce.text.masks import mask_pair

__all__ = ["Reranker", "log_probabilities"]


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
        if isinstance(reverse.model, MaskedTransformer) or isinstance(translator.model, MaskedTransformer):
            raise CheckpointError(
                "reranking needs models that write from left to right; one of them is for mask-predict"
            )
        self.translator, self.reverse, self.weight = translator, reverse, weight
        self.src_language, self.tgt_language = languages
        self.search, self.max_source_tokens = translator.search, translator.max_source_tokens

    def translate(self, texts: Sequence[str], *, search: SearchConfig | None = None) -> list[str]:
        """Translate a list of texts."""
        return [translation.text for translation in self.translate_lines(texts, search=search)]

    def translate_lines(
        self,
        lines: Iterable[str],
        *,
        search: SearchConfig | None = None,
        chunk_lines: int = CHUNK_LINES,
        split: bool = True,
        is_scored: bool = True,
        prefixes: Iterable[str] = repeat(""),
        report: Callable[[int], object] = lambda n_lines: None,
    ) -> Iterator[Translation]:
        """Translate a stream of lines, in order; empty lines stay empty. Reranking always needs the scores.

        Raises ConfigError for a prefix.
        """
        return self.translator.translate_lines(
            lines, search=search, chunk_lines=chunk_lines, split=split, rerank=self._rerank, prefixes=prefixes,
            report=report,
        )  # fmt: skip

    def _rerank(
        self, sources: Sequence[str], translated: Sequence[TranslatedSegment], search: SearchConfig
    ) -> list[TranslatedSegment]:
        """Rerank the candidates of each segment by the combined score; return its n-best."""
        pairs = [(best.text, source) for source, each in zip(sources, translated, strict=True) for best in each.n_best]
        reverse_scores = iter(log_probabilities(self.reverse, pairs, alpha=search.alpha))
        reranked = []
        for each in translated:
            rescored = [ScoredText(best.text, best.score + self.weight * next(reverse_scores)) for best in each.n_best]
            rescored.sort(key=lambda best: best.score, reverse=True)  # stable: ties stay in the translator's order
            reranked.append(replace(each, n_best=tuple(rescored[: search.n_best])))
        return reranked


@torch.no_grad()
def log_probabilities(translator: Translator, pairs: Sequence[tuple[str, str]], *, alpha: float = 0.0) -> list[float]:
    """Return log p(target | source) in nats, EOS included, divided by the length penalty.

    Both sides are truncated to the maximum source length. An empty text is EOS alone. If the model has masks, they
    replace verbatim spans that occur on both sides.
    """
    tokenizers, limit = translator.tokenizers, translator.max_source_tokens - 1
    if tokenizers.src.has_masks and tokenizers.tgt.has_masks:
        pairs = [mask_pair(source, target, translator.mask_rules) for source, target in pairs]
    sources = tokenizers.src.encode_batch([normalise(source) for source, _ in pairs], max_tokens=limit)
    targets = tokenizers.tgt.encode_batch([normalise(target) for _, target in pairs], max_tokens=limit)
    src_rows, tgt_rows = ([[*ids[:limit], EOS_ID] for ids in side] for side in (sources, targets))
    scores = [0.0] * len(pairs)
    lengths = [max(len(src), len(tgt)) for src, tgt in zip(src_rows, tgt_rows, strict=True)]
    for indices in plan_by_length(lengths, max_tokens=translator.search.max_tokens_per_batch):
        sums = _log_probs([src_rows[index] for index in indices], [tgt_rows[index] for index in indices], translator)
        for index, log_prob in zip(indices, sums, strict=True):
            scores[index] = log_prob / length_penalty(float(len(tgt_rows[index])), alpha=alpha)
    return scores


def _log_probs(
    sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], translator: Translator
) -> list[float]:
    """Return log p(target | source) of each pair of id sequences; each sequence ends with EOS."""
    model = translator.model
    device = model.output_weight.device
    src_BS, tgt_in_BT = pad_rows(sources), pad_rows([[BOS_ID, *ids[:-1]] for ids in targets])
    states_ND = model(src_BS.to(device), tgt_in_BT.to(device))
    tgt_out_N = torch.tensor([token for ids in targets for token in ids], device=device)
    log_p_N = -F.cross_entropy(model.logits(states_ND), tgt_out_N, reduction="none").double()
    return [float(part.sum()) for part in torch.split(log_p_N.cpu(), [len(ids) for ids in targets])]
