"""Parameter counts and FLOPs of a model, by formula. Tables 2 and 3.

A multiply-add counts as two operations; training costs three times the forward pass (forward once, backward twice), so
each weight of a matrix costs 6 operations per token.

The configuration is enough: a model that does not fit into memory is refused before anything is built, and a model
folder whose configuration does not match its weights before these are read.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import assert_never, cast

from transduce.config import (
    AnyModelConfig,
    ByteNetConfig,
    ConvS2SConfig,
    EncoderDecoderConfig,
    LanguageModelConfig,
    LastStateConfig,
    ModelConfig,
    RecurrentConfig,
    TransformerConfig,
)

__all__ = ["MAX_DIFFERENCE", "Cost", "cost_of"]

MAX_DIFFERENCE = 64  # between target and source length, as mask-predict predicts it; larger ones count as this
OPERATIONS_PER_WEIGHT = 6


@dataclass(frozen=True, slots=True)
class Cost:
    """Parameter counts, and floating-point operations of training per target token."""

    parameters: int
    parameters_without_embeddings: int
    parameters_of_matrices: int  # without embeddings, biases and norms
    # Products with weight matrices, output projection included, assuming one source token per target token.
    flops_per_token: int
    attention_flops_per_token: int  # Q K^T and (weights) V, unmasked, for n_tokens on each side
    n_tokens: int


@dataclass(frozen=True, slots=True)
class _Weights:
    """The parameter counts of a part of a model."""

    matrices: int = 0  # each is applied once per token, except inactive experts
    vectors: int = 0  # biases and norms
    inactive: int = 0  # part of ``matrices``: experts that a token is not routed to

    def __add__(self, other: _Weights) -> _Weights:
        return _Weights(self.matrices + other.matrices, self.vectors + other.vectors, self.inactive + other.inactive)

    def __mul__(self, n: int) -> _Weights:
        return _Weights(self.matrices * n, self.vectors * n, self.inactive * n)


def cost_of(config: ModelConfig, *, n_tokens: int = 32) -> Cost:
    """The cost of a configuration, by formula; no model is built, however large.

    ``n_tokens`` is the sentence length for the cost of attention.

    >>> round(cost_of(ModelConfig()).parameters / 1e6, 2)
    63.05
    """
    if isinstance(config, LanguageModelConfig) and config.output == "tokens-and-value":
        parts = [config.model_copy(update={"output": output}) for output in ("tokens", "scalar")]
        policy, value = (asdict(cost_of(part, n_tokens=n_tokens)) for part in parts)
        return Cost(**{name: policy[name] + value[name] for name in policy} | {"n_tokens": n_tokens})
    core, n_positions, attention_flops = _core_cost(config, n_tokens)
    n_tgt = config.vocab_sizes[1]
    has_bias = isinstance(config, TransformerConfig | LanguageModelConfig) and config.output_bias
    n_output = n_tgt if has_bias else 0  # weights beside the embedding
    n_outputs = 2 if isinstance(config, TransformerConfig) and config.block_size > 1 else 1
    if _is_scalar(config):
        n_output, n_outputs = config.d_model + 1, 0
    n_core = core.matrices + core.vectors + n_output
    return Cost(
        parameters=n_core + (_n_rows(config) + n_positions) * config.d_model,
        parameters_without_embeddings=n_core,
        parameters_of_matrices=core.matrices,
        flops_per_token=OPERATIONS_PER_WEIGHT * (core.matrices - core.inactive + n_outputs * n_tgt * config.d_model),
        attention_flops_per_token=3 * attention_flops,
        n_tokens=n_tokens,
    )


def _is_scalar(config: ModelConfig) -> bool:
    """Whether the output is a number instead of a distribution over the vocabulary."""
    return isinstance(config, LanguageModelConfig) and config.output == "scalar"


def _n_rows(config: ModelConfig) -> int:
    """The number of rows of all embeddings and of the output projection, each tied one counted once."""
    n_src, n_tgt = config.vocab_sizes
    if isinstance(config, LanguageModelConfig):
        return n_tgt if config.tied_embeddings or _is_scalar(config) else 2 * n_tgt
    assert isinstance(config, EncoderDecoderConfig)
    if isinstance(config, TransformerConfig) and config.source != "tokens":
        n_src = 0
    match config.embeddings:
        case "three-way":
            return n_tgt
        case "target":
            return n_src + n_tgt
        case "separate":
            return n_src + 2 * n_tgt
        case never:
            assert_never(never)


def _core_cost(config: ModelConfig, n_tokens: int) -> tuple[_Weights, int, int]:
    """The weights without embeddings and output projection, the number of learned positions, the attention FLOPs.

    The attention FLOPs are those of the forward pass per target token: Q K^T and (weights) V.
    """
    d = config.d_model
    n_encoder, n_decoder = (0, *config.layer_counts)[-2:]
    single_head_flops = 2 * 2 * n_tokens * d  # Q K^T and (weights) V with d_k = d_v = d
    match cast(AnyModelConfig, config):
        case TransformerConfig() as config:
            attention = _attention(config)
            feed_forward = _feed_forward(config)
            encoder = (attention + feed_forward + _norm(d) * 2) * n_encoder
            decoder = (attention * 2 + feed_forward + _norm(d) * 3) * n_decoder
            stacks = encoder + decoder + _norm(d) * (2 if config.norm == "pre" else 0) + _further_heads(config)
            stacks += _front_end(config)
            if config.decoder == "masked":  # the prediction of the length, once for each sentence
                stacks += _Weights(vectors=(2 * MAX_DIFFERENCE + 1) * (d + 1))
            flops_per_key = 2 * config.n_heads * (config.d_k + config.d_v)
            n_keys = _n_keys(config, n_tokens) * (n_encoder + n_decoder) + n_tokens * n_decoder
            n_tables = 2 if config.source == "tokens" else 1
            return stacks, n_tables * _n_learned(config), flops_per_key * n_keys
        case RecurrentConfig() as config:  # the first encoder layer is bidirectional, each direction of half the width
            layers = _recurrent(config, d // 2) * 2 + _recurrent(config, d) * (n_encoder - 1 + n_decoder)
            stacks = layers + _linear(2 * d, d) * n_decoder
            if config.attention == "none":
                return stacks, 0, 0
            additive_attention = _linear(d, d) + _linear(d, d, bias=False) + _linear(d, 1, bias=False)
            return stacks + additive_attention, 0, single_head_flops
        case LastStateConfig() as config:
            return _recurrent(config, d) * (n_encoder + n_decoder) + _linear(2 * d, d), 0, 0
        case ConvS2SConfig() as config:
            gated = _convolution(d, config.kernel_width) * 2
            layers = gated * (n_encoder + n_decoder) + _linear(d, d) * (2 * n_decoder)
            return layers, _n_learned(config), single_head_flops * n_decoder
        case ByteNetConfig() as config:
            narrow = d // 2
            bottleneck = _linear(d, narrow) + _convolution(narrow, config.kernel_width) + _linear(narrow, d)
            block = _norm(d) + _norm(narrow) * 2 + bottleneck
            return block * (n_encoder + n_decoder) + _linear(2 * d, d) + _norm(d), 0, 0
        case LanguageModelConfig() as config:  # layers without cross-attention
            layers = (_attention(config) + _feed_forward(config) + _norm(d) * 2) * n_decoder
            flops_per_key = 2 * config.n_heads * (config.d_k + config.d_v)
            attention_flops = flops_per_key * _n_keys(config, n_tokens) * n_decoder
            return layers + _norm(d) * (1 if config.norm == "pre" else 0), _n_learned(config), attention_flops
        case never:
            assert_never(never)


def _n_keys(config: TransformerConfig | LanguageModelConfig, n_tokens: int) -> int:
    """The positions that a position of self-attention sees."""
    return min(n_tokens, config.neighbourhood) if config.attention == "restricted" else n_tokens


def _n_learned(config: TransformerConfig | LanguageModelConfig | ConvS2SConfig) -> int:
    """The number of learned positions in one table."""
    return config.n_positions if config.positions == "learned" else 0


def _linear(n_in: int, n_out: int, *, bias: bool = True) -> _Weights:
    return _Weights(n_in * n_out, n_out if bias else 0)


def _norm(width: int) -> _Weights:
    return _Weights(vectors=2 * width)


def _recurrent(config: RecurrentConfig | LastStateConfig, width: int) -> _Weights:
    """One layer: for each gate a matrix and a bias for the input and for the hidden state."""
    n_units = {"rnn": 1, "gru": 3, "lstm": 4}[config.cell] * width
    return _Weights(n_units * (config.d_model + width), 2 * n_units)


def _convolution(width: int, k: int) -> _Weights:
    return _Weights(k * width * width, width)


def _attention(config: TransformerConfig | LanguageModelConfig) -> _Weights:
    """The projections of one attention layer, with their biases if there are any, and its compatibility function."""
    width = config.n_heads * (config.d_k + config.d_v)  # of queries and of output; of keys and values
    biases = config.n_heads * (2 * config.d_k + config.d_v) + config.d_model if config.attention_bias else 0
    return _Weights(2 * config.d_model * width, biases) + _compatibility(config)


def _compatibility(config: TransformerConfig | LanguageModelConfig) -> _Weights:
    """The weights of the compatibility function of one attention layer."""
    match config.compatibility:
        case "scaled" | "dot" | "cosine":
            return _Weights()
        case "additive":
            return _Weights(vectors=config.n_heads * config.d_k)
        case "bilinear":
            return _Weights(config.n_heads * config.d_k**2)
        case never:
            assert_never(never)


def _front_end(config: TransformerConfig) -> _Weights:
    """The encoder's input layer, where it is not an embedding."""
    match config.source:
        case "tokens":
            return _Weights()
        case "patches":
            return _linear(config.patch_height * config.patch_width, config.d_model)
        case "frames":  # two convolutions of width 3
            return _linear(3 * config.source_width, config.d_model) + _linear(3 * config.d_model, config.d_model)
        case never:
            assert_never(never)


def _further_heads(config: TransformerConfig) -> _Weights:
    """The heads of blockwise parallel decoding; in training one of them reads each position."""
    n, head = config.block_size - 1, _linear(config.d_model, config.d_model) * 2
    return head * n + _Weights(inactive=head.matrices * max(0, n - 1))


def _feed_forward(config: TransformerConfig | LanguageModelConfig) -> _Weights:
    """One network, or all experts and their gate."""
    expert = _linear(config.d_model, config.d_ff) + _linear(config.d_ff, config.d_model)
    if config.n_experts == 1:
        return expert
    gate = _linear(config.d_model, config.n_experts, bias=False)
    inactive = expert.matrices * (config.n_experts - config.n_active_experts)
    return expert * config.n_experts + gate + _Weights(inactive=inactive)
