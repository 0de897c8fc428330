"""Section 3.2 word for word in NumPy and float64: the reference for the fast layers.

Shapes: T query positions, S key positions, D d_model, K d_k, U d_v, H heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.config import TransformerConfig
from transduce.model import (
    AttentionKernel,
    CrossAttention,
    EncoderOutput,
    PaddingInfo,
    SelfAttention,
    StackConfig,
    causal_mask,
)

__all__ = ["Agreement", "agreements", "multi_head", "scaled_dot_product"]

Matrix = NDArray[np.float64]
KERNELS: tuple[AttentionKernel, ...] = ("reference", "fused")


def scaled_dot_product(
    q_TK: Matrix, k_SK: Matrix, v_SU: Matrix, *, allow_TS: NDArray[np.bool_] | None = None, is_scaled: bool = True
) -> Matrix:
    """Return softmax(Q K^T / sqrt(d_k)) V, (T, U). Equation 1; without ``is_scaled``, no 1 / sqrt(d_k)."""
    scores_TS = q_TK @ k_SK.T / (np.sqrt(q_TK.shape[1]) if is_scaled else 1.0)
    if allow_TS is not None:
        scores_TS = np.where(allow_TS, scores_TS, -np.inf)
    e_TS = np.exp(scores_TS - scores_TS.max(axis=1, keepdims=True))
    out_TU: Matrix = e_TS / e_TS.sum(axis=1, keepdims=True) @ v_SU
    return out_TU


def multi_head(
    x_TD: Matrix,
    memory_SD: Matrix,
    *,
    w_q_HDK: Matrix,
    w_k_HDK: Matrix,
    w_v_HDU: Matrix,
    w_o: Matrix,
    allow_TS: NDArray[np.bool_] | None = None,
    is_scaled: bool = True,
) -> Matrix:
    """Return Concat(head_1, ..., head_h) W^O, (T, D), head by head; ``w_o`` is (h d_v, d_model). Section 3.2.2."""
    heads = [
        scaled_dot_product(x_TD @ w_q, memory_SD @ w_k, memory_SD @ w_v, allow_TS=allow_TS, is_scaled=is_scaled)
        for w_q, w_k, w_v in zip(w_q_HDK, w_k_HDK, w_v_HDU, strict=True)
    ]
    out_TD: Matrix = np.concatenate(heads, axis=1) @ w_o
    return out_TD


@dataclass(frozen=True, slots=True)
class Agreement:
    """Largest difference between the outputs of a layer and of the formulas."""

    use: str  # of attention, as in section 3.2.3
    kernel: AttentionKernel
    difference: float
    difference_unscaled: float  # from the formulas without 1 / sqrt(d_k)


@dataclass(frozen=True, slots=True)
class Sentences:
    """A batch: the unpadded states of its sentences, and their padding info."""

    x_ND: Tensor
    lengths: tuple[int, ...]
    padding: PaddingInfo

    @staticmethod
    def random(lengths: tuple[int, ...], d_model: int) -> Sentences:
        """Draw states of sentences of these lengths from torch's global generator."""
        padding = PaddingInfo.from_mask(torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1))
        return Sentences(torch.randn(len(padding.index_N), d_model, dtype=torch.float64), lengths, padding)

    def one_by_one(self) -> list[Matrix]:
        """Return each sentence by itself, without padding."""
        return [part.numpy() for part in torch.split(self.x_ND[: sum(self.lengths)], list(self.lengths))]


def agreements(config: TransformerConfig) -> list[Agreement]:
    """Compare the three uses of attention with each kernel, over sentences of several lengths, in float64."""
    tgt, src = Sentences.random((9, 5), config.d_model), Sentences.random((7, 8), config.d_model)
    stack_config, results = StackConfig.from_config(config, n_layers=1), []
    for kernel in KERNELS:
        self_attention, cross_attention = (
            SelfAttention(stack_config, kernel=kernel).double(),
            CrossAttention(stack_config, kernel=kernel).double(),
        )
        causal_1TT = causal_mask(tgt.padding.shape_BT[1], tgt.x_ND.device)
        with torch.no_grad():
            encoder_ND = self_attention(src.x_ND, src.padding, allow_BTS=src.padding.allow_B1S())
            decoder_ND = self_attention(tgt.x_ND, tgt.padding, allow_BTS=causal_1TT)
            cross_ND = cross_attention(tgt.x_ND, tgt.padding, EncoderOutput(src.x_ND, src.padding))
        results += [
            Agreement("encoder self-attention", kernel, *_differences(encoder_ND, self_attention, src, src)),
            Agreement(
                "masked decoder self-attention",
                kernel,
                *_differences(decoder_ND, self_attention, tgt, tgt, is_causal=True),
            ),
            Agreement("encoder-decoder attention", kernel, *_differences(cross_ND, cross_attention, tgt, src)),
        ]
    return results


def _differences(
    output_ND: Tensor,
    module: SelfAttention | CrossAttention,
    queries: Sentences,
    keys: Sentences,
    *,
    is_causal: bool = False,
) -> tuple[float, float]:
    """Return the largest differences from the formulas with and without their factor."""
    output = output_ND[: queries.padding.n_real].numpy()
    expected = [
        _by_formula(module, queries, keys, is_causal=is_causal, is_scaled=is_scaled) for is_scaled in (True, False)
    ]
    scaled, unscaled = (float(np.abs(output - each).max()) for each in expected)
    return scaled, unscaled


def _by_formula(
    module: SelfAttention | CrossAttention, queries: Sentences, keys: Sentences, *, is_causal: bool, is_scaled: bool
) -> Matrix:
    w_q, w_k, w_v = _weights(module)
    outputs = [
        multi_head(
            x_TD,
            memory_SD,
            w_q_HDK=w_q,
            w_k_HDK=w_k,
            w_v_HDU=w_v,
            w_o=module.w_o.weight.detach().numpy().T,
            allow_TS=np.tri(len(x_TD), dtype=np.bool_) if is_causal else None,
            is_scaled=is_scaled,
        )
        for x_TD, memory_SD in zip(queries.one_by_one(), keys.one_by_one(), strict=True)
    ]
    return np.concatenate(outputs)


def _weights(module: SelfAttention | CrossAttention) -> list[Matrix]:
    """Return W^Q, W^K and W^V, each (H, D, K) or (H, D, U); the model stores them stacked and transposed."""
    stacked: Sequence[Tensor] = (
        torch.split(module.w_qkv.weight, list(module.widths))
        if isinstance(module, SelfAttention)
        else (module.w_q.weight, *torch.split(module.w_kv.weight, list(module.widths)))
    )
    return [matrix.detach().view(module.n_heads, -1, matrix.shape[1]).mT.numpy() for matrix in stacked]
