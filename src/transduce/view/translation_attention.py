"""The attention weights of one translation, recorded during a forward pass. Section 3.2.3.

Shapes: B batch (one sentence), H heads, T target or query positions, S source or key positions.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from transduce.errors import CheckpointError, DataError
from transduce.model import AttentionKind, Transformer
from transduce.tasks import Translator
from transduce.text import BOS_ID, EOS_ID, normalise
from transduce.view.attention_page import AttentionMaps

__all__ = ["MOST_TOKENS", "attention_of_translation"]

MOST_TOKENS = 512  # per side, EOS included: a page grows with the square of both, times heads and layers


@torch.no_grad()
def attention_of_translation(translator: Translator, source: str, translation: str | None = None) -> AttentionMaps:
    """Return the weights of all layers and heads for ``source`` and ``translation`` (default: the model's own).

    Raises DataError if ``source`` has no words or a side more than ``MOST_TOKENS`` tokens, CheckpointError if the model
    is not a Transformer.
    """
    model = translator.model
    if not isinstance(model, Transformer):
        raise CheckpointError(f"system = {model.config.system!r} has no attention weights to draw; use a Transformer")
    most = min(MOST_TOKENS, translator.max_source_tokens)
    source = normalise(source)
    src, tgt = translator.tokenizers.src, translator.tokenizers.tgt
    _require_few(len(src.encode(source, most_tokens=most)) + 1, most, "the sentence")
    if translation is None:
        (translation,) = translator.translate([source], split=False)
    translation = normalise(translation)
    src_ids = [*translator.source_ids(source), EOS_ID]
    tgt_ids = tgt.encode(translation, most_tokens=most)
    _require_few(len(tgt_ids) + 1, most, "its translation")
    kept: dict[AttentionKind, list[Tensor]] = {"encoder": [], "decoder": [], "cross": []}

    def keep(kind: AttentionKind, layer: int, weights_BHTS: Tensor) -> None:
        assert len(kept[kind]) == layer
        kept[kind].append(weights_BHTS[0].float().cpu())

    device = model.output_weight.device
    src_BS, tgt_BT = torch.tensor([src_ids], device=device), torch.tensor([[BOS_ID, *tgt_ids]], device=device)
    model(src_BS, tgt_BT, attention_hook=keep)
    stacked = {kind: np.stack([weights.numpy() for weights in layers]) for kind, layers in kept.items()}
    return AttentionMaps(
        source=source,
        translation=translation,
        src_tokens=tuple(src.pieces(src_ids)),
        tgt_tokens=tuple(tgt.pieces([BOS_ID, *tgt_ids])),
        tgt_predicted=tuple(tgt.pieces([*tgt_ids, EOS_ID])),
        encoder=stacked["encoder"],
        decoder=stacked["decoder"],
        cross=stacked["cross"],
    )


def _require_few(n_tokens: int, most: int, what: str) -> None:
    """Raise DataError if a side has more than ``most`` tokens."""
    if n_tokens > most:
        raise DataError(f"{what} has more than {most:,} tokens, the limit of the attention page; shorten it")
