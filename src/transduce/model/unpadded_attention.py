"""Attention in training on a CPU, by the library in C, on the rows of real positions: nothing is padded or masked.

It computes what ``dot_product_attention`` does, in fp32 whatever the rows are, and keeps no weights: the gradient
computes them again (as Dao et al., 2022). With several threads, each has some of the sentences.

Shapes: N rows of queries and M of keys (real positions, rounded up), H heads, K d_k, U d_v, O features of all heads or
of several projections.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable

from transduce.native_library import Attention, compute, computes

__all__ = ["can_attend_unpadded", "unpadded_attention"]


def can_attend_unpadded(x: Tensor) -> bool:
    """Whether the gradient of ``x`` is asked for, on a CPU that has the library, and ``x`` is fp32 or bf16."""
    return (
        x.requires_grad
        and x.device.type == "cpu"
        and x.dtype in (torch.float32, torch.bfloat16)
        and not torch.compiler.is_compiling()
        and computes(torch.get_num_threads())
    )


def unpadded_attention(
    queries_NO: Tensor,
    memory_MO: Tensor | None,
    offsets: tuple[NDArray[np.int32], NDArray[np.int32]],
    *,
    n_heads: int,
    d_k: int,
    d_v: int,
    is_causal: bool = False,
) -> Tensor:
    """The outputs (N, H U) of all heads.

    ``memory`` has the keys (M, H K), then the values (M, H U); without it they follow the queries (N, H K).
    ``offsets``: the first row of each sentence, and the end, among the queries and among the keys. Rows behind the end
    are zero, and so are their gradients.
    """
    out: Tensor = _UnpaddedAttention.apply(queries_NO, memory_MO, offsets, (n_heads, d_k, d_v, is_causal))  # type: ignore[no-untyped-call]
    return out


class _UnpaddedAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        queries_NO: Tensor,
        memory_MO: Tensor | None,
        offsets: tuple[NDArray[np.int32], NDArray[np.int32]],
        sizes: tuple[int, int, int, bool],
    ) -> Tensor:
        n_heads, _, d_v, _ = sizes
        queries_NO, memory_MO = queries_NO.contiguous(), None if memory_MO is None else memory_MO.contiguous()
        out_NO = queries_NO.new_empty(len(queries_NO), n_heads * d_v)
        log_sums_NH = torch.empty(len(queries_NO), n_heads)
        out_NO[offsets[0][-1] :] = 0
        call = Attention(*sizes, queries_NO.dtype == torch.bfloat16, *(each.ctypes.data for each in offsets))
        call.q, call.k, call.v = _places(queries_NO, memory_MO, sizes)
        call.q_stride = queries_NO.shape[1]
        call.k_stride = call.v_stride = (queries_NO if memory_MO is None else memory_MO).shape[1]
        call.out, call.log_sums = out_NO.data_ptr(), log_sums_NH.data_ptr()
        compute(call, len(offsets[0]) - 1, torch.get_num_threads())
        ctx.save_for_backward(queries_NO, memory_MO, log_sums_NH)
        ctx.call, ctx.offsets, ctx.sizes = call, offsets, sizes
        return out_NO

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        queries_NO, memory_MO, _ = ctx.saved_tensors
        out_grad_NO, call = grads[0].contiguous(), ctx.call
        queries_grad = torch.empty_like(queries_NO)
        memory_grad = None if memory_MO is None else torch.empty_like(memory_MO)
        for grad, of_grad in zip((queries_grad, memory_grad), ctx.offsets, strict=True):
            if grad is not None:
                grad[of_grad[-1] :] = 0
        call.out_grad = out_grad_NO.data_ptr()
        call.q_grad, call.k_grad, call.v_grad = _places(queries_grad, memory_grad, ctx.sizes)
        compute(call, len(ctx.offsets[0]) - 1, torch.get_num_threads())
        return queries_grad, memory_grad, None, None


def _places(queries_NO: Tensor, memory_MO: Tensor | None, sizes: tuple[int, int, int, bool]) -> tuple[int, int, int]:
    """Return the addresses of the first query, key and value."""
    n_heads, d_k, _, _ = sizes
    of_keys = n_heads * d_k * queries_NO.element_size()
    first = queries_NO.data_ptr()
    keys = first + of_keys if memory_MO is None else memory_MO.data_ptr()
    return first, keys, keys + of_keys
