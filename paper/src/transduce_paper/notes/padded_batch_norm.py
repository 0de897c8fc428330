"""A causal language model that computes on padding, as in most toolkits, with batch norm instead of layer norm.

``transduce.model`` skips padding, so padding cannot change its results; here it does.

Shapes: B batch, T positions, N real positions in a list, D d_model.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from transduce.model import LAYER_NORM_EPS, PaddingInfo, StackConfig, TokenFrontEnd, TransformerLM
from transduce.text import PAD_ID

__all__ = ["BatchNormLanguageModel"]


class PaddedFrontEnd(TokenFrontEnd):
    """A front end that treats padding as tokens, so that all layers compute on it."""

    def forward(self, ids_BT: Tensor, padding: PaddingInfo | None = None) -> tuple[Tensor, PaddingInfo]:
        """Return the states of all positions, (B * T, D), and the padding info. ``padding`` is unused."""
        padding = PaddingInfo.without_padding(ids_BT.shape[0], ids_BT.shape[1], ids_BT.device)
        encoding_ND = self.positions(padding.position_N, padding.n_positions)
        return self.dropout(self.embedding(ids_BT.flatten()) + encoding_ND), padding


class BatchNormLanguageModel(TransformerLM):
    """A causal ``TransformerLM`` with the same initial weights; batch norm over all positions replaces layer norm.

    No token attends to padding, which is to its right; padding only enters the batch statistics.
    """

    def __init__(self, config: StackConfig, *, vocab_size: int) -> None:
        super().__init__(config, vocab_size=vocab_size)
        self.source = PaddedFrontEnd(self.source.embedding, self.source.positions, p_drop=config.p_drop)
        for layer in self.decoder:
            for residual in (layer.self_attention_residual, layer.feed_forward_residual):
                residual.register_module("norm", nn.BatchNorm1d(config.d_model, eps=LAYER_NORM_EPS))

    def forward(self, ids_BT: Tensor, **options: Any) -> Tensor:
        """Return the states (N, D) at the tokens of ids padded on the right with 0."""
        return super().forward(ids_BT, **options)[(ids_BT != PAD_ID).flatten()]
