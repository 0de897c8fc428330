"""What the systems of Table 2 beside the Transformer share: padded grids in and out, and a plain way to write.

Shapes: B sentences, S source positions, T target positions, W rows (beams) of a sentence, D d_model, V vocabulary.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.config import ModelConfig
from transduce.model.dropout import Dropout
from transduce.model.encoder_decoder import EncoderDecoder, make_embeddings, make_output
from transduce.model.experts import AuxiliaryLosses
from transduce.model.padding import PaddingInfo
from transduce.text import PAD_ID

__all__ = ["Memory", "PaddedModel", "PrefixState", "attend"]


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
    prefix_NT: Tensor  # of each row; what stands past its length means nothing
    length_N: Tensor
    n_beams: int

    def select(self, rows_BW: Tensor) -> PrefixState:
        """The chosen rows; sentences may leave, and their number of rows may change."""
        memory, rows_N = self.memory.of_rows(rows_BW[:, 0] // self.n_beams), rows_BW.flatten()
        return PrefixState(memory, self.prefix_NT[rows_N], self.length_N[rows_N], rows_BW.shape[1])

    def rewind(self, n_N: Tensor) -> PrefixState:
        """Before the last ``n`` tokens of each row."""
        return replace(self, length_N=self.length_N - n_N)

    def with_new(self, ids_NT: Tensor, n_new_N: Tensor) -> PrefixState:
        """With more tokens behind those of each row."""
        length_N = self.length_N + n_new_N
        prefix_NT = F.pad(self.prefix_NT, (0, max(0, int(length_N.max()) - self.prefix_NT.shape[1])))
        for place in range(ids_NT.shape[1]):
            rows_R = (place < n_new_N).nonzero().squeeze(1)
            prefix_NT[rows_R, self.length_N[rows_R] + place] = ids_NT[rows_R, place]
        return replace(self, prefix_NT=prefix_NT, length_N=length_N)


class PaddedModel(EncoderDecoder):
    """An encoder and a decoder over padded grids.

    Writing is plain: each step runs the decoder over all that has been written. It is for comparing qualities, and for
    sentences of some dozen words; only the Transformer has a cache.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        src_embedding, self.tgt_embedding = make_embeddings(config)
        self.src_embedding = src_embedding
        self.output = make_output(config, self.tgt_embedding)
        self.embedding_dropout = Dropout(config.p_drop)

    @abstractmethod
    def encode(self, src_BSD: Tensor, is_real_BS: Tensor) -> Tensor:
        """Embedded source, (B, S, D), to states, (B, S, D)."""

    @abstractmethod
    def decode(self, tgt_BTD: Tensor, is_real_BT: Tensor, memory: Memory) -> Tensor:
        """Embedded decoder input, (B, T, D), to states, (B, T, D); no position sees those after it."""

    def forward(self, src_BS: Tensor, tgt_BT: Tensor, *, auxiliary: AuxiliaryLosses | None = None) -> Tensor:
        """The decoder's states at the real target positions, (N, D), row by row; there are no auxiliary losses."""
        padding = PaddingInfo.from_mask(tgt_BT != PAD_ID)
        states_BTD = self._decode(tgt_BT, padding.is_real_BT, self._memory(src_BS))
        return padding.unpad(states_BTD)[: padding.n_real]

    def start(self, src_BS: Tensor) -> PrefixState:
        """Encode, and prepare to write one row for each sentence."""
        nothing_N = src_BS.new_zeros(len(src_BS))
        return PrefixState(self._memory(src_BS), nothing_N.unsqueeze(1)[:, :0], nothing_N, 1)

    def extend(self, ids_NT: Tensor, state: PrefixState, n_new_N: Tensor | None = None) -> tuple[Tensor, PrefixState]:
        """Scores (N, T, V) of what follows each of T more tokens of a row, and the state that has seen them."""
        n_rows, n_tokens = ids_NT.shape
        after = state.with_new(ids_NT, torch.full_like(state.length_N, n_tokens) if n_new_N is None else n_new_N)
        tgt_NT = after.prefix_NT
        is_real_NT = torch.arange(tgt_NT.shape[1], device=tgt_NT.device) < after.length_N.unsqueeze(1)
        sentence_N = torch.arange(n_rows, device=ids_NT.device) // state.n_beams
        states_NTD = self._decode(tgt_NT, is_real_NT, state.memory.of_rows(sentence_N))
        places_NT = state.length_N.unsqueeze(1) + torch.arange(n_tokens, device=ids_NT.device)
        new_NTD = states_NTD.take_along_dim(places_NT.clamp_(max=tgt_NT.shape[1] - 1).unsqueeze(2), dim=1)
        return self.logits(new_NTD), after

    def _memory(self, src_BS: Tensor) -> Memory:
        is_real_BS = PaddingInfo.from_mask(src_BS != PAD_ID).is_real_BT
        src_BSD = self.embedding_dropout(self.src_embedding(src_BS))
        return Memory(self.encode(src_BSD, is_real_BS), is_real_BS)

    def _decode(self, tgt_BT: Tensor, is_real_BT: Tensor, memory: Memory) -> Tensor:
        return self.decode(self.embedding_dropout(self.tgt_embedding(tgt_BT)), is_real_BT, memory)


def attend(scores_BTS: Tensor, values_BSD: Tensor, is_real_BS: Tensor) -> Tensor:
    """The mean of values, weighted by the softmax of scores over the real source positions, (B, T, D)."""
    weights_BTS = scores_BTS.masked_fill(~is_real_BS.unsqueeze(1), -torch.inf).softmax(dim=-1)
    return weights_BTS.to(values_BSD.dtype) @ values_BSD
