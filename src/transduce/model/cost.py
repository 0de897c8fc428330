"""What a model costs, by formula: parameters and floating-point operations. Tables 2 and 3.

A multiplication and an addition count as two operations; training costs three times the forward pass (forward once,
backward twice), so a weight of a matrix product costs 6 operations for each token that it sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

import torch
from torch import nn

from transduce.config import ModelConfig
from transduce.model.embedding import LearnedPositions, TokenEmbedding
from transduce.model.experts import MixtureOfExperts
from transduce.model.make import make_model

__all__ = ["Cost", "cost_of"]

OPERATIONS_PER_WEIGHT = 6


@dataclass(frozen=True, slots=True)
class Cost:
    """Sizes in single parameters, work in floating-point operations of training."""

    parameters: int
    parameters_without_embeddings: int
    flops_per_token: (
        int  # all matrix products with weights, softmax included; a target token and about one source token
    )
    attention_flops_per_token: int  # the products Q K^T and A V, whole squares, at n_tokens on each side
    n_tokens: int


def cost_of(config: ModelConfig, *, n_tokens: int = 32) -> Cost:
    """Count a configuration: the Transformer's by formula, any other's by building it without memory.

    ``n_tokens`` is the sentence length that attention is counted at.

    >>> round(cost_of(ModelConfig()).parameters / 1e6, 2)
    63.05
    """
    if config.system != "transformer" or config.n_experts > 1:
        return _cost_of_built(config, n_tokens)
    attention = 2 * config.d_model * config.n_heads * (config.d_k + config.d_v)
    feed_forward = 2 * config.d_model * config.d_ff
    feed_forward_biases = config.d_ff + config.d_model
    norm = 2 * config.d_model
    encoder_matrices = config.n_encoder_layers * (attention + feed_forward)
    decoder_matrices = config.n_decoder_layers * (2 * attention + feed_forward)
    rest = config.n_encoder_layers * (feed_forward_biases + 2 * norm)
    rest += config.n_decoder_layers * (feed_forward_biases + 3 * norm)
    if config.norm == "pre":
        rest += 2 * norm
    core = encoder_matrices + decoder_matrices + rest

    tgt_table = config.tgt_vocab_size * config.d_model
    src_table = config.src_vocab_size * config.d_model
    tables = {"three-way": tgt_table, "target": tgt_table + src_table, "separate": 2 * tgt_table + src_table}
    positions = 2 * config.n_positions * config.d_model if config.positions == "learned" else 0

    return Cost(
        parameters=core + tables[config.embeddings] + positions,
        parameters_without_embeddings=core,
        flops_per_token=OPERATIONS_PER_WEIGHT * (encoder_matrices + decoder_matrices + tgt_table),
        attention_flops_per_token=3 * _attention_flops(config, n_tokens),
        n_tokens=n_tokens,
    )


def _cost_of_built(config: ModelConfig, n_tokens: int) -> Cost:
    """Every matrix sees each token once, but for experts that are not asked."""
    with torch.device("meta"):
        model = make_model(config)
    n_parameters = _n_entries(model)
    tables = [module for module in model.modules() if isinstance(module, TokenEmbedding | LearnedPositions)]
    outside = sum(map(_n_entries, tables)) + (0 if model.output is None else _n_entries(model.output))
    inside = {id(weight) for table in tables for weight in table.parameters()} | {id(model.output_weight)}
    matrices = sum(weight.numel() for weight in model.parameters() if weight.ndim > 1 and id(weight) not in inside)
    for mixture in (module for module in model.modules() if isinstance(module, MixtureOfExperts)):
        matrices -= sum(
            weight.numel() for expert in mixture.experts[mixture.n_active :] for weight in expert.parameters()
            if weight.ndim > 1
        )  # fmt: skip
    return Cost(
        parameters=n_parameters,
        parameters_without_embeddings=n_parameters - outside,
        flops_per_token=OPERATIONS_PER_WEIGHT * (matrices + config.tgt_vocab_size * config.d_model),
        attention_flops_per_token=3 * _attention_flops(config, n_tokens),
        n_tokens=n_tokens,
    )


def _n_entries(module: nn.Module) -> int:
    return sum(weight.numel() for weight in module.parameters())


def _attention_flops(config: ModelConfig, n_tokens: int) -> int:
    """Forward, of one target token: scores and weighted values."""
    once = 2 * 2 * n_tokens * config.d_model
    match config.system:
        case "transformer":
            pairwise = 2 * n_tokens * config.n_heads * (config.d_k + config.d_v)
            return pairwise * (config.n_encoder_layers + 2 * config.n_decoder_layers)
        case "recurrent":
            return once
        case "convs2s":
            return once * config.n_decoder_layers
        case "last-state" | "bytenet":
            return 0
        case _:
            assert_never(config.system)
