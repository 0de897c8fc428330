"""The conditional masked language model of mask-predict: a Transformer whose decoder sees both sides.

Its decoder reads the target with some tokens masked, and predicts the token at each position; there is no shift and no
causal mask. The length is predicted from the encoder. Ghazvininejad et al. (2019).

Shapes: B sentences, R lengths of each, N = B R rows of the decoding batch, S source positions, T target positions,
M real source positions, D d_model, V vocabulary, J differences of length.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from transduce.config import TransformerConfig
from transduce.model.cost import MAX_DIFFERENCE
from transduce.model.padding import EncoderOutput, PaddingInfo
from transduce.model.transformer import Transformer
from transduce.text import BOS_ID, PAD_ID

__all__ = ["MASK_ID", "MaskedTransformer"]

MASK_ID = BOS_ID  # this decoder reads no BOS, so its embedding stands for a masked token


class MaskedTransformer(Transformer):
    """A Transformer with a bidirectional decoder, and a prediction of the target's length."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config, is_causal=False)
        # Deviates: Ghazvininejad et al. give the encoder a token of its own for the length; here it reads their mean.
        self.length = nn.Linear(config.d_model, 2 * MAX_DIFFERENCE + 1)
        nn.init.xavier_uniform_(self.length.weight)
        nn.init.zeros_(self.length.bias)

    def length_logits(self, memory: EncoderOutput) -> Tensor:
        """Logits (B, J) of the difference of target and source length, from ``-MAX_DIFFERENCE`` on."""
        padding = memory.padding
        states_BSD = padding.crop(padding.pad(memory.states_MD))
        allow_B1S = padding.allow_cropped_B1S()
        if allow_B1S is None:
            mean_BD = states_BSD.mean(dim=1)
        else:
            is_real_BS1 = allow_B1S.transpose(1, 2).to(states_BSD.dtype)
            mean_BD = (states_BSD * is_real_BS1).sum(dim=1) / is_real_BS1.sum(dim=1)
        out_BJ: Tensor = self.length(mean_BD)
        return out_BJ

    @staticmethod
    def length_classes(src_lengths_B: Tensor, tgt_lengths_B: Tensor) -> Tensor:
        """The index in ``length_logits`` of each target's length."""
        return (tgt_lengths_B - src_lengths_B).clamp(-MAX_DIFFERENCE, MAX_DIFFERENCE) + MAX_DIFFERENCE

    def likely_lengths(self, memory: EncoderOutput, src_lengths_B: Tensor, max_lengths_B: Tensor, n: int) -> Tensor:
        """The most probable numbers of target tokens, from 1 to the maximum of each sentence: (B, R), best first.

        Places of a row beyond the lengths that are possible are 0. R is at most ``n``. If the maximum is below all
        lengths that are predicted, it is taken, or 1.
        """
        logits_BJ = self.length_logits(memory).double()
        difference_J = torch.arange(-MAX_DIFFERENCE, MAX_DIFFERENCE + 1, device=src_lengths_B.device)
        lengths_BJ = src_lengths_B.unsqueeze(1) + difference_J
        max_lengths_B1 = max_lengths_B.clamp(min=1).unsqueeze(1)
        is_possible_BJ = (lengths_BJ >= 1) & (lengths_BJ <= max_lengths_B1)
        is_possible_BJ[:, 0] |= ~is_possible_BJ.any(dim=1)
        lengths_BJ = lengths_BJ.minimum(max_lengths_B1)
        logits_BR, index_BR = logits_BJ.masked_fill(~is_possible_BJ, -torch.inf).topk(min(n, len(difference_J)), dim=1)
        return lengths_BJ.gather(1, index_BR).masked_fill(logits_BR == -torch.inf, 0)

    def predict(self, memory: EncoderOutput, ids_NT: Tensor) -> Tensor:
        """Logits (N, T, V) of the token at each position of ids padded on the right; those at padding are undefined.

        The rows of a sentence stand together, and each sentence has as many. A row may be EOS alone.
        """
        padding = memory.padding
        states_BSD = padding.crop(padding.pad(memory.states_MD))
        n_rows = len(ids_NT) // len(states_BSD)
        allow_B1S = padding.allow_cropped_B1S()
        if allow_B1S is None:
            allow_B1S = torch.ones(states_BSD.shape[:2], dtype=torch.bool, device=ids_NT.device).unsqueeze(1)
        of_rows = PaddingInfo.from_mask(allow_B1S.squeeze(1).repeat_interleave(n_rows, dim=0))
        # Rows of a padded tensor may be more than those of the batch; what they hold is ignored.
        states_NSD = states_BSD.new_zeros(*of_rows.shape_BT, states_BSD.shape[2])
        states_NSD[: len(ids_NT), : states_BSD.shape[1]] = states_BSD.repeat_interleave(n_rows, dim=0)
        rows = EncoderOutput(of_rows.unpad(states_NSD), of_rows)
        tgt = PaddingInfo.from_mask(ids_NT != PAD_ID)
        states_ND = self.decode(rows, ids_NT, padding=tgt)
        logits_NV = self.logits(states_ND)
        logits_NTV = logits_NV.new_zeros(*ids_NT.shape, logits_NV.shape[1])
        logits_NTV[ids_NT != PAD_ID] = logits_NV
        return logits_NTV
