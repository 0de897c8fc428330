"""Connectionist temporal classification (Graves et al., 2006): a loss of text against positions in the same order.

Each position predicts a token or a blank. The probability of a text is the sum over all ways to write it: repeated
tokens count once, blanks are left out. Beside the decoder's loss it teaches the encoder early where the tokens are
(Watanabe et al., 2017).

Shapes: B sentences, P source positions, V vocabulary, N real target positions of all sentences.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from transduce.text import PAD_ID

__all__ = ["BLANK_ID", "ctc_nats"]

BLANK_ID = PAD_ID  # no text has it


def ctc_nats(logits_BPV: Tensor, n_positions_B: Tensor, targets_N: Tensor, n_targets_B: Tensor) -> Tensor:
    """Return the sum of - log P(text | positions) over the sentences, in nats; a scalar.

    ``targets_N`` has the tokens of one sentence after the other, without EOS. A text that does not fit into its
    positions has no loss. It is computed on the CPU: on GPUs the gradient is not deterministic.

    >>> import torch
    >>> even = torch.zeros(1, 2, 2)  # two positions, blank or token 1: "1", "1 blank" and "blank 1" of four ways
    >>> float(ctc_nats(even, torch.tensor([2]), torch.tensor([1]), torch.tensor([1])).exp())
    1.333...
    """
    log_p_PBV = logits_BPV.float().log_softmax(dim=-1).transpose(0, 1).cpu()
    nll_B = F.ctc_loss(
        log_p_PBV, targets_N.cpu(), n_positions_B.cpu(), n_targets_B.cpu(), blank=BLANK_ID, reduction="none",
        zero_infinity=True,
    )  # fmt: skip
    return nll_B.sum().to(logits_BPV.device)
