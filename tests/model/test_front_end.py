"""A source that is not tokens: audio frames with their own front end."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from transduce.config import TransformerConfig
from transduce.model import Transformer
from transduce.model.embedding import SinusoidalPositions
from transduce.model.padding import PaddingInfo

CONFIG = TransformerConfig(
    n_encoder_layers=1, n_decoder_layers=1, d_model=16, d_ff=32, n_heads=2, d_k=8, d_v=8, p_drop=0.0,
    src_vocab_size=12, tgt_vocab_size=12,
)  # fmt: skip


class Frames(nn.Module):
    """A front end for audio frames of width 5, padded, with their lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.positions = nn.Linear(5, 16), SinusoidalPositions(16)

    def forward(self, source: tuple[Tensor, Tensor], padding: PaddingInfo | None = None) -> tuple[Tensor, PaddingInfo]:
        frames_BSX, lengths_B = source
        padding = PaddingInfo.from_mask(torch.arange(frames_BSX.shape[1]) < lengths_B.unsqueeze(1))
        return self.project(padding.gather(frames_BSX)) + self.positions(padding.position_N, 99), padding


def test_frames_are_read_as_tokens_are() -> None:
    torch.manual_seed(1)
    model = Transformer(CONFIG, source=lambda embedding: Frames()).double().eval()
    frames, tgt = torch.randn(2, 7, 5).double(), torch.tensor([[1, 5, 6], [1, 7, 8]])
    states = model((frames, torch.tensor([7, 3])), tgt)  # type: ignore[arg-type]
    alone = model((frames[1:, :3], torch.tensor([3])), tgt[1:])  # type: ignore[arg-type]
    torch.testing.assert_close(states[3:], alone)
    state = model.start((frames, torch.tensor([7, 3])))  # type: ignore[arg-type]
    for position in range(3):
        logits, state = model.step(tgt[:, position], state)
        torch.testing.assert_close(logits, model.logits(states.view(2, 3, -1)[:, position]))
