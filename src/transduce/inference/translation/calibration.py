"""How sure a translator is of references, token by token, and how often it is right: forced decoding.

Shapes: N predictions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from transduce.data import pad_rows, plan_by_length
from transduce.errors import ConfigError
from transduce.inference.translation.translator import Translator
from transduce.metrics import ReliabilityBin, reliability_bins
from transduce.text import BOS_ID, EOS_ID, normalise

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
    model, tokenizers = translator.model, translator.tokenizers
    device, limit = model.output_weight.device, translator.max_source_tokens - 1
    sources = tokenizers.src.encode_batch([normalise(source) for source, _ in pairs], max_tokens=limit)
    targets = tokenizers.tgt.encode_batch([normalise(target) for _, target in pairs], max_tokens=limit)
    src_rows, tgt_rows = ([[*ids[:limit], EOS_ID] for ids in side] for side in (sources, targets))
    lengths = [max(len(src), len(tgt)) for src, tgt in zip(src_rows, tgt_rows, strict=True)]
    confidence, is_right = [], []
    for rows in plan_by_length(lengths, max_tokens=translator.search.max_tokens_per_batch):
        src_BS = pad_rows([src_rows[row] for row in rows]).to(device)
        tgt_in_BT = pad_rows([[BOS_ID, *tgt_rows[row][:-1]] for row in rows]).to(device)
        targets_N = torch.tensor([id for row in rows for id in tgt_rows[row]], device=device)
        logits_NV = model.logits(model(src_BS, tgt_in_BT)).float()
        confidence_N, most_probable_N = logits_NV.softmax(dim=1).max(dim=1)
        confidence.append(confidence_N.cpu().numpy())
        is_right.append((most_probable_N == targets_N).cpu().numpy())
    return reliability_bins(np.concatenate(confidence), np.concatenate(is_right), n_bins=n_bins)
