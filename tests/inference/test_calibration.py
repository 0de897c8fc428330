"""Calibration of a translator against decoder steps fed with the reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from transduce.inference import Translator, reliability_of_tokens
from transduce.metrics import reliability_bins
from transduce.text import BOS_ID, EOS_ID

PAIRS = (("The man sleeps.", "Der Mann schläft."), ("A woman reads the old book.", "Eine Frau liest das alte Buch."))


@torch.no_grad()
def test_confidence_and_correctness_are_those_of_decoding(micro_model: Path) -> None:
    translator = Translator.load(micro_model)
    model, tokenizers = translator.model, translator.tokenizers
    confidence, is_right = list[float](), list[bool]()
    for source, target in PAIRS:
        state, last = model.start(torch.tensor([[*tokenizers.src.encode(source), EOS_ID]])), BOS_ID
        for id in [*tokenizers.tgt.encode(target), EOS_ID]:
            logits_1V, state = model.step(torch.tensor([last]), state)
            p_V = logits_1V[0].softmax(dim=0)
            confidence.append(float(p_V.max()))
            is_right.append(int(p_V.argmax()) == id)
            last = id
    ours, theirs = reliability_of_tokens(translator, PAIRS), reliability_bins(np.array(confidence), np.array(is_right))
    assert [(each.n, each.accuracy) for each in ours] == [(each.n, each.accuracy) for each in theirs]
    assert [each.confidence or 0.0 for each in ours] == pytest.approx(
        [each.confidence or 0.0 for each in theirs], rel=1e-4
    )
    assert sum(each.n for each in ours) == sum(len(tokenizers.tgt.encode(target)) + 1 for _, target in PAIRS)
