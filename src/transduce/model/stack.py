"""A stack of layers: the encoder, the decoder, a decoder without a source, or one that sees both ways. Section 3.1.

What makes the difference is whether a layer has cross-attention, and which positions may attend to which.

Shapes: B sentences, W rows (beams) of each, T positions, N real positions in a list, M those of a source, D d_model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import torch
from torch import Tensor, nn

from transduce.errors import ShapeError
from transduce.model.attention import AttentionBias, AttentionHook, AttentionKernel, AttentionKind, layer_hook
from transduce.model.decoding import DecodingState, LayerCache
from transduce.model.experts import AuxiliaryLosses
from transduce.model.front_end import Positions
from transduce.model.layers import LAYER_NORM_EPS, Layer
from transduce.model.padding import EncoderOutput, PaddingInfo
from transduce.model.stack_config import StackConfig

__all__ = ["Stack"]


class Stack(nn.Module):
    """N equal layers, and a last norm where the norms stand inside the residual branches.

    ``kind`` is what an attention sink is told of its self-attention.
    """

    def __init__(
        self,
        config: StackConfig,
        *,
        has_cross_attention: bool = False,
        kind: AttentionKind = "decoder",
        kernel: AttentionKernel = "auto",
    ) -> None:
        super().__init__()
        self.config, self.has_cross_attention, self.kind = config, has_cross_attention, kind
        self.layers = nn.ModuleList(
            Layer(config, has_cross_attention=has_cross_attention, kernel=kernel) for _ in range(config.n_layers)
        )
        # With the norm inside the residual branch, the sum that leaves the stack is not normalised yet.
        is_pre = config.norm == "pre"
        self.norm = nn.LayerNorm(config.d_model, eps=LAYER_NORM_EPS) if is_pre else nn.Identity()

    def __iter__(self) -> Iterator[Layer]:
        return cast(Iterator[Layer], iter(self.layers))

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, number: int) -> Layer:
        return cast(Layer, self.layers[number])

    def forward(
        self,
        x_ND: Tensor,
        padding: PaddingInfo,
        *,
        allow_BTS: Tensor | None,
        memory: EncoderOutput | None = None,
        attention_hook: AttentionHook | None = None,
        auxiliary: AuxiliaryLosses | None = None,
    ) -> Tensor:
        """(N, D) to (N, D). ``allow_BTS`` says which positions of a sentence may attend to which; None: all to all.

        ``memory`` is what cross-attention reads, ``auxiliary`` collects what the layers would minimise beside the loss.
        Raises ShapeError if there is cross-attention and no ``memory``, or the other way round.
        """
        self._require_fit(memory)
        for number, layer in enumerate(self):
            x_ND = layer(
                x_ND,
                padding,
                allow_BTS=allow_BTS,
                memory=memory,
                self_hook=layer_hook(attention_hook, self.kind, number),
                cross_hook=layer_hook(attention_hook, "cross", number),
                auxiliary=auxiliary,
            )
        out_ND: Tensor = self.norm(x_ND)
        return out_ND

    def start(self, positions: Positions, memory: EncoderOutput | None = None) -> DecodingState:
        """The state before the first token of each sentence: one row each, which has seen ``memory`` and no token."""
        self._require_fit(memory)
        memory_BSD = None if memory is None else memory.padding.pad(memory.states_MD)
        return DecodingState(
            tuple(LayerCache(*layer.cross_keys_values(memory_BSD)) for layer in self),
            allow_B1S=None if memory is None else memory.padding.allow_B1S(),
            ancestry_BWC=torch.ones(positions.n_rows, 1, 0, dtype=torch.bool, device=positions.device),
            is_dense=True,
            positions=positions,
        )

    def extend(
        self, x_NTD: Tensor, state: DecodingState, positions: Positions, n_new_N: Tensor | None = None
    ) -> tuple[Tensor, DecodingState]:
        """The states (N, T, D) of T more tokens of each row, and the decoding state that has seen them.

        No token sees a later one. Of row n only the first ``n_new_N[n]`` tokens are new (None: all), what comes out at
        the others means nothing. ``positions`` is where the rows stand afterwards.
        """
        n_tokens = x_NTD.shape[1]
        x_BQD = x_NTD.view(-1, state.n_beams * n_tokens, x_NTD.shape[2])  # the tokens of all rows of a sentence
        allow_BQC, ancestry_BWC = state.seen_by_new(n_tokens, n_new_N)
        masks = [AttentionBias(allow, n_heads=self.config.n_heads) for allow in (allow_BQC, state.allow_B1S)]
        for layer, cache in zip(self, state.layers, strict=True):
            x_BQD = layer.extend(x_BQD, cache, mask=masks[0], n_cached=state.n_cached, memory_mask=masks[1])
        is_dense = state.is_dense and n_new_N is None
        after = DecodingState(state.layers, state.allow_B1S, ancestry_BWC, is_dense, positions)
        out_NTD: Tensor = self.norm(x_BQD.view(-1, n_tokens, x_BQD.shape[2]))
        return out_NTD, after

    def _require_fit(self, memory: EncoderOutput | None) -> None:
        if (memory is not None) != self.has_cross_attention:
            layers, got = ("with", "none") if self.has_cross_attention else ("without", "one")
            raise ShapeError(f"a stack {layers} cross-attention got {got} of an encoder's outputs to attend to")
