"""A stack of layers: encoder, decoder, decoder-only or bidirectional. Section 3.1.

The kinds differ only in whether the layers have cross-attention, and in the attention mask.

Shapes: B sentences, W beams of each, T query positions, S key positions, N real positions or rows of a decoding batch,
M real source positions, Q = W T new query positions of an incremental step, C cache slots, D d_model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from transduce.errors import ShapeError
from transduce.model.attention import AttentionBias, AttentionHook, AttentionKernel, AttentionKind, layer_hook
from transduce.model.decoding import DecodingState, LayerCache
from transduce.model.experts import AuxiliaryLosses
from transduce.model.front_end import Positions
from transduce.model.layers import Layer
from transduce.model.padding import EncoderOutput, PaddingInfo
from transduce.model.stack_config import StackConfig

__all__ = ["Stack"]


class Stack(nn.Module):
    """N identical layers, and a final norm if the layers are pre-norm.

    ``kind`` names the stack's self-attention for attention hooks.
    """

    def __init__(
        self,
        config: StackConfig,
        *,
        has_cross_attention: bool = False,
        kind: AttentionKind = "decoder",
        kernel: AttentionKernel = "auto",
        is_causal: bool | None = None,
    ) -> None:
        """``is_causal``: whether later positions are hidden; by default, in decoders."""
        super().__init__()
        self.config, self.has_cross_attention, self.kind = config, has_cross_attention, kind
        self.is_causal = kind == "decoder" if is_causal is None else is_causal
        self.layers = nn.ModuleList(
            Layer(config, has_cross_attention=has_cross_attention, kernel=kernel, is_causal=self.is_causal)
            for _ in range(config.n_layers)
        )
        # With pre-norm, the output of the last residual connection is not normalised.
        is_pre = config.norm == "pre"
        self.norm = nn.LayerNorm(config.d_model, eps=config.norm_eps) if is_pre else nn.Identity()

    def __iter__(self) -> Iterator[Layer]:
        return cast(Iterator[Layer], iter(self.layers))

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, index: int) -> Layer:
        return cast(Layer, self.layers[index])

    def forward(
        self,
        x_ND: Tensor,
        padding: PaddingInfo,
        *,
        memory: EncoderOutput | None = None,
        attention_hook: AttentionHook | None = None,
        auxiliary: AuxiliaryLosses | None = None,
    ) -> Tensor:
        """All positions at once, (N, D) to (N, D).

        ``memory`` is read by cross-attention, ``auxiliary`` collects the layers' auxiliary losses.
        Raises ShapeError for cross-attention without a ``memory``, or a ``memory`` without cross-attention.
        """
        self._check_memory(memory)
        for index, layer in enumerate(self):
            x_ND = layer(
                x_ND,
                padding,
                memory=memory,
                self_hook=layer_hook(attention_hook, self.kind, index),
                cross_hook=layer_hook(attention_hook, "cross", index),
                auxiliary=auxiliary,
            )
        out_ND: Tensor = self.norm(x_ND)
        return out_ND

    def start(self, positions: Positions, memory: EncoderOutput | None = None) -> DecodingState:
        """The initial decoding state: one row per sentence, keys and values of the ``memory``, an empty cache."""
        self._check_memory(memory)
        memory_BSD = None if memory is None else memory.padding.crop(memory.padding.pad(memory.states_MD))
        return DecodingState(
            tuple(LayerCache(*layer.cross_keys_values(memory_BSD)) for layer in self),
            allow_B1S=None if memory is None else memory.padding.allow_cropped_B1S(),
            ancestry_BWC=torch.ones(positions.n_rows, 1, 0, dtype=torch.bool, device=positions.device),
            is_dense=True,
            positions=positions,
            neighbourhood=self.config.neighbourhood if self.config.attention == "restricted" else None,
        )

    def extend(
        self, x_NTD: Tensor, state: DecodingState, positions: Positions, n_new_N: Tensor | None = None
    ) -> tuple[Tensor, DecodingState]:
        """Decode T more tokens of each row: their states (N, T, D), and the next decoding state.

        Causal. Only the first ``n_new_N[n]`` tokens of row n are used (None: all); the states of the others are
        undefined. ``positions`` are those after the new tokens.
        """
        n_tokens, n_at_once = x_NTD.shape[1], state.n_at_once
        if n_tokens > n_at_once:
            return self._extend_in_parts(x_NTD, state, positions, n_new_N)
        state = state.without_far_slots()
        x_BQD = x_NTD.view(-1, state.n_beams * n_tokens, x_NTD.shape[2])  # all new tokens of a sentence's beams
        allow_BQC, ancestry_BWC = state.extend_masks(n_tokens, n_new_N)
        mask, memory_mask = (AttentionBias(x, n_heads=self.config.n_heads) for x in (allow_BQC, state.allow_B1S))
        for layer, cache in zip(self, state.layers, strict=True):
            x_BQD = layer.extend(x_BQD, cache, mask=mask, n_cached=state.n_cached, memory_mask=memory_mask)
        is_dense = state.is_dense and n_new_N is None
        next_state = replace(state, ancestry_BWC=ancestry_BWC, is_dense=is_dense, positions=positions)
        out_NTD: Tensor = self.norm(x_BQD.view(-1, n_tokens, x_BQD.shape[2]))
        return out_NTD, next_state

    def _extend_in_parts(
        self, x_NTD: Tensor, state: DecodingState, positions: Positions, n_new_N: Tensor | None
    ) -> tuple[Tensor, DecodingState]:
        """``extend`` by many tokens, a few at a time, so that no mask is quadratic in their number."""
        parts, n_read = list[Tensor](), 0
        for part_NTD in torch.split(x_NTD, state.n_at_once, dim=1):
            n_tokens = part_NTD.shape[1]
            n_of_part_N = None if n_new_N is None else (n_new_N - n_read).clamp(0, n_tokens)
            out_NTD, state = self.extend(part_NTD.contiguous(), state, positions, n_of_part_N)
            parts.append(out_NTD)
            n_read += n_tokens
        return torch.cat(parts, dim=1), state

    def _check_memory(self, memory: EncoderOutput | None) -> None:
        if (memory is not None) != self.has_cross_attention:
            with_, got = ("with", "no") if self.has_cross_attention else ("without", "a")
            raise ShapeError(f"a stack {with_} cross-attention got {got} memory (encoder output)")
