"""Recurrent encoder-decoders: GNMT of Table 2, and seq2seq without attention.

Shapes: B sentences, S source positions, T target positions, D d_model.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from transduce.config import LastStateConfig, RecurrentConfig
from transduce.model.attention import AttentionHook, WeightsHook, layer_hook
from transduce.model.baselines.padded_model import Memory, PaddedModel, attend
from transduce.model.dropout import Dropout
from transduce.model.initialisation import initialise
from transduce.model.sequence_layers import Recurrent

__all__ = ["LastStateModel", "RecurrentModel"]


class RecurrentModel(PaddedModel):
    """GNMT: LSTM layers with residual connections, and additive attention between decoder and encoder.

    After Wu et al. (2016): the first encoder layer is bidirectional, the others run forwards; the output of the bottom
    decoder layer is the attention query, and the context goes to all decoder layers above. Simpler than theirs: all
    layers have the same size, and there is no model parallelism. ``cell`` chooses other recurrent layers. Without
    ``attention``, the encoder's last state is the context at all positions, and all else is the same.
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        d = config.d_model
        self.encoder = nn.ModuleList(
            Recurrent(d, cell=config.cell, is_causal=n > 0) for n in range(config.n_encoder_layers)
        )
        self.decoder = nn.ModuleList(
            Recurrent(d, cell=config.cell, is_causal=True) for _ in range(config.n_decoder_layers)
        )
        self.attention = AdditiveAttention(d) if config.attention == "additive" else None
        # Projections of [state; context]: inputs of the decoder layers above the bottom one, and the model's output.
        self.joins = nn.ModuleList(nn.Linear(2 * d, d) for _ in range(config.n_decoder_layers))
        self.dropout = Dropout(config.p_drop)
        initialise(self)

    def encode(self, src_BSD: Tensor, is_real_BS: Tensor) -> Tensor:
        """(B, S, D) to (B, S, D)."""
        return _run_residual(self.encoder, src_BSD, is_real_BS, self.dropout)

    def decode(self, tgt_BTD: Tensor, is_real_BT: Tensor, memory: Memory, hook: AttentionHook | None = None) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        bottom, *above = self.decoder
        *joins, top_join = self.joins
        x_BTD = tgt_BTD + self.dropout(bottom(tgt_BTD, is_real_BT))
        if self.attention is None:
            context_BTD = _last_state(memory).unsqueeze(1).expand_as(x_BTD)
        else:
            context_BTD = self.attention(x_BTD, memory, layer_hook(hook, "cross", 0))
        for layer, join in zip(above, joins, strict=True):
            inputs_BTD = join(torch.cat((x_BTD, context_BTD), dim=-1))
            x_BTD = x_BTD + self.dropout(layer(inputs_BTD, is_real_BT))
        out_BTD: Tensor = top_join(torch.cat((x_BTD, context_BTD), dim=-1))
        return out_BTD


class AdditiveAttention(nn.Module):
    """Additive attention, scores v . tanh(W q + U k). Bahdanau, Cho and Bengio (2014)."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.w_query = nn.Linear(d_model, d_model)
        self.w_key = nn.Linear(d_model, d_model, bias=False)
        self.v = nn.Linear(d_model, 1, bias=False)

    def forward(self, q_BTD: Tensor, memory: Memory, hook: WeightsHook | None = None) -> Tensor:
        """The context vector of each query, (B, T, D)."""
        hidden_BTSD = (self.w_query(q_BTD).unsqueeze(2) + self.w_key(memory.states_BSD).unsqueeze(1)).tanh()
        return attend(self.v(hidden_BTSD).squeeze(-1), memory, hook)


class LastStateModel(PaddedModel):
    """Seq2seq without attention: the encoder's last state is all that the decoder sees of the source.

    After Sutskever, Vinyals and Le (2014). Here the last state is an input at every target position; in the paper it is
    only the decoder's initial state.
    """

    def __init__(self, config: LastStateConfig) -> None:
        super().__init__(config)
        d = config.d_model
        self.encoder, self.decoder = (
            nn.ModuleList(Recurrent(d, cell=config.cell, is_causal=True) for _ in range(n))
            for n in (config.n_encoder_layers, config.n_decoder_layers)
        )
        self.join = nn.Linear(2 * d, d)
        self.dropout = Dropout(config.p_drop)
        initialise(self)

    def encode(self, src_BSD: Tensor, is_real_BS: Tensor) -> Tensor:
        """(B, S, D) to (B, S, D)."""
        return _run_residual(self.encoder, src_BSD, is_real_BS, self.dropout)

    def decode(self, tgt_BTD: Tensor, is_real_BT: Tensor, memory: Memory, hook: AttentionHook | None = None) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        last_BTD = _last_state(memory).unsqueeze(1).expand_as(tgt_BTD)
        x_BTD: Tensor = self.join(torch.cat((tgt_BTD, last_BTD), dim=-1))
        return _run_residual(self.decoder, x_BTD, is_real_BT, self.dropout)


def _last_state(memory: Memory) -> Tensor:
    """The encoder's state at the last real position of each sentence, (B, D)."""
    last_B = memory.is_real_BS.sum(dim=1) - 1
    return memory.states_BSD[torch.arange(len(last_B), device=last_B.device), last_B]


def _run_residual(layers: nn.ModuleList, x_BTD: Tensor, is_real_BT: Tensor, dropout: Dropout) -> Tensor:
    """A stack of layers with residual connections, (B, T, D) to (B, T, D)."""
    for layer in layers:
        x_BTD = x_BTD + dropout(layer(x_BTD, is_real_BT))
    return x_BTD
