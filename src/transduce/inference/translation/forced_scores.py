"""How probable a model finds given translations: forced decoding.

Shapes: B pairs, S source positions, T target positions, N real target positions of all pairs, D d_model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from transduce.data import pad_rows, plan_by_length
from transduce.errors import ConfigError
from transduce.model import MaskedTransformer
from transduce.search import length_penalty
from transduce.text import BOS_ID, EOS_ID, normalise
from transduce.text.masks import mask_pair

if TYPE_CHECKING:
    from transduce.inference.translation.translator import Translator

__all__ = ["ForcedScore", "forced_scores", "log_probabilities"]


@dataclass(frozen=True, slots=True)
class ForcedScore:
    """What a model says of a given translation."""

    log_prob: float  # log p(target | source) in nats, EOS included
    n_tokens: int  # of the target, EOS included
    is_truncated: bool  # a side is longer than the model reads: its end is not scored


@torch.no_grad()
def forced_scores(translator: Translator, pairs: Sequence[tuple[str, str]]) -> list[ForcedScore]:
    """Return the scores of targets, given their sources: pairs of (source, target).

    Both sides are truncated to the maximum source length. An empty text is EOS alone. If the model has masks, they
    replace verbatim spans that occur on both sides. Raises ConfigError for a model for mask-predict.
    """
    if isinstance(translator.model, MaskedTransformer):
        raise ConfigError("scores need a model that writes from left to right; this one is for mask-predict")
    tokenizers, limit = translator.tokenizers, translator.max_source_tokens - 1
    if tokenizers.src.has_masks and tokenizers.tgt.has_masks:
        pairs = [mask_pair(source, target, translator.mask_rules) for source, target in pairs]
    sources = tokenizers.src.encode_batch([normalise(source) for source, _ in pairs], max_tokens=limit)
    targets = tokenizers.tgt.encode_batch([normalise(target) for _, target in pairs], max_tokens=limit)
    src_rows, tgt_rows = ([[*ids[:limit], EOS_ID] for ids in side] for side in (sources, targets))
    scores: dict[int, ForcedScore] = {}
    lengths = [max(len(src), len(tgt)) for src, tgt in zip(src_rows, tgt_rows, strict=True)]
    for indices in plan_by_length(lengths, max_tokens=translator.search.max_tokens_per_batch):
        sums = _log_probs([src_rows[index] for index in indices], [tgt_rows[index] for index in indices], translator)
        for index, log_prob in zip(indices, sums, strict=True):
            is_truncated = max(len(sources[index]), len(targets[index])) > limit
            scores[index] = ForcedScore(log_prob, len(tgt_rows[index]), is_truncated)
    return [scores[index] for index in range(len(pairs))]


def log_probabilities(translator: Translator, pairs: Sequence[tuple[str, str]], *, alpha: float = 0.0) -> list[float]:
    """Return log p(target | source) in nats, divided by the length penalty, as ``forced_scores`` finds it."""
    scores = forced_scores(translator, pairs)
    return [each.log_prob / length_penalty(float(each.n_tokens), alpha=alpha) for each in scores]


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
