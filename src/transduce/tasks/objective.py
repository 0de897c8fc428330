"""The training objective of tasks on pairs.

Shapes: B sentences, S source positions, P source positions of images or audio, T target positions, M real source
positions, N real target positions, D d_model, V vocabulary, X positions that a further head predicts from.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from transduce.config import TrainingConfig
from transduce.ctc import ctc_nats
from transduce.data import Batch
from transduce.loss import LossConfig, LossSum
from transduce.model import AuxiliaryLosses, EncoderDecoder, Transformer
from transduce.model.padding import EncoderOutput, pair_padding
from transduce.text import EOS_ID, PAD_ID

__all__ = ["PairObjective", "ctc_loss", "further_heads_loss"]

DEFAULT_LOSS = LossConfig()


class PairObjective:
    """Label-smoothed cross-entropy of the target given the source. Sections 3.1 and 5.4."""

    def __init__(self, model: EncoderDecoder, config: TrainingConfig) -> None:
        self.model, self.config = model, config

    def __call__(self, batch: Batch, update: int = 0) -> LossSum:
        """Return the loss of one batch after ``update`` updates; R-Drop makes two passes."""
        config, model = self.config, self.model
        has_two_passes = config.r_drop > 0 and update >= config.r_drop_after and model.training
        src_BS, tgt_BT = batch.src_BS, batch.tgt_in_BT
        if has_two_passes:
            src_BS, tgt_BT = torch.cat((src_BS, src_BS)), tgt_BT.repeat(2, 1)
        padding = None
        if batch.lengths is not None:
            src_lengths, tgt_lengths = (np.tile(x, 1 + has_two_passes) for x in batch.lengths)
            padding = pair_padding(src_lengths, tgt_lengths, src_BS.device)
        losses = AuxiliaryLosses() if model.training else None
        states_ND = model(src_BS, tgt_BT, padding=padding, auxiliary=losses)
        if has_two_passes:
            states_ND = states_ND.unflatten(0, (2, -1))
        loss_config = LossConfig(config.eps_ls, config.smoothing, config.r_drop)
        loss = model.output.loss(states_ND, batch.tgt_out_N, loss_config)
        if losses is None:
            return loss
        further = [] if (of_layers := losses.total()) is None else [of_layers / (1 + has_two_passes)]
        if config.ctc_weight and losses.memory is not None:
            of_passes = ctc_loss(model, losses.memory, batch, n_passes=1 + has_two_passes)
            further.append(config.ctc_weight * of_passes / (1 + has_two_passes))
        if isinstance(model, Transformer) and model.lookahead_heads is not None:
            first_ND = states_ND[0] if has_two_passes else states_ND
            further.append(further_heads_loss(model, first_ND, batch, update, replace(loss_config, r_drop=0.0)))
        return replace(loss, auxiliary_nats=sum(further[1:], further[0])) if further else loss


def ctc_loss(model: EncoderDecoder, memory: EncoderOutput, batch: Batch, *, n_passes: int = 1) -> Tensor:
    """The CTC loss of the targets given the encoder's states, in nats; a scalar, the sum over the passes.

    The states predict through the output projection of the decoder, so that the loss adds no weights.
    """
    padding = memory.padding
    logits_BPV = padding.crop(padding.pad(model.logits(memory.states_MD)))
    n_positions_B = torch.full((padding.n_sentences,), padding.n_positions)
    if padding.is_key_BT is not None:
        n_positions_B = padding.crop(padding.is_key_BT).sum(dim=1)
    n_targets_B = (batch.tgt_in_BT != PAD_ID).sum(dim=1) - 1  # without EOS
    targets_N = batch.tgt_out_N[batch.tgt_out_N != EOS_ID]
    return ctc_nats(logits_BPV, n_positions_B, targets_N.repeat(n_passes), n_targets_B.repeat(n_passes))


def further_heads_loss(
    model: Transformer, states_ND: Tensor, batch: Batch, update: int, config: LossConfig = DEFAULT_LOSS
) -> Tensor:
    """The cross-entropy of what the heads of blockwise parallel decoding predict, in nats; a scalar.

    Each position is given to one of the heads, by its number and that of the update, so that all of them cost as much
    as one. Stern, Shazeer and Uszkoreit (2018) choose one head for each batch.
    """
    heads = model.lookahead_heads
    assert heads is not None
    lengths_B = (batch.tgt_in_BT != PAD_ID).sum(dim=1).cpu().numpy() if batch.lengths is None else batch.lengths[1]
    ends_N = np.repeat(np.cumsum(lengths_B), lengths_B)  # of the sentence of each position
    position_N = np.arange(len(ends_N))
    head_N = (position_N + update) % len(heads)
    states, targets = list[Tensor](), list[Tensor]()
    for head in range(len(heads)):
        n_ahead = head + 1  # beyond the token that the first head predicts
        rows = torch.from_numpy(position_N[(head_N == head) & (position_N + n_ahead < ends_N)]).to(states_ND.device)
        states.append(heads.head(head, states_ND.index_select(0, rows)))
        targets.append(batch.tgt_out_N.index_select(0, rows + n_ahead))
    return model.output.loss(torch.cat(states), torch.cat(targets), config).loss_nats
