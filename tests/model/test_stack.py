"""One stack for all: encoder, decoder-only, bidirectional."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from said import naming
from transduce.errors import ShapeError
from transduce.model import Stack, StackConfig, TransformerLM
from transduce.model.embedding import sinusoid
from transduce.model.padding import EncoderOutput, PaddingInfo
from transduce.text import EOS_ID

CONFIG = StackConfig(n_layers=2, d_model=32, d_ff=64, n_heads=4, d_k=8, d_v=8, p_drop=0.0)


class DecoderOnly(nn.Module):
    """A plain decoder-only language model: embedding, positions, a causal stack, a tied output projection."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, CONFIG.d_model)
        self.stack = Stack(CONFIG)

    def forward(self, ids_BT: Tensor) -> Tensor:
        padding = PaddingInfo.from_mask(ids_BT != 0)
        x_BTD = self.embedding(ids_BT) + sinusoid(ids_BT.shape[1], CONFIG.d_model).float()
        states_ND = self.stack(padding.gather(x_BTD), padding)
        return states_ND[: padding.n_real] @ self.embedding.weight.T


def test_a_decoder_only_model_learns_to_count() -> None:
    """n + 1 follows n, EOS follows 9: in padded sequences of several lengths."""
    torch.manual_seed(1)
    model, rows = DecoderOnly(12), [list(range(first, 10)) for first in (4, 6, 8, 9)]
    ids = torch.tensor([[*row, *[0] * (6 - len(row))] for row in rows])
    targets = torch.tensor([token for row in rows for token in (*row[1:], EOS_ID)])
    optimiser = torch.optim.Adam(model.parameters(), lr=0.003)
    for _ in range(120):
        loss = nn.functional.cross_entropy(model(ids), targets)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert (model(ids).argmax(dim=1) == targets).all()
    changed = torch.tensor([[4, 5, 6, 11]])  # later tokens change nothing
    torch.testing.assert_close(model(changed)[:3], model(changed[:, :3]))


@torch.no_grad()
def test_a_language_model_step_by_step_equals_all_at_once() -> None:
    torch.manual_seed(2)
    model = TransformerLM(CONFIG, vocab_size=20).double().eval()
    prompts = torch.tensor([[4, 5, 6, 7], [8, 9, 0, 0]])
    logits, state = model.extend(prompts, model.start(2), torch.tensor([4, 2]))
    torch.testing.assert_close(logits[0], model.output.logits(model(prompts[:1])))
    torch.testing.assert_close(logits[1, :2], model.output.logits(model(prompts[1:, :2])))
    logits, state = model.step(torch.tensor([10, 11]), state.select(torch.tensor([[1], [0]])))
    for row, ids in enumerate(([8, 9, 10], [4, 5, 6, 7, 11])):
        torch.testing.assert_close(logits[row], model.output.logits(model(torch.tensor([ids])))[-1])


@torch.no_grad()
def test_a_stack_that_is_not_causal_sees_both_ways() -> None:
    torch.manual_seed(3)
    model = TransformerLM(CONFIG, vocab_size=20, is_causal=False).double().eval()
    ids, changed = torch.tensor([[4, 5, 6, 7]]), torch.tensor([[4, 5, 6, 8]])
    assert not torch.isclose(model(ids), model(changed)).all(dim=1).any()
    alone, padded = model(ids[:, :2]), model(torch.tensor([[4, 5, 0, 0], [4, 5, 6, 7]]))
    torch.testing.assert_close(padded[:2], alone)


def test_cross_attention_and_memory_go_together() -> None:
    x_ND, padding = torch.randn(3, 32), PaddingInfo.without_padding(1, 3, torch.device("cpu"))
    memory = EncoderOutput(x_ND, padding)
    with pytest.raises(ShapeError, match=naming("cross-attention", "no memory")):
        Stack(CONFIG, has_cross_attention=True)(x_ND, padding)
    with pytest.raises(ShapeError, match=naming("cross-attention", "without")):
        Stack(CONFIG)(x_ND, padding, memory=memory)
    out = Stack(CONFIG, has_cross_attention=True, is_causal=False)(x_ND, padding, memory=memory)
    assert out.shape == (3, 32)
