"""How sure a translator is of references, token by token, and how often it is right: forced decoding.

Shapes: N predictions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from transduce.data import pad_rows, plan_by_length
from transduce.errors import ConfigError
from transduce.inference.translation.forced_scores import forced_pairs
from transduce.inference.translation.translator import Translator
from transduce.metrics import ReliabilityBin, reliability_bins
from transduce.text import BOS_ID

__all__ = ["reliability_of_tokens"]


@torch.no_grad()
def reliability_of_tokens(
    translator: Translator, pairs: Sequence[tuple[str, str]], *, n_bins: int = 10
) -> tuple[ReliabilityBin, ...]:
    """Sort the target tokens of pairs by the probability of the most probable token in their place.

    A token is right if it is the most probable one, given its source and the reference before it. PyTorch computes.
    Raises ConfigError for a model for mask-predict.
    """
    if not translator.engine.is_left_to_right:
        raise ConfigError("calibration needs a model that writes from left to right; this one is for mask-predict")
    model, device = translator.model, translator.model.output_weight.device
    forced, _ = forced_pairs(translator, pairs)
    lengths = [max(len(each.source), len(each.target)) for each in forced]
    confidence, is_right = [], []
    for rows in plan_by_length(lengths, max_tokens=translator.search.max_tokens_per_batch):
        src_BS = pad_rows([forced[row].source for row in rows]).to(device)
        tgt_in_BT = pad_rows([[BOS_ID, *forced[row].target[:-1]] for row in rows]).to(device)
        targets_N = torch.tensor([id for row in rows for id in forced[row].target], device=device)
        logits_NV = model.logits(model(src_BS, tgt_in_BT)).float()
        confidence_N, most_probable_N = logits_NV.softmax(dim=1).max(dim=1)
        confidence.append(confidence_N.cpu().numpy())
        is_right.append((most_probable_N == targets_N).cpu().numpy())
    return reliability_bins(np.concatenate(confidence), np.concatenate(is_right), n_bins=n_bins)
