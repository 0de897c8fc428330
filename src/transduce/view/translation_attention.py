"""The attention weights of one translation or one text, recorded during a forward pass. Section 3.2.3.

Shapes: B batch (one sentence), H heads, T target or query positions, S source or key positions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from transduce.errors import CheckpointError, DataError
from transduce.inference import LanguageModel, Translator
from transduce.model import AttentionHook, AttentionKind, MaskedTransformer
from transduce.text import BOS_ID, EOS_ID, normalise
from transduce.view.attention_page import AttentionMaps
from transduce.view.svg import Weights

__all__ = [
    "MAX_TOKENS", "attention_of_text", "attention_of_translation", "recorded_weights", "require_at_most",
]  # fmt: skip

MAX_TOKENS = 512  # per side, EOS included: a page grows with the square of both, times heads and layers


@torch.no_grad()
def attention_of_translation(translator: Translator, source: str, translation: str | None = None) -> AttentionMaps:
    """Return the weights of all layers and heads for ``source`` and ``translation`` (default: the model's own).

    Raises DataError if ``source`` has no words or a side more than ``MAX_TOKENS`` tokens, CheckpointError if the model
    has no attention.
    """
    model = translator.model
    if isinstance(model, MaskedTransformer):
        raise CheckpointError(
            "attention is drawn of models that write from left to right; this one is for mask-predict"
        )
    limit = min(MAX_TOKENS, translator.max_source_tokens)
    source = normalise(source)
    src, tgt = translator.tokenizers.src, translator.tokenizers.tgt
    require_at_most(len(src.encode(source, max_tokens=limit)) + 1, limit, "the sentence")
    if translation is None:
        (translation,) = translator.translate([source], split=False)
    translation = normalise(translation)
    src_ids = [*translator.source_ids(source), EOS_ID]
    tgt_ids = tgt.encode(translation, max_tokens=limit)
    require_at_most(len(tgt_ids) + 1, limit, "its translation")
    device = model.output_weight.device
    src_BS, tgt_BT = torch.tensor([src_ids], device=device), torch.tensor([[BOS_ID, *tgt_ids]], device=device)
    weights_of = recorded_weights(lambda hook: model(src_BS, tgt_BT, attention_hook=hook))
    if not weights_of:
        raise CheckpointError(f"system = {model.config.system!r} has no attention weights to draw; use a Transformer")
    return AttentionMaps(
        source=source,
        translation=translation,
        src_tokens=tuple(src.pieces(src_ids)),
        tgt_tokens=tuple(tgt.pieces([BOS_ID, *tgt_ids])),
        tgt_predicted=tuple(tgt.pieces([*tgt_ids, EOS_ID])),
        picture=None,
        **weights_of,
    )


@torch.no_grad()
def attention_of_text(model: LanguageModel, text: str) -> AttentionMaps:
    """Return the weights of all layers and heads of a language model for ``text``.

    A gap, written ``<mask>``, is read as the mask token by a masked model; a model of missing spans writes what is
    missing. Raises DataError if the text is longer than the model's window, or than ``MAX_TOKENS`` tokens.
    """
    read_ids, written_ids = model.read_and_written(text)
    limit = min(MAX_TOKENS, model.max_length)
    require_at_most(max(len(read_ids), len(written_ids) - 1), limit, "the text")
    weights_of = recorded_weights(lambda hook: model.forward(read_ids, written_ids, hook))
    pieces = model.tokenizer.pieces
    read, inputs, predicted = pieces(read_ids), pieces(written_ids[:-1]), pieces(written_ids[1:])
    return AttentionMaps(
        source=text if read_ids else "",
        translation=model.codec.decode(written_ids).removesuffix("\n"),
        src_tokens=tuple(read),
        tgt_tokens=tuple(inputs),
        tgt_predicted=tuple(predicted),
        picture=None,
        **weights_of,
    )


def recorded_weights(forward: Callable[[AttentionHook], object]) -> dict[AttentionKind, Weights]:
    """Return the weights of the only row of a batch, by kind, (layers, heads, T, S)."""
    weights_of = defaultdict[AttentionKind, list[Tensor]](list)

    def collect(kind: AttentionKind, layer: int, weights_BHTS: Tensor) -> None:
        assert len(weights_of[kind]) == layer
        weights_of[kind].append(weights_BHTS[0].float().cpu())

    forward(collect)
    return {kind: np.stack([weights.numpy() for weights in layers]) for kind, layers in weights_of.items()}


def require_at_most(n_tokens: int, limit: int, what: str) -> None:
    """Raise DataError if a side has more than ``limit`` tokens."""
    if n_tokens > limit:
        raise DataError(f"{what} has more than {limit:,} tokens, the limit of the attention page; shorten it")
