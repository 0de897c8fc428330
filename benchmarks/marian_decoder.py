"""transformers' MarianMTModel with our weights, one of the systems of ``decode.py``.

Shapes: B sentences, S source positions, T target positions, P positions of a table, D d_model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from decoders import Ids, make_model
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel

from transduce.config import TransformerConfig
from transduce.data import pad_rows
from transduce.model import Transformer
from transduce.model.stack_config import LAYER_NORM_EPS
from transduce.text import BOS_ID, EOS_ID, PAD_ID

__all__ = ["MarianDecoder"]


class MarianDecoder:
    """``generate`` with default settings, in fp32."""

    def __init__(self, config: TransformerConfig, *, n_threads: int) -> None:
        torch.set_num_threads(n_threads)
        self.model = _marian(make_model(config))

    @torch.no_grad()
    def write(self, sources: Sequence[Ids], *, n_tokens: int, beam_size: int) -> list[Ids]:
        """See ``Decoder``."""
        src_BS = pad_rows([[*ids, EOS_ID] for ids in sources])
        ids_BT = self.model.generate(
            src_BS,
            attention_mask=(src_BS != PAD_ID).long(),
            num_beams=beam_size,
            do_sample=False,
            suppress_tokens=[PAD_ID, BOS_ID],  # as in ours
            min_new_tokens=n_tokens,
            max_new_tokens=n_tokens,
        )
        outputs: list[Ids] = ids_BT[:, 1:].tolist()  # without BOS
        return outputs


def _marian(ours: Transformer) -> Any:
    """Return a Marian model that computes the same function; its attention biases remain 0."""
    config = ours.config
    model = MarianMTModel(
        MarianConfig(
            vocab_size=config.tgt_vocab_size,
            d_model=config.d_model,
            encoder_layers=config.n_encoder_layers,
            decoder_layers=config.n_decoder_layers,
            encoder_attention_heads=config.n_heads,
            decoder_attention_heads=config.n_heads,
            encoder_ffn_dim=config.d_ff,
            decoder_ffn_dim=config.d_ff,
            activation_function="relu",
            scale_embedding=True,
            max_position_embeddings=config.n_positions,
            pad_token_id=PAD_ID,
            decoder_start_token_id=BOS_ID,
            eos_token_id=EOS_ID,
            forced_eos_token_id=None,
        )
    ).eval()
    with torch.no_grad():
        model.model.shared.weight.copy_(ours.output_weight)
        for theirs, stack, positions in (
            (model.model.encoder, ours.encoder, ours.source.positions),
            (model.model.decoder, ours.decoder, ours.target.positions),
        ):
            _copy(theirs.embed_positions, weight=positions.get_buffer("table_PD"))
            for layer, our_layer in zip(theirs.layers, stack, strict=True):
                _copy_layer(layer, our_layer)
        for module in model.modules():
            if isinstance(module, nn.LayerNorm):
                module.eps = LAYER_NORM_EPS
    return model


def _copy_layer(theirs: Any, ours: Any) -> None:
    attention = ours.self_attention
    _copy_attention(theirs.self_attn, *attention.w_qkv.weight.split(attention.w_qkv.widths), attention.w_o.weight)
    _copy_like(theirs.self_attn_layer_norm, ours.self_attention_residual.norm)
    if ours.cross_attention is not None:
        attention = ours.cross_attention
        keys_values = attention.w_kv.weight.split(attention.w_kv.widths)
        _copy_attention(theirs.encoder_attn, attention.w_q.weight, *keys_values, attention.w_o.weight)
        _copy_like(theirs.encoder_attn_layer_norm, ours.cross_attention_residual.norm)
    _copy_like(theirs.fc1, ours.feed_forward.w_1)
    _copy_like(theirs.fc2, ours.feed_forward.w_2)
    _copy_like(theirs.final_layer_norm, ours.feed_forward_residual.norm)


def _copy_attention(theirs: Any, *weights: Tensor) -> None:
    projections = (theirs.q_proj, theirs.k_proj, theirs.v_proj, theirs.out_proj)
    for projection, weight in zip(projections, weights, strict=True):
        _copy(projection, weight=weight)


def _copy_like(theirs: nn.Module, ours: Any) -> None:
    _copy(theirs, weight=ours.weight, bias=ours.bias)


def _copy(theirs: nn.Module, **tensors: Tensor) -> None:
    for name, tensor in tensors.items():
        theirs.get_parameter(name).copy_(tensor)
