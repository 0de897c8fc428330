"""Of the n best translations, the one from which a reverse model finds the source again: the noisy channel's idea."""

# B pairs, S source positions, T target positions, N target positions of all pairs

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F

from transduce.config import SearchConfig
from transduce.data import pad_rows, plan_by_length
from transduce.errors import CheckpointError
from transduce.search import length_penalty
from transduce.tasks.translation_parts import ScoredText, TranslatedSegment, Translation
from transduce.tasks.translator import CHUNK_LINES, Translator
from transduce.text import BOS_ID, EOS_ID, normalise
from transduce.text.masks import mask_pair

__all__ = ["Reranker", "log_probabilities"]


class Reranker:
    """Translates as ``translator`` does, and chooses anew among all of its beam. Not in the paper.

    With source x, translation y and lengths in tokens with the end symbol, the score is the translator's own, log p(y |
    x) / lp(|y|), and ``weight`` times that of the other direction, log p(x | y) / lp(|x|). A translation that leaves
    something out is likely by the first and unlikely by the second.

    Raises CheckpointError if ``reverse`` does not translate back.
    """

    def __init__(self, translator: Translator, reverse: Translator, *, weight: float) -> None:
        languages, others = ((each.src_language, each.tgt_language) for each in (translator, reverse))
        if languages != others[::-1]:
            raise CheckpointError(
                f"the reverse model translates {'-'.join(others)}; {'-'.join(languages)} needs one for "
                f"{'-'.join(languages[::-1])}"
            )
        self.translator, self.reverse, self.weight = translator, reverse, weight
        self.src_language, self.tgt_language = languages
        self.search, self.max_source_tokens = translator.search, translator.max_source_tokens

    def translate(self, texts: Sequence[str], *, search: SearchConfig | None = None) -> list[str]:
        """The best translation of each text."""
        return [translation.text for translation in self.translate_lines(texts, search=search)]

    def translate_lines(
        self,
        lines: Iterable[str],
        *,
        search: SearchConfig | None = None,
        chunk_lines: int = CHUNK_LINES,
        split: bool = True,
    ) -> Iterator[Translation]:
        """A stream of lines to a stream of translations, one for each line, in order; blank lines stay blank."""
        return self.translator.translate_lines(
            lines, search=search, chunk_lines=chunk_lines, split=split, choose=self._chosen
        )

    def _chosen(
        self, sources: Sequence[str], translated: Sequence[TranslatedSegment], search: SearchConfig
    ) -> list[TranslatedSegment]:
        """The n best of each segment, by both directions."""
        pairs = [(best.text, source) for source, each in zip(sources, translated, strict=True) for best in each.n_best]
        backwards = iter(log_probabilities(self.reverse, pairs, alpha=search.alpha))
        chosen = []
        for each in translated:
            rescored = [ScoredText(best.text, best.score + self.weight * next(backwards)) for best in each.n_best]
            rescored.sort(key=lambda best: best.score, reverse=True)  # of equal ones, the translator's first
            chosen.append(replace(each, n_best=tuple(rescored[: search.n_best])))
        return chosen


@torch.no_grad()
def log_probabilities(translator: Translator, pairs: Sequence[tuple[str, str]], *, alpha: float = 0.0) -> list[float]:
    """log p(target | source) in nats, the end symbol included, over the length penalty.

    Both are cut as sources are for translation. A blank text is an end symbol alone. Where the model has masks, they
    stand for what is on both sides.
    """
    tokenizers, limit = translator.tokenizers, translator.max_source_tokens - 1
    if tokenizers.src.has_masks and tokenizers.tgt.has_masks:
        pairs = [mask_pair(source, target) for source, target in pairs]
    sources = tokenizers.src.encode_batch([normalise(source) for source, _ in pairs], max_tokens=limit)
    targets = tokenizers.tgt.encode_batch([normalise(target) for _, target in pairs], max_tokens=limit)
    rows = [[*ids[:limit], EOS_ID] for ids in sources], [[*ids[:limit], EOS_ID] for ids in targets]
    found = [0.0] * len(pairs)
    lengths = [max(len(src), len(tgt)) for src, tgt in zip(*rows, strict=True)]
    for places in plan_by_length(lengths, max_tokens=translator.search.max_tokens_per_batch):
        sums = _sums([rows[0][place] for place in places], [rows[1][place] for place in places], translator)
        for place, log_prob in zip(places, sums, strict=True):
            found[place] = log_prob / length_penalty(float(len(rows[1][place])), alpha=alpha)
    return found


def _sums(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], translator: Translator) -> list[float]:
    """log p(target | source) of each pair of rows that end with the end symbol."""
    model = translator.model
    device = model.output_weight.device
    src_BS, tgt_in_BT = pad_rows(sources), pad_rows([[BOS_ID, *ids[:-1]] for ids in targets])
    states_ND = model(src_BS.to(device), tgt_in_BT.to(device))
    tgt_out_N = torch.tensor([token for ids in targets for token in ids], device=device)
    log_p_N = -F.cross_entropy(model.logits(states_ND), tgt_out_N, reduction="none").double()
    return [float(part.sum()) for part in torch.split(log_p_N.cpu(), [len(ids) for ids in targets])]
