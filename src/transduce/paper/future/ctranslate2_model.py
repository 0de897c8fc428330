"""Conversion of our Transformer to a CTranslate2 model folder.

Both store projections as (out, in), and fuse those with the same input: queries, keys and values of self-attention,
keys and values of cross-attention. So the conversion only renames weights.

Shapes: P positions of a table, D d_model.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from ctranslate2.specs import TransformerSpec  # in the extra "bench"
from torch import Tensor, nn

from transduce.config import EncoderDecoderConfig, TransformerConfig
from transduce.model import Transformer
from transduce.model.attention import CrossAttention, SelfAttention
from transduce.model.embedding import LearnedPositions, SinusoidalPositions
from transduce.model.layers import FeedForward, Layer

__all__ = ["write_ctranslate2_model"]


@torch.no_grad()
def write_ctranslate2_model(
    model: Transformer, folder: Path, *, src_tokens: Sequence[str], tgt_tokens: Sequence[str]
) -> None:
    """Write ``model`` in fp32 to a new folder for ``ctranslate2.Translator``.

    The tokens are the names of the ids, in order, as CTranslate2 reads and writes names; special tokens have our names.
    CTranslate2 appends EOS to the source.

    Raises ValueError if d_k or d_v is not d_model / n_heads, for positions = 'words', which CTranslate2 lacks, or for a
    switch of later models.
    """
    config = _checked(model.config)
    spec = TransformerSpec.from_config(
        (config.n_encoder_layers, config.n_decoder_layers), config.n_heads, pre_norm=config.norm == "pre"
    )
    spec.config.layer_norm_epsilon = config.norm_eps
    spec.config.add_source_eos = True
    spec.register_source_vocabulary(list(src_tokens))
    spec.register_target_vocabulary(list(tgt_tokens))
    _set_encoder(spec.encoder, model)
    _set_decoder(spec.decoder, model)
    spec.validate()
    spec.optimize()  # one copy of each shared matrix
    folder.mkdir()
    spec.save(str(folder))


def _checked(config: EncoderDecoderConfig) -> TransformerConfig:
    """Return the configuration. Raises ValueError if CTranslate2 has no such model."""
    assert isinstance(config, TransformerConfig)
    if not config.n_heads * config.d_k == config.n_heads * config.d_v == config.d_model:
        raise ValueError(
            f"CTranslate2 needs d_k = d_v = d_model / n_heads; "
            f"got d_k {config.d_k}, d_v {config.d_v}, d_model {config.d_model}, n_heads {config.n_heads}"
        )
    if config.positions == "words":
        raise ValueError("CTranslate2 needs positions = 'sinusoidal' or 'learned', got positions = 'words'")
    paper = TransformerConfig()
    for field in ("activation", "attention", "attention_bias", "compatibility", "output_bias", "scale_embeddings"):
        if getattr(config, field) != getattr(paper, field):
            raise ValueError(f"this export needs {field} = {getattr(paper, field)!r}, got {getattr(config, field)!r}")
    return config


def _set_encoder(spec: Any, model: Transformer) -> None:
    source: Any = model.source
    spec.embeddings[0].weight = source.embedding.weight
    spec.position_encodings.encodings = _position_table(source.positions)
    if isinstance(model.encoder.norm, nn.LayerNorm):
        _set_norm(spec.layer_norm, model.encoder.norm)
    for layer_spec, layer in zip(spec.layer, model.encoder, strict=True):
        _set_layer(layer_spec, layer)


def _set_decoder(spec: Any, model: Transformer) -> None:
    spec.embeddings.weight = model.target.embedding.weight
    spec.projection.weight = model.output_weight
    spec.position_encodings.encodings = _position_table(model.target.positions)
    if isinstance(model.decoder.norm, nn.LayerNorm):
        _set_norm(spec.layer_norm, model.decoder.norm)
    for layer_spec, layer in zip(spec.layer, model.decoder, strict=True):
        _set_layer(layer_spec, layer)


def _set_layer(spec: Any, layer: Layer) -> None:
    _set_self_attention(spec.self_attention, layer.self_attention)
    _set_norm(spec.self_attention.layer_norm, layer.self_attention_residual.norm)
    if layer.cross_attention is not None and layer.cross_attention_residual is not None:
        _set_cross_attention(spec.attention, layer.cross_attention)
        _set_norm(spec.attention.layer_norm, layer.cross_attention_residual.norm)
    assert isinstance(layer.feed_forward, FeedForward)
    _set_feed_forward(spec.ffn, layer.feed_forward)
    _set_norm(spec.ffn.layer_norm, layer.feed_forward_residual.norm)


def _set_self_attention(spec: Any, attention: SelfAttention) -> None:
    queries_keys_values, out = spec.linear
    queries_keys_values.weight = attention.w_qkv.weight
    out.weight = attention.w_o.weight


def _set_cross_attention(spec: Any, attention: CrossAttention) -> None:
    queries, keys_values, out = spec.linear
    queries.weight = attention.w_q.weight
    keys_values.weight = attention.w_kv.weight
    out.weight = attention.w_o.weight


def _set_feed_forward(spec: Any, feed_forward: FeedForward) -> None:
    for linear_spec, linear in ((spec.linear_0, feed_forward.w_1), (spec.linear_1, feed_forward.w_2)):
        linear_spec.weight, linear_spec.bias = linear.weight, linear.bias


def _set_norm(spec: Any, norm: nn.Module) -> None:
    spec.gamma, spec.beta = norm.weight, norm.bias


def _position_table(positions: nn.Module) -> Tensor:
    """Return the position encodings, (P, D); CTranslate2 decodes at most P tokens."""
    match positions:
        case SinusoidalPositions():
            return positions.table_PD
        case LearnedPositions():
            return positions.weight
        case _:
            raise TypeError(f"unknown kind of positions: {type(positions).__name__}")
