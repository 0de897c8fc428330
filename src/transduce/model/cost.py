"""What a model costs, by formula: parameters and floating-point operations. Tables 2 and 3.

A multiplication and an addition count as two operations; training costs three times the forward pass (forward once,
backward twice), so a weight of a matrix product costs 6 operations for each token that it sees.
"""

from __future__ import annotations

from dataclasses import dataclass

from transduce.config import ModelConfig

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
    """Count a configuration without building it. ``n_tokens`` is the sentence length that attention is counted at.

    >>> round(cost_of(ModelConfig()).parameters / 1e6, 2)
    63.05
    """
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

    pairwise = 2 * n_tokens * config.n_heads * (config.d_k + config.d_v)  # Q K^T and A V of one query, forward
    return Cost(
        parameters=core + tables[config.embeddings] + positions,
        parameters_without_embeddings=core,
        flops_per_token=OPERATIONS_PER_WEIGHT * (encoder_matrices + decoder_matrices + tgt_table),
        attention_flops_per_token=3 * pairwise * (config.n_encoder_layers + 2 * config.n_decoder_layers),
        n_tokens=n_tokens,
    )
