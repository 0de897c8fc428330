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

__all__ = ["ForcedScore", "forced_pairs", "forced_scores", "log_probabilities"]


@dataclass(frozen=True, slots=True)
class ForcedScore:
    """What a model says of a given translation."""

    log_prob: float  # log p(target | source) in nats, EOS included
    n_tokens: int  # of the target, EOS included
    is_truncated: bool  # a side is longer than the model reads: its end is not scored


def forced_scores(translator: Translator, pairs: Sequence[tuple[str, str]]) -> list[ForcedScore]:
    """Return the scores of targets, given their sources: pairs of (source, target).

    Both sides are truncated to the maximum source length. An empty text is EOS alone. If the model has masks, they
    replace verbatim spans that occur on both sides. Capitals and quotation marks are read as in translation. Raises
    ConfigError for a model for mask-predict.
    """
    if not translator.engine.is_left_to_right:
        raise ConfigError("scores need a model that writes from left to right; this one is for mask-predict")
    forced, are_truncated = forced_pairs(translator, pairs)
    scores = translator.engine.forced_scores(forced, max_tokens=translator.search.max_tokens_per_batch)
    return [
        ForcedScore(each.log_prob, len(each.log_probs_T), is_truncated)
        for each, is_truncated in zip(scores, are_truncated, strict=True)
    ]


def forced_pairs(translator: Translator, pairs: Sequence[tuple[str, str]]) -> tuple[list[ForcedPair], list[bool]]:
    """Return the ids of both sides of pairs, as ``forced_scores`` reads them, and which pairs are truncated."""
    tokenizers, limit = translator.tokenizers, translator.max_source_tokens - 1
    if tokenizers.src.has_masks and tokenizers.tgt.has_masks:
        pairs = [mask_pair(source, target, translator.mask_rules) for source, target in pairs]
    read = [translator.as_read(source, target) for source, target in pairs]
    sources = tokenizers.src.encode_batch([normalise(source) for source, _ in read], max_tokens=limit)
    targets = tokenizers.tgt.encode_batch([normalise(target) for _, target in read], max_tokens=limit)
    rows = list(zip(sources, targets, strict=True))
    forced = [ForcedPair([*src[:limit], EOS_ID], [*tgt[:limit], EOS_ID]) for src, tgt in rows]
    return forced, [max(len(src), len(tgt)) > limit for src, tgt in rows]


def log_probabilities(
    translator: Translator, pairs: Sequence[tuple[str, str]], *, penalty: LengthPenalty = NO_PENALTY
) -> list[float]:
    """Return log p(target | source) in nats, divided by a length penalty, as ``forced_scores`` finds it."""
    scores = forced_scores(translator, pairs)
    return [each.log_prob / penalty(float(each.n_tokens)) for each in scores]
