"""CTC beside its definition: all ways to write a text are counted up. The objective adds it to the decoder's loss."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby, product

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from transduce.config import TrainingConfig, TransformerConfig
from transduce.ctc import BLANK_ID, ctc_nats
from transduce.data import Batch
from transduce.data.collate import collate_pairs
from transduce.model import Transformer
from transduce.tasks.objective import PairObjective, ctc_loss


def written(way: tuple[int, ...]) -> list[int]:
    """What a way writes: repetitions once, no blanks."""
    return [token for token, _ in groupby(way) if token != BLANK_ID]


def counted_up(logits_PV: np.ndarray, text: list[int]) -> float:
    """- log of the summed probability of all ways to write a text."""
    p_PV = np.exp(logits_PV) / np.exp(logits_PV).sum(axis=1, keepdims=True)
    ways = (way for way in product(range(p_PV.shape[1]), repeat=len(p_PV)) if written(way) == text)
    return -float(np.log(sum(np.prod([p_PV[place, token] for place, token in enumerate(way)]) for way in ways)))


@pytest.mark.parametrize("seed", range(3))
def test_all_ways_are_counted(seed: int) -> None:
    texts, n_positions = [[1, 2], [2, 2], [1], [3, 1, 3]], [5, 4, 2, 5]
    logits_BPV = np.random.default_rng(seed).normal(size=(4, 5, 4))
    expected = sum(
        counted_up(logits_BPV[row, :n], text) for row, (n, text) in enumerate(zip(n_positions, texts, strict=True))
    )
    found = ctc_nats(
        torch.from_numpy(logits_BPV),
        torch.tensor(n_positions),
        torch.tensor([token for text in texts for token in text]),
        torch.tensor([len(text) for text in texts]),
    )
    assert float(found) == pytest.approx(expected, rel=1e-5)


def test_a_text_that_does_not_fit_has_no_loss_and_no_gradient() -> None:
    logits_BPV = torch.randn(1, 2, 4, requires_grad=True)
    loss = ctc_nats(logits_BPV, torch.tensor([2]), torch.tensor([1, 1]), torch.tensor([2]))  # needs a blank between
    loss.backward()  # type: ignore[no-untyped-call]
    assert float(loss.detach()) == 0
    assert logits_BPV.grad is not None
    assert not logits_BPV.grad.any()


def images(columns_JX: list[Tensor], texts: list[list[int]]) -> Batch:
    """A batch of images with their texts, in patches of two columns."""
    pairs = collate_pairs([[1]] * len(texts), texts, rows=tuple(range(len(texts))))
    n_columns = [len(each) for each in columns_JX]
    lengths = np.array([n // 2 for n in n_columns]), np.array([len(text) + 1 for text in texts])
    return replace(pairs, src_BS=pad_sequence(columns_JX, batch_first=True), lengths=lengths)


def test_the_objective_adds_it_in_training_only() -> None:
    torch.manual_seed(1)
    model = Transformer(
        TransformerConfig(
            source="patches", source_width=4, patch_height=4, patch_width=2, n_encoder_layers=1, n_decoder_layers=1,
            d_model=16, d_ff=16, n_heads=2, d_k=8, d_v=8, p_drop=0.0, src_vocab_size=12, tgt_vocab_size=12,
        )
    )  # fmt: skip
    texts = [[7, 8, 8], [9]]
    columns_JX = [torch.randint(1, 255, (n, 4), dtype=torch.uint8) for n in (12, 6)]
    batch = images(columns_JX, texts)
    plain = PairObjective(model, TrainingConfig(eps_ls=0.0))(batch)
    with_ctc = PairObjective(model, TrainingConfig(eps_ls=0.0, ctc_weight=0.5))(batch)
    torch.testing.assert_close(with_ctc.loss_nats, plain.loss_nats)
    assert plain.auxiliary_nats is None
    alone = [
        ctc_loss(model, model.encode(each.unsqueeze(0)), images([each], [text]))
        for each, text in zip(columns_JX, texts, strict=True)
    ]
    assert with_ctc.auxiliary_nats is not None
    torch.testing.assert_close(with_ctc.auxiliary_nats, 0.5 * (alone[0] + alone[1]))
    logits_PV = model.logits(model.encode(columns_JX[1].unsqueeze(0)).states_MD).detach().double().numpy()
    assert float(alone[1].detach()) == pytest.approx(counted_up(logits_PV, texts[1]), rel=1e-4)
    two_passes = PairObjective(model, TrainingConfig(eps_ls=0.0, ctc_weight=0.5, r_drop=1.0))(batch)
    torch.testing.assert_close(two_passes.auxiliary_nats, with_ctc.auxiliary_nats)  # without dropout the two are alike
    model.eval()
    assert PairObjective(model, TrainingConfig(ctc_weight=0.5))(batch).auxiliary_nats is None
