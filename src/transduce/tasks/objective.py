"""The training objective of tasks on pairs.

Shapes: B sentences, S source positions, T target positions, N real target positions, D d_model.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transduce.config import TrainingConfig
from transduce.data import Batch
from transduce.loss import LossConfig, LossSum
from transduce.model import AuxiliaryLosses, EncoderDecoder
from transduce.model.padding import pair_padding

__all__ = ["PairObjective"]


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
            src_BS, tgt_BT = src_BS.repeat(2, 1), tgt_BT.repeat(2, 1)
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
        auxiliary = None if losses is None else losses.total()
        return loss if auxiliary is None else replace(loss, auxiliary_nats=auxiliary / (1 + has_two_passes))
