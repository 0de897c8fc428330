"""Translation by a conditional masked language model, which predicts all tokens at once. Ghazvininejad et al. (2019).

Shapes: B sentences, T target positions, N real target positions, X masked ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config import RunConfig, TrainingConfig, TransformerConfig
from transduce.data import Batch
from transduce.loss import LossConfig, LossSum
from transduce.model import AuxiliaryLosses, EncoderDecoder, MaskedTransformer
from transduce.model.masked_transformer import MASK_ID
from transduce.model.padding import PairPadding, pair_padding
from transduce.tasks.pairs.translation import TranslationTask, TranslationValidation
from transduce.tasks.registry import register
from transduce.text import PAD_ID

__all__ = ["MaskPredict", "MaskedObjective"]

LENGTH_WEIGHT = 0.1  # of the loss of the length, for each target token
EVALUATION_SEED = 0  # of the masks of dev


class MaskedObjective:
    """Cross-entropy of masked target tokens given the source and the others, and of the target's length.

    The number of masked tokens of a sentence is uniform from one to all. The sum over the masked ones is scaled to all
    tokens of the batch, so that the loss per token is that of a masked token.
    """

    def __init__(self, model: MaskedTransformer, config: TrainingConfig) -> None:
        self.model, self.config = model, config

    def __call__(self, batch: Batch, update: int = 0) -> LossSum:
        """Return the loss of one batch; outside of training, masks have a fixed seed, and the length has no loss."""
        model, is_real_BT = self.model, batch.tgt_in_BT != PAD_ID
        generator = None if model.training else torch.Generator().manual_seed(EVALUATION_SEED)
        is_masked_BT = masked_positions(is_real_BT.sum(dim=1) - 1, is_real_BT.shape[1], generator)
        tgt_BT = torch.zeros_like(batch.tgt_in_BT).masked_scatter(is_real_BT, batch.tgt_out_N)
        padding: PairPadding | tuple[None, None] = (None, None)
        if batch.lengths is not None:
            padding = pair_padding(*batch.lengths, batch.src_BS.device)
        losses = AuxiliaryLosses() if model.training else None
        memory = model.encode(batch.src_BS, padding=padding[0], auxiliary=losses)
        states_ND = model.decode(
            memory, tgt_BT.masked_fill(is_masked_BT, MASK_ID), padding=padding[1], auxiliary=losses
        )
        rows_X = is_masked_BT[is_real_BT].nonzero().squeeze(1)
        config = LossConfig(self.config.eps_ls, self.config.smoothing)
        loss = model.output.loss(states_ND.index_select(0, rows_X), batch.tgt_out_N.index_select(0, rows_X), config)
        scale = batch.n_tgt_tokens / max(1, len(rows_X))
        loss = LossSum(loss.loss_nats * scale, loss.nll_nats * scale, batch.n_tgt_tokens)
        if losses is None:
            return loss
        src_lengths_B = (batch.src_BS != PAD_ID).sum(dim=1)  # EOS counts on both sides
        classes_B = model.length_classes(src_lengths_B, is_real_BT.sum(dim=1))
        length_nats = F.cross_entropy(model.length_logits(memory).float(), classes_B)
        auxiliary = LENGTH_WEIGHT * batch.n_tgt_tokens * length_nats
        of_layers = losses.total()
        return replace(loss, auxiliary_nats=auxiliary if of_layers is None else auxiliary + of_layers)


def masked_positions(n_tokens_B: Tensor, n_positions: int, generator: torch.Generator | None = None) -> Tensor:
    """Which of the first ``n_tokens`` positions of each row are masked: bool, (B, T). Their number is uniform from 1.

    EOS, which follows the tokens, is never masked. Draws are made on the CPU, from torch's own generator by default.

    >>> masked_positions(torch.tensor([1, 0]), 3).tolist()
    [[True, False, False], [False, False, False]]
    """
    lengths_B1 = n_tokens_B.cpu().unsqueeze(1)
    share_B1 = torch.rand(len(lengths_B1), 1, generator=generator, dtype=torch.float64)
    n_masked_B1 = (share_B1 * lengths_B1).long() + 1  # from 1 to n
    keys_BT = torch.rand(len(lengths_B1), n_positions, generator=generator, dtype=torch.float64)
    is_token_BT = torch.arange(n_positions) < lengths_B1
    rank_BT = keys_BT.masked_fill(~is_token_BT, 2.0).argsort(dim=1).argsort(dim=1)
    return ((rank_BT < n_masked_B1) & is_token_BT).to(n_tokens_B.device)


class MaskPredictValidation(TranslationValidation):
    """Perplexity of masked tokens, and BLEU."""

    def _objective(self, model: EncoderDecoder) -> MaskedObjective:
        assert isinstance(model, MaskedTransformer)
        return MaskedObjective(model, self.config)


class MaskPredict(TranslationTask):
    """Translation with a constant number of passes: a masked language model of the target, given the source."""

    name = used_as = "mask-predict"
    reads = frozenset({"training.bidirectional_epochs"})
    searches = ("mask-predict",)
    system = TransformerConfig
    own_model: ClassVar[Mapping[str, str]] = {"decoder": "masked"}
    validation = MaskPredictValidation

    def objective(self, model: nn.Module, config: RunConfig) -> MaskedObjective:
        """Return the cross-entropy of masked tokens and of the length."""
        assert isinstance(model, MaskedTransformer)
        return MaskedObjective(model, config.training)


register(MaskPredict())
