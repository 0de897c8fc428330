"""What training minimises for every task whose data are pairs."""

from __future__ import annotations

from dataclasses import replace

from transduce.config import TrainingConfig
from transduce.data import Batch
from transduce.loss import LossConfig, LossSum
from transduce.model import AuxiliaryLosses, EncoderDecoder

__all__ = ["PairObjective"]


class PairObjective:
    """Label-smoothed cross-entropy of the target given the source. Sections 3.1 and 5.4."""

    def __init__(self, model: EncoderDecoder, config: TrainingConfig) -> None:
        self.model, self.config = model, config

    def __call__(self, batch: Batch, update: int = 0) -> LossSum:
        """The loss of one batch, after so many updates."""
        config, model = self.config, self.model
        is_twice = config.r_drop > 0 and update >= config.r_drop_after and model.training
        src_BS, tgt_BT = batch.src_BS, batch.tgt_in_BT
        if is_twice:
            src_BS, tgt_BT = src_BS.repeat(2, 1), tgt_BT.repeat(2, 1)
        auxiliary = AuxiliaryLosses() if model.training else None
        states_ND = model(src_BS, tgt_BT, auxiliary=auxiliary)
        if is_twice:
            states_ND = states_ND.unflatten(0, (2, -1))
        how = LossConfig(config.eps_ls, config.smoothing, config.r_drop)
        loss = model.output.loss(states_ND, batch.tgt_out_N, how)
        beside = None if auxiliary is None else auxiliary.total()
        return loss if beside is None else replace(loss, auxiliary_nats=beside / 2 if is_twice else beside)
