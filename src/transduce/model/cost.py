"""What a model costs, by formula: parameters and floating-point operations. Tables 2 and 3.

A multiplication and an addition count as two operations; training costs three times the forward pass (forward once,
backward twice), so a weight of a matrix product costs 6 operations for each token that it sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never, cast

from transduce.config import (
    AnyModelConfig,
    ByteNetConfig,
    ConvS2SConfig,
    LastStateConfig,
    ModelConfig,
    RecurrentConfig,
    TransformerConfig,
)

__all__ = ["Cost", "cost_of"]

OPERATIONS_PER_WEIGHT = 6


@dataclass(frozen=True, slots=True)
class Cost:
    """Sizes in single parameters, work in floating-point operations of training."""

    parameters: int
    parameters_without_embeddings: int
    parameters_of_matrices: int  # of those, in matrices; the others are biases and norms
    # All matrix products with weights, softmax included; a target token and about one source token.
    flops_per_token: int
    attention_flops_per_token: int  # the products Q K^T and A V, whole squares, at n_tokens on each side
    n_tokens: int


@dataclass(frozen=True, slots=True)
class _Weights:
    """How many weights a part of a model has, by what they are for; parts add up, and come several times."""

    matrices: int = 0  # each sees every token once
    vectors: int = 0  # biases and norms
    idle: int = 0  # of the matrices, those of experts that a token does not ask

    def __add__(self, other: _Weights) -> _Weights:
        return _Weights(self.matrices + other.matrices, self.vectors + other.vectors, self.idle + other.idle)

    def __mul__(self, times: int) -> _Weights:
        return _Weights(self.matrices * times, self.vectors * times, self.idle * times)


def cost_of(config: ModelConfig, *, n_tokens: int = 32) -> Cost:
    """Count a configuration by formula: nothing is built, however large it is.

    ``n_tokens`` is the sentence length that attention is counted at.

    >>> round(cost_of(ModelConfig()).parameters / 1e6, 2)
    63.05
    """
    core, n_positions, attention_flops = _of_system(config, n_tokens)
    tgt_table = config.tgt_vocab_size * config.d_model
    src_table = config.src_vocab_size * config.d_model
    tables = {"three-way": tgt_table, "target": tgt_table + src_table, "separate": 2 * tgt_table + src_table}
    n_core = core.matrices + core.vectors
    return Cost(
        parameters=n_core + tables[config.embeddings] + n_positions * config.d_model,
        parameters_without_embeddings=n_core,
        parameters_of_matrices=core.matrices,
        flops_per_token=OPERATIONS_PER_WEIGHT * (core.matrices - core.idle + tgt_table),
        attention_flops_per_token=3 * attention_flops,
        n_tokens=n_tokens,
    )


def _of_system(config: ModelConfig, n_tokens: int) -> tuple[_Weights, int, int]:
    """All but the tables and the output matrix; how many positions are learned, in all tables; operations of attention.

    The latter are forward, of one target token: scores and weighted values.
    """
    d, n_encoder, n_decoder = config.d_model, config.n_encoder_layers, config.n_decoder_layers
    asked_once = 2 * 2 * n_tokens * d
    match cast(AnyModelConfig, config):
        case TransformerConfig() as config:
            attention = _Weights(2 * d * config.n_heads * (config.d_k + config.d_v))
            feed_forward = _feed_forward(config)
            encoder = (attention + feed_forward + _norm(d) * 2) * n_encoder
            decoder = (attention * 2 + feed_forward + _norm(d) * 3) * n_decoder
            stacks = encoder + decoder + _norm(d) * (2 if config.norm == "pre" else 0)
            pairwise = 2 * n_tokens * config.n_heads * (config.d_k + config.d_v)
            return stacks, 2 * _n_learned(config), pairwise * (n_encoder + 2 * n_decoder)
        case RecurrentConfig():  # its first encoder layer runs both ways, each of half the width
            asked = _linear(d, d) + _linear(d, d, bias=False) + _linear(d, 1, bias=False)
            layers = _lstm(d, d // 2) * 2 + _lstm(d, d) * (n_encoder - 1 + n_decoder)
            return layers + asked + _linear(2 * d, d) * n_decoder, 0, asked_once
        case LastStateConfig():
            return _lstm(d, d) * (n_encoder + n_decoder) + _linear(2 * d, d), 0, 0
        case ConvS2SConfig() as config:
            gated = _convolution(d, config.kernel_width) * 2
            layers = gated * (n_encoder + n_decoder) + _linear(d, d) * (2 * n_decoder)
            return layers, _n_learned(config), asked_once * n_decoder
        case ByteNetConfig() as config:
            narrow = d // 2
            through = _linear(d, narrow) + _convolution(narrow, config.kernel_width) + _linear(narrow, d)
            block = _norm(d) + _norm(narrow) * 2 + through
            return block * (n_encoder + n_decoder) + _linear(2 * d, d) + _norm(d), 0, 0
        case never:
            assert_never(never)


def _n_learned(config: TransformerConfig | ConvS2SConfig) -> int:
    """How many positions are learned, in one table."""
    return config.n_positions if config.positions == "learned" else 0


def _linear(n_in: int, n_out: int, *, bias: bool = True) -> _Weights:
    return _Weights(n_in * n_out, n_out if bias else 0)


def _norm(width: int) -> _Weights:
    return _Weights(vectors=2 * width)


def _lstm(n_in: int, width: int) -> _Weights:
    """Four gates, each with a matrix and a bias for what comes in and for the state."""
    return _Weights(4 * width * (n_in + width), 8 * width)


def _convolution(width: int, k: int) -> _Weights:
    return _Weights(k * width * width, width)


def _feed_forward(config: TransformerConfig) -> _Weights:
    """One network, or the experts and what chooses among them."""
    one = _linear(config.d_model, config.d_ff) + _linear(config.d_ff, config.d_model)
    if config.n_experts == 1:
        return one
    gate = _linear(config.d_model, config.n_experts, bias=False)
    idle = one.matrices * (config.n_experts - config.n_active_experts)
    return one * config.n_experts + gate + _Weights(idle=idle)
