"""The models of other libraries (peers) that ``train.py`` compares with.

All have the layers, widths and heads of a ``TransformerConfig``, one matrix for both embeddings and the output, ReLU,
post-norm, sinusoidal positions, and dropout after the embeddings and the sublayers; ``DIFFERENCES`` lists the remaining
differences. Each library is imported in the process that uses it.

Shapes: B sentences, S source positions, T target positions, P positions of a table, D d_model, V vocabulary.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from transduce.config import TransformerConfig
from transduce.model.embedding import sinusoid
from transduce.text import BOS_ID, EOS_ID, PAD_ID

__all__ = ["ATTENTIONS", "DIFFERENCES", "PEERS", "make_peer"]

PEERS = ["marian", "x-transformers", "torch.nn"]
N_POSITIONS = 1024  # size of position tables

# The attention implementations of each peer, its default first.
ATTENTIONS = {"marian": ["sdpa", "eager"], "x-transformers": ["own", "sdpa"], "torch.nn": ["sdpa"]}

DIFFERENCES = {
    "transduce": "also computes the gradient norm and the loss without label smoothing, for its log",
    "marian": "transformers' MarianMTModel: biases in attention; sines and cosines in separate halves",
    "x-transformers": "norms without bias; a learned scale of the positions of each side",
    "torch.nn": "nn.Transformer: biases in attention, an additional norm after each stack; its dropout argument also "
    "applies to attention weights and inside the feed-forward network (tuned: switched off there)",
}


def make_peer(name: str, config: TransformerConfig, *, attention: str, is_tuned: bool) -> nn.Module:
    """Build a model from source and BOS-prefixed target, both padded on the right, to logits (B, T, V)."""
    models = {"marian": Marian, "x-transformers": XTransformers, "torch.nn": TorchTransformer}
    return models[name](config, attention=attention, is_tuned=is_tuned)


class Marian(nn.Module):
    """transformers' Marian. Documentation: model_doc/marian of transformers."""

    def __init__(self, config: TransformerConfig, *, attention: str, is_tuned: bool) -> None:
        super().__init__()
        from transformers import MarianConfig, MarianMTModel

        self.marian = MarianMTModel(
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
                dropout=config.p_drop,
                scale_embedding=True,
                max_position_embeddings=N_POSITIONS,
                pad_token_id=PAD_ID,
                decoder_start_token_id=BOS_ID,
                eos_token_id=EOS_ID,
                forced_eos_token_id=EOS_ID,
            )
        )
        self.marian.set_attn_implementation(attention)

    def forward(self, src_BS: Tensor, tgt_in_BT: Tensor) -> Tensor:
        """Return logits, (B, T, V)."""
        mask_BS = (src_BS != PAD_ID).long()
        out = self.marian(src_BS, attention_mask=mask_BS, decoder_input_ids=tgt_in_BT, use_cache=False)
        logits_BTV: Tensor = out.logits
        return logits_BTV


class XTransformers(nn.Module):
    """x-transformers' XTransformer. Documentation: its README."""

    def __init__(self, config: TransformerConfig, *, attention: str, is_tuned: bool) -> None:
        super().__init__()
        from x_transformers import XTransformer

        both: dict[str, Any] = {
            "num_tokens": config.tgt_vocab_size,
            "max_seq_len": N_POSITIONS,
            "heads": config.n_heads,
            "attn_dim_head": config.d_k,
            "attn_flash": attention == "sdpa",
            "ff_mult": config.d_ff / config.d_model,
            "ff_custom_activation": nn.ReLU(),
            "emb_dropout": config.p_drop,
            "attn_sublayer_dropout": config.p_drop,
            "ff_sublayer_dropout": config.p_drop,
            "scaled_sinu_pos_emb": True,
            "pre_norm": False,
        }
        self.model = XTransformer(
            dim=config.d_model,
            tie_token_emb=True,
            enc_depth=config.n_encoder_layers,
            dec_depth=config.n_decoder_layers,
            **{f"{side}_{name}": value for side in ("enc", "dec") for name, value in both.items()},
        )
        self.decoder = self.model.decoder.net  # without the wrapper, whose loss has no label smoothing
        self.decoder.to_logits.weight = self.model.encoder.token_emb.emb.weight

    def forward(self, src_BS: Tensor, tgt_in_BT: Tensor) -> Tensor:
        """Return logits, (B, T, V)."""
        mask_BS = src_BS != PAD_ID
        memory_BSD = self.model.encoder(src_BS, mask=mask_BS, return_embeddings=True)
        logits_BTV: Tensor = self.decoder(tgt_in_BT, context=memory_BSD, context_mask=mask_BS)
        return logits_BTV


class TorchTransformer(nn.Module):
    """torch.nn.Transformer with embeddings, as in torch's tutorial on translation."""

    positions_PD: Tensor

    def __init__(self, config: TransformerConfig, *, attention: str, is_tuned: bool) -> None:
        super().__init__()
        self.is_tuned = is_tuned
        self.embedding = nn.Embedding(config.tgt_vocab_size, config.d_model)
        self.register_buffer("positions_PD", sinusoid(N_POSITIONS, config.d_model).float())
        self.dropout = nn.Dropout(config.p_drop)
        self.transformer = nn.Transformer(
            config.d_model,
            config.n_heads,
            config.n_encoder_layers,
            config.n_decoder_layers,
            config.d_ff,
            config.p_drop,
            batch_first=True,
        )
        self.output = nn.Linear(config.d_model, config.tgt_vocab_size, bias=False)
        self.output.weight = self.embedding.weight
        if is_tuned:
            self._drop_only_after_sublayers()

    def _drop_only_after_sublayers(self) -> None:
        for module in self.transformer.modules():
            match module:
                case nn.MultiheadAttention():
                    module.dropout = 0.0
                case nn.TransformerEncoderLayer() | nn.TransformerDecoderLayer():
                    module.dropout.p = 0.0

    def forward(self, src_BS: Tensor, tgt_in_BT: Tensor) -> Tensor:
        """Return logits, (B, T, V)."""
        n_tgt = tgt_in_BT.shape[1]
        is_pad_BS = src_BS == PAD_ID
        states_BTD = self.transformer(
            self._embed(src_BS),
            self._embed(tgt_in_BT),
            tgt_mask=torch.ones(n_tgt, n_tgt, dtype=torch.bool).triu(1),
            tgt_is_causal=True if self.is_tuned else None,
            src_key_padding_mask=is_pad_BS,
            # With padding on the right the causal mask is sufficient, and attention without a second mask is faster.
            tgt_key_padding_mask=None if self.is_tuned else tgt_in_BT == PAD_ID,
            memory_key_padding_mask=is_pad_BS,
        )
        logits_BTV: Tensor = self.output(states_BTD)
        return logits_BTV

    def _embed(self, ids_BT: Tensor) -> Tensor:
        x_BTD = self.embedding(ids_BT) * math.sqrt(self.embedding.embedding_dim)
        out_BTD: Tensor = self.dropout(x_BTD + self.positions_PD[: ids_BT.shape[1]])
        return out_BTD
