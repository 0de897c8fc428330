"""Translators as CTranslate2 model folders, in float32 or int8.

Shapes: D d_model, O outputs of a projection, I its inputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from transduce.config import TransformerConfig
from transduce.exchange.libraries import library
from transduce.exchange.plain_weights import PlainAttention, PlainLayer, PlainStack, Projection, Scale, plain_model
from transduce.exchange.probes import MAX_NEW_TOKENS, Comparison, Probes, compared
from transduce.model import Transformer
from transduce.text import BOS_ID, SPECIAL_TOKENS, Tokenizers

__all__ = ["Quantization", "check_ctranslate2", "token_names", "write_ctranslate2"]

Quantization = Literal["float32", "int8"]
N_POSITIONS = 2048  # of the table of sinusoids; it decodes at most as many tokens
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu-tanh": "GELUTanh", "swish": "SWISH"}


def write_ctranslate2(
    folder: Path,
    model: Transformer,
    *,
    src_tokens: Sequence[str],
    tgt_tokens: Sequence[str],
    quantization: Quantization = "float32",
) -> None:
    """Write ``model.bin``, its configuration and vocabularies to an existing folder for ``ctranslate2.Translator``.

    The tokens are the names of the ids, in order, by which CTranslate2 reads sources and writes outputs. It appends EOS
    to the source by itself. Raises ConfigError if ctranslate2 is not installed.
    """
    specs = library("ctranslate2.specs", needed_for="the export to CTranslate2")
    config, plain = model.config, plain_model(model)
    assert plain.encoder is not None
    spec = specs.TransformerSpec.from_config(
        (config.n_encoder_layers, config.n_decoder_layers),
        config.n_heads,
        pre_norm=config.norm == "pre",
        activation=getattr(specs.Activation, ACTIVATIONS[config.activation]),
    )
    spec.config.layer_norm_epsilon = config.norm_eps
    spec.config.add_source_eos = True
    spec.config.decoder_start_token = SPECIAL_TOKENS[BOS_ID]
    spec.register_source_vocabulary(list(src_tokens))
    spec.register_target_vocabulary(list(tgt_tokens))
    _set_stack(spec.encoder, spec.encoder.embeddings[0], plain.encoder, config)
    _set_stack(spec.decoder, spec.decoder.embeddings, plain.decoder, config)
    _set_projection(spec.decoder.projection, plain.output, has_bias=config.output_bias)
    spec.validate()
    spec.optimize(quantization=None if quantization == "float32" else quantization)  # one copy of each shared matrix
    spec.save(str(folder))


def token_names(vocabulary: dict[str, int]) -> list[str]:
    """Return the tokens in the order of their ids, as CTranslate2 reads and writes them."""
    return sorted(vocabulary, key=vocabulary.__getitem__)


def _set_stack(spec: Any, embedding: Any, stack: PlainStack, config: TransformerConfig) -> None:
    embedding.weight = stack.embedding_VD
    spec.scale_embeddings = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
    spec.position_encodings.encodings = stack.position_table(N_POSITIONS)
    if stack.norm is not None:
        _set_scale(spec.layer_norm, stack.norm)
    for layer_spec, layer in zip(spec.layer, stack.layers, strict=True):
        _set_layer(layer_spec, layer)


def _set_layer(spec: Any, layer: PlainLayer) -> None:
    _set_attention(spec.self_attention, layer.self_attention, is_self=True)
    if layer.cross_attention is not None:
        _set_attention(spec.attention, layer.cross_attention, is_self=False)
    _set_projection(spec.ffn.linear_0, layer.w_1)
    _set_projection(spec.ffn.linear_1, layer.w_2)
    _set_scale(spec.ffn.layer_norm, layer.feed_forward_norm)


def _set_attention(spec: Any, attention: PlainAttention, *, is_self: bool) -> None:
    """Set the projections; those that read the same input are stacked."""
    q, k, v = attention.q, attention.k, attention.v
    groups = [(q, k, v), (attention.out,)] if is_self else [(q,), (k, v), (attention.out,)]
    for linear, group in zip(spec.linear, groups, strict=True):
        weight_OI = torch.cat([each.weight_OI for each in group])
        _set_projection(linear, Projection(weight_OI, torch.cat([each.bias_O for each in group])))
    _set_scale(spec.layer_norm, attention.norm)


def _set_projection(spec: Any, projection: Projection, *, has_bias: bool = True) -> None:
    spec.weight = projection.weight_OI
    if has_bias:
        spec.bias = projection.bias_O


def _set_scale(spec: Any, scale: Scale) -> None:
    spec.gamma, spec.beta = scale.weight_D, scale.bias_D


def check_ctranslate2(
    folder: Path, probes: Probes, tokenizers: Tokenizers, *, quantization: Quantization
) -> Comparison:
    """Load the folder by CTranslate2 and compare log-probabilities and greedy outputs with ours."""
    ctranslate2 = library("ctranslate2", needed_for="the export to CTranslate2")
    translator = ctranslate2.Translator(str(folder), device="cpu", compute_type=quantization, intra_threads=1)
    src_names, tgt_names = token_names(tokenizers.src.vocabulary), token_names(tokenizers.tgt.vocabulary)
    ids_of_name = {name: id for id, name in enumerate(tgt_names)}
    sources = [[src_names[id] for id in source[:-1]] for source in probes.sources]
    targets = [[tgt_names[id] for id in target[1:]] for target in probes.targets]
    scored = translator.score_batch(sources, targets)  # of each token, and of EOS
    difference = 0.0
    for ids, logits, scores in zip(probes.targets, probes.logits, scored, strict=True):
        log_probs = torch.from_numpy(logits).log_softmax(-1)
        ours = log_probs[np.arange(len(ids) - 1), ids[1:]].tolist()
        pairs = zip(ours, scores.log_probs, strict=False)  # not EOS, which does not follow a target that was cut
        difference = max([difference, *(abs(mine - theirs) for mine, theirs in pairs)])
    results = translator.translate_batch(
        sources, beam_size=1, max_decoding_length=MAX_NEW_TOKENS,
        suppress_sequences=[[tgt_names[id]] for id in probes.suppressed],
    )  # fmt: skip
    outputs = [[ids_of_name[name] for name in result.hypotheses[0]] for result in results]
    return compared(probes, difference, outputs)
