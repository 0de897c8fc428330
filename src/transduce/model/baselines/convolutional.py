"""Convolutional encoder-decoders: ConvS2S and ByteNet of Table 2.

Shapes: B sentences, S source positions, T target positions, D d_model.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config import ByteNetConfig, ConvS2SConfig
from transduce.model.attention import AttentionHook, layer_hook
from transduce.model.baselines.padded_model import Memory, PaddedModel, attend
from transduce.model.dropout import Dropout
from transduce.model.embedding import make_positions
from transduce.model.initialisation import initialise
from transduce.model.sequence_layers import Convolution
from transduce.model.stack_config import LAYER_NORM_EPS

__all__ = ["ByteNetModel", "ConvS2SModel"]

SCALE = 0.5**0.5  # keeps the variance when two terms are added


class GatedConvolution(nn.Module):
    """Convolution with a gated linear unit; the caller adds the residual. Dauphin et al. (2017)."""

    def __init__(self, config: ConvS2SConfig, *, is_causal: bool) -> None:
        super().__init__()
        self.value, self.gate = (
            Convolution(config.d_model, k=config.kernel_width, is_causal=is_causal) for _ in range(2)
        )
        self.dropout = Dropout(config.p_drop)

    def forward(self, x_BTD: Tensor, is_real_BT: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D), without the residual connection."""
        dropped_BTD = self.dropout(x_BTD)
        out_BTD: Tensor = self.value(dropped_BTD, is_real_BT) * F.sigmoid(self.gate(dropped_BTD, is_real_BT))
        return out_BTD


class ConvS2SModel(PaddedModel):
    """ConvS2S: gated convolutions on both sides, attention in every decoder layer. After Gehring et al. (2017)."""

    def __init__(self, config: ConvS2SConfig) -> None:
        super().__init__(config)
        d = config.d_model
        self.positions = make_positions(config)
        self.encoder = nn.ModuleList(GatedConvolution(config, is_causal=False) for _ in range(config.n_encoder_layers))
        self.decoder = nn.ModuleList(GatedConvolution(config, is_causal=True) for _ in range(config.n_decoder_layers))
        self.queries = nn.ModuleList(nn.Linear(d, d) for _ in self.decoder)
        self.output_projections = nn.ModuleList(nn.Linear(d, d) for _ in self.decoder)
        initialise(self)

    def encode(self, src_BSD: Tensor, is_real_BS: Tensor) -> Tensor:
        """(B, S, D) to (B, S, D): states plus embeddings, used as keys and as values."""
        embedded_BSD = x_BSD = self._add_positions(src_BSD)
        for layer in self.encoder:
            x_BSD = (x_BSD + layer(x_BSD, is_real_BS)) * SCALE
        return (x_BSD + embedded_BSD) * SCALE

    def decode(self, tgt_BTD: Tensor, is_real_BT: Tensor, memory: Memory, hook: AttentionHook | None = None) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        embedded_BTD = x_BTD = self._add_positions(tgt_BTD)
        layers = zip(self.decoder, self.queries, self.output_projections, strict=True)
        for n, (layer, query, output_projection) in enumerate(layers):
            h_BTD = layer(x_BTD, is_real_BT)
            q_BTD = (query(h_BTD) + embedded_BTD) * SCALE
            scores_BTS = q_BTD @ memory.states_BSD.transpose(1, 2) * self.config.d_model**-0.5
            context_BTD = attend(scores_BTS, memory, layer_hook(hook, "cross", n))
            h_BTD = (h_BTD + output_projection(context_BTD)) * SCALE
            x_BTD = (x_BTD + h_BTD) * SCALE
        return x_BTD

    def _add_positions(self, x_BTD: Tensor) -> Tensor:
        n_positions = x_BTD.shape[1]
        encoding_TD: Tensor = self.positions(torch.arange(n_positions, device=x_BTD.device), n_positions)
        return x_BTD + encoding_TD


class DilatedBlock(nn.Module):
    """A residual bottleneck block around a dilated convolution: figure 3 of Kalchbrenner et al. (2017)."""

    def __init__(self, config: ByteNetConfig, *, dilation: int, is_causal: bool) -> None:
        super().__init__()
        d, narrow = config.d_model, config.d_model // 2
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=LAYER_NORM_EPS) for width in (d, narrow, narrow))
        self.narrow, self.widen = nn.Linear(d, narrow), nn.Linear(narrow, d)
        self.convolution = Convolution(narrow, k=config.kernel_width, dilation=dilation, is_causal=is_causal)
        self.dropout = Dropout(config.p_drop)

    def forward(self, x_BTD: Tensor, is_real_BT: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        first, second, third = self.norms
        h: Tensor = self.narrow(F.relu(first(x_BTD)))
        h = self.convolution(F.relu(second(h)), is_real_BT)
        out_BTD: Tensor = x_BTD + self.dropout(self.widen(F.relu(third(h))))
        return out_BTD


class ByteNetModel(PaddedModel):
    """ByteNet: dilated convolutions, the decoder stacked on the encoder position by position, without attention.

    After Kalchbrenner et al. (2017). Target position t reads the encoder's state at source position t, and zeros past
    the end of the source.
    """

    MAX_DILATION = 16  # dilations are 1, 2, 4, 8, 16, then again from 1

    def __init__(self, config: ByteNetConfig) -> None:
        super().__init__(config)
        self.encoder = self._stack(config, config.n_encoder_layers, is_causal=False)
        self.decoder = self._stack(config, config.n_decoder_layers, is_causal=True)
        self.join = nn.Linear(2 * config.d_model, config.d_model)
        self.norm = nn.LayerNorm(config.d_model, eps=LAYER_NORM_EPS)
        initialise(self)

    def _stack(self, config: ByteNetConfig, n_layers: int, *, is_causal: bool) -> nn.ModuleList:
        n_dilations = self.MAX_DILATION.bit_length()
        return nn.ModuleList(
            DilatedBlock(config, dilation=2 ** (index % n_dilations), is_causal=is_causal) for index in range(n_layers)
        )

    def encode(self, src_BSD: Tensor, is_real_BS: Tensor) -> Tensor:
        """(B, S, D) to (B, S, D)."""
        x_BSD = src_BSD
        for block in self.encoder:
            x_BSD = block(x_BSD, is_real_BS)
        return x_BSD

    def decode(self, tgt_BTD: Tensor, is_real_BT: Tensor, memory: Memory, hook: AttentionHook | None = None) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        n_positions = tgt_BTD.shape[1]
        real_BSD = memory.states_BSD * memory.is_real_BS.unsqueeze(-1)
        aligned_BTD = F.pad(real_BSD, (0, 0, 0, max(0, n_positions - real_BSD.shape[1])))[:, :n_positions]
        x_BTD = self.join(torch.cat((tgt_BTD, aligned_BTD), dim=-1))
        for block in self.decoder:
            x_BTD = block(x_BTD, is_real_BT)
        out_BTD: Tensor = self.norm(x_BTD)
        return out_BTD
