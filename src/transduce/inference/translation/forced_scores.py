"""How probable a model finds given translations: forced decoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from transduce.errors import ConfigError
from transduce.inference.engine import ForcedPair
from transduce.search import NO_PENALTY, LengthPenalty
from transduce.text import EOS_ID, normalise
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


def forced_scores(translator: Translator, pairs: Sequence[tuple[str, str]]) -> list[ForcedScore]:
    """Return the scores of targets, given their sources: pairs of (source, target).

    Both sides are truncated to the maximum source length. An empty text is EOS alone. If the model has masks, they
    replace verbatim spans that occur on both sides. Raises ConfigError for a model for mask-predict.
    """
    if not translator.engine.is_left_to_right:
        raise ConfigError("scores need a model that writes from left to right; this one is for mask-predict")
    tokenizers, limit = translator.tokenizers, translator.max_source_tokens - 1
    if tokenizers.src.has_masks and tokenizers.tgt.has_masks:
        pairs = [mask_pair(source, target, translator.mask_rules) for source, target in pairs]
    sources = tokenizers.src.encode_batch([normalise(source) for source, _ in pairs], max_tokens=limit)
    targets = tokenizers.tgt.encode_batch([normalise(target) for _, target in pairs], max_tokens=limit)
    src_rows, tgt_rows = ([[*ids[:limit], EOS_ID] for ids in side] for side in (sources, targets))
    forced = [ForcedPair(*rows) for rows in zip(src_rows, tgt_rows, strict=True)]
    scores = translator.engine.forced_scores(forced, max_tokens=translator.search.max_tokens_per_batch)
    return [
        ForcedScore(each.log_prob, len(each.log_probs_T), max(len(src), len(tgt)) > limit)
        for each, src, tgt in zip(scores, sources, targets, strict=True)
    ]


def log_probabilities(
    translator: Translator, pairs: Sequence[tuple[str, str]], *, penalty: LengthPenalty = NO_PENALTY
) -> list[float]:
    """Return log p(target | source) in nats, divided by a length penalty, as ``forced_scores`` finds it."""
    scores = forced_scores(translator, pairs)
    return [each.log_prob / penalty(float(each.n_tokens)) for each in scores]
