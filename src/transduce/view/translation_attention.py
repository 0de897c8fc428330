"""The attention weights of one translation, recorded during a forward pass. Section 3.2.3.

Shapes: B batch (one sentence), H heads, T target or query positions, S source or key positions.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import torch
from torch import Tensor

from transduce.errors import CheckpointError, DataError
from transduce.model import AttentionKind
from transduce.tasks import Translator
from transduce.text import BOS_ID, EOS_ID, normalise
from transduce.view.attention_page import AttentionMaps

__all__ = ["MAX_TOKENS", "attention_of_translation"]

MAX_TOKENS = 512  # per side, EOS included: a page grows with the square of both, times heads and layers


@torch.no_grad()
def attention_of_translation(translator: Translator, source: str, translation: str | None = None) -> AttentionMaps:
    """Return the weights of all layers and heads for ``source`` and ``translation`` (default: the model's own).

    Raises DataError if ``source`` has no words or a side more than ``MAX_TOKENS`` tokens, CheckpointError if the model
    has no attention.
    """
    model = translator.model
    limit = min(MAX_TOKENS, translator.max_source_tokens)
    source = normalise(source)
    src, tgt = translator.tokenizers.src, translator.tokenizers.tgt
    _require_at_most(len(src.encode(source, max_tokens=limit)) + 1, limit, "the sentence")
    if translation is None:
        (translation,) = translator.translate([source], split=False)
    translation = normalise(translation)
    src_ids = [*translator.source_ids(source), EOS_ID]
    tgt_ids = tgt.encode(translation, max_tokens=limit)
    _require_at_most(len(tgt_ids) + 1, limit, "its translation")
    weights_of = defaultdict[AttentionKind, list[Tensor]](list)

    def collect(kind: AttentionKind, layer: int, weights_BHTS: Tensor) -> None:
        assert len(weights_of[kind]) == layer
        weights_of[kind].append(weights_BHTS[0].float().cpu())

    device = model.output_weight.device
    src_BS, tgt_BT = torch.tensor([src_ids], device=device), torch.tensor([[BOS_ID, *tgt_ids]], device=device)
    model(src_BS, tgt_BT, attention_hook=collect)
    if not weights_of:
        raise CheckpointError(f"system = {model.config.system!r} has no attention weights to draw; use a Transformer")
    stacked = {kind: np.stack([weights.numpy() for weights in layers]) for kind, layers in weights_of.items()}
    return AttentionMaps(
        source=source,
        translation=translation,
        src_tokens=tuple(src.pieces(src_ids)),
        tgt_tokens=tuple(tgt.pieces([BOS_ID, *tgt_ids])),
        tgt_predicted=tuple(tgt.pieces([*tgt_ids, EOS_ID])),
        cross=stacked["cross"],
        encoder=stacked.get("encoder"),
        decoder=stacked.get("decoder"),
    )


def _require_at_most(n_tokens: int, limit: int, what: str) -> None:
    """Raise DataError if a side has more than ``limit`` tokens."""
    if n_tokens > limit:
        raise DataError(f"{what} has more than {limit:,} tokens, the limit of the attention page; shorten it")
