"""What the systems of Table 2 beside the Transformer share: padded grids in and out, and a plain way to write.

Shapes: B sentences, S source positions, T target positions, W rows (beams) of a sentence, D d_model, V vocabulary.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.config import ModelConfig
from transduce.model.dropout import Dropout
from transduce.model.encoder_decoder import EncoderDecoder
from transduce.model.layout import Layout
from transduce.text import PAD_ID

__all__ = ["GridModel", "Memory", "PrefixState", "attend", "glu"]


@dataclass(frozen=True, slots=True)
class Memory:
    """What an encoder knows of its sentences."""

    states_BSD: Tensor
    is_real_BS: Tensor

    def of_rows(self, rows_N: Tensor) -> Memory:
        """That of some rows."""
        return Memory(self.states_BSD.index_select(0, rows_N), self.is_real_BS.index_select(0, rows_N))


@dataclass(frozen=True, slots=True)
class PrefixState:
    """What was read and what has been written: each step reads all of it again."""

    memory: Memory  # of each sentence
    prefix_BWT: Tensor

    def select(self, rows_BW: Tensor) -> PrefixState:
        """The chosen rows; sentences may leave, and their number of rows may change."""
        n_beams = self.prefix_BWT.shape[1]
        return PrefixState(self.memory.of_rows(rows_BW[:, 0] // n_beams), self.prefix_BWT.flatten(0, 1)[rows_BW])


class GridModel(EncoderDecoder):
    """An encoder and a decoder over padded grids.

    Writing is plain: each step runs the decoder over all that has been written. It is for comparing qualities, and for
    sentences of some dozen words; only the Transformer has a cache.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.embedding_dropout = Dropout(config.p_drop)

    @abstractmethod
    def encode(self, src_BSD: Tensor, is_real_BS: Tensor) -> Tensor:
        """Embedded source, (B, S, D), to states, (B, S, D)."""

    @abstractmethod
    def decode(self, tgt_BTD: Tensor, is_real_BT: Tensor, memory: Memory) -> Tensor:
        """Embedded decoder input, (B, T, D), to states, (B, T, D); no position sees those after it."""

    def forward(self, src_BS: Tensor, tgt_BT: Tensor) -> Tensor:
        """The decoder's states at the real target positions, (N, D), row by row."""
        layout = Layout.of(tgt_BT != PAD_ID)
        states_BTD = self._decode(tgt_BT, layout.is_real_BT, self._memory(src_BS))
        return layout.to_list(states_BTD)[: layout.n_real]

    def start(self, src_BS: Tensor) -> PrefixState:
        """Encode, and prepare to write one row for each sentence."""
        return PrefixState(self._memory(src_BS), src_BS.new_zeros(len(src_BS), 1, 0))

    def step(self, last_ids_N: Tensor, state: PrefixState) -> tuple[Tensor, PrefixState]:
        """Scores (N, V) of the token after ``last_ids``, and the state that has seen it."""
        n_sentences, n_beams, _ = state.prefix_BWT.shape
        prefix_BWT = torch.cat((state.prefix_BWT, last_ids_N.view(n_sentences, n_beams, 1)), dim=2)
        sentence_N = torch.arange(n_sentences, device=last_ids_N.device).repeat_interleave(n_beams)
        tgt_NT = prefix_BWT.flatten(0, 1)
        states_NTD = self._decode(tgt_NT, torch.ones_like(tgt_NT, dtype=torch.bool), state.memory.of_rows(sentence_N))
        return self.logits(states_NTD[:, -1]), PrefixState(state.memory, prefix_BWT)

    def _memory(self, src_BS: Tensor) -> Memory:
        is_real_BS = Layout.of(src_BS != PAD_ID).is_real_BT
        src_BSD = self.embedding_dropout(self.src_embedding(src_BS))
        return Memory(self.encode(src_BSD, is_real_BS), is_real_BS)

    def _decode(self, tgt_BT: Tensor, is_real_BT: Tensor, memory: Memory) -> Tensor:
        return self.decode(self.embedding_dropout(self.tgt_embedding(tgt_BT)), is_real_BT, memory)


def attend(scores_BTS: Tensor, values_BSD: Tensor, is_real_BS: Tensor) -> Tensor:
    """The mean of values, weighted by the softmax of scores over the real source positions, (B, T, D)."""
    weights_BTS = scores_BTS.masked_fill(~is_real_BS.unsqueeze(1), -torch.inf).softmax(dim=-1)
    return weights_BTS.to(values_BSD.dtype) @ values_BSD


def glu(value: Tensor, gate: Tensor) -> Tensor:
    """A value times its gate, which opens from 0 to 1. Dauphin et al. (2017)."""
    return value * F.sigmoid(gate)
