"""The base of the baselines: encoder-decoders over padded batches, decoding without a cache.

Shapes: B sentences, W beams of each, S source positions, T target positions, N rows of the decoding batch or real
target positions, R rows that still have a new token to append, D d_model, V vocabulary.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.config import EncoderDecoderConfig
from transduce.model.attention import AttentionHook, WeightsHook
from transduce.model.dropout import Dropout
from transduce.model.encoder_decoder import EncoderDecoder, make_embeddings, make_output
from transduce.model.experts import AuxiliaryLosses
from transduce.model.padding import PairPadding, require_right_padding
from transduce.text import PAD_ID

__all__ = ["Memory", "PaddedModel", "PrefixState", "attend"]


@dataclass(frozen=True, slots=True)
class Memory:
    """The encoder's output, padded."""

    states_BSD: Tensor
    is_real_BS: Tensor

    def select(self, rows_N: Tensor) -> Memory:
        """The memory of the selected rows."""
        return Memory(self.states_BSD.index_select(0, rows_N), self.is_real_BS.index_select(0, rows_N))


@dataclass(frozen=True, slots=True)
class PrefixState:
    """The decoding state of a baseline: the memory and the prefixes; every step reruns the decoder over them."""

    memory: Memory  # one row per sentence
    prefix_NT: Tensor  # ids of each decoding row; undefined from ``length_N`` on
    length_N: Tensor
    n_beams: int

    def select(self, rows_BW: Tensor) -> PrefixState:
        """The state of the rows ``rows_BW.flatten()``; the numbers of sentences and beams may change."""
        memory, rows_N = self.memory.select(rows_BW[:, 0] // self.n_beams), rows_BW.flatten()
        return PrefixState(memory, self.prefix_NT[rows_N], self.length_N[rows_N], rows_BW.shape[1])

    def rewind(self, n_N: Tensor) -> PrefixState:
        """The state without the last ``n_N`` tokens of each row."""
        return replace(self, length_N=self.length_N - n_N)

    def append(self, ids_NT: Tensor, n_new_N: Tensor) -> PrefixState:
        """The state with the first ``n_new_N`` of the T ids of each row appended to its prefix."""
        length_N = self.length_N + n_new_N
        prefix_NT = F.pad(self.prefix_NT, (0, max(0, int(length_N.max()) - self.prefix_NT.shape[1])))
        for index in range(ids_NT.shape[1]):
            rows_R = (index < n_new_N).nonzero().squeeze(1)
            prefix_NT[rows_R, self.length_N[rows_R] + index] = ids_NT[rows_R, index]
        return replace(self, prefix_NT=prefix_NT, length_N=length_N)


class PaddedModel(EncoderDecoder):
    """An encoder and a decoder over padded batches.

    There is no cache: each decoding step runs the decoder over the whole prefix. That is enough to compare quality on
    sentences of a few dozen words.
    """

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__(config)
        src_embedding, self.tgt_embedding = make_embeddings(config)
        self.src_embedding = src_embedding
        self.output = make_output(config, self.tgt_embedding)
        self.embedding_dropout = Dropout(config.p_drop)

    @abstractmethod
    def encode(self, src_BSD: Tensor, is_real_BS: Tensor) -> Tensor:
        """The encoder: embedded source (B, S, D) to states (B, S, D)."""

    @abstractmethod
    def decode(self, tgt_BTD: Tensor, is_real_BT: Tensor, memory: Memory, hook: AttentionHook | None = None) -> Tensor:
        """The decoder, causal: embedded input (B, T, D) to states (B, T, D).

        ``hook`` receives the weights of each attention layer, if the model has any, as kind "cross" with one head.
        """

    def forward(
        self,
        src_BS: Tensor,
        tgt_BT: Tensor,
        *,
        padding: PairPadding | None = None,
        auxiliary: AuxiliaryLosses | None = None,
        attention_hook: AttentionHook | None = None,
    ) -> Tensor:
        """The decoder's states at the real target positions, (N, D), in row-major order.

        ``padding`` and ``auxiliary`` are unused.
        """
        is_real_BT = tgt_BT != PAD_ID
        require_right_padding(is_real_BT)
        return self._decode(tgt_BT, is_real_BT, self._memory(src_BS), attention_hook)[is_real_BT]

    def start(self, src_BS: Tensor) -> PrefixState:
        """Encode the source and return the initial decoding state: one row per sentence."""
        length_N = src_BS.new_zeros(len(src_BS))
        return PrefixState(self._memory(src_BS), length_N.unsqueeze(1)[:, :0], length_N, 1)

    def extend(self, ids_NT: Tensor, state: PrefixState, n_new_N: Tensor | None = None) -> tuple[Tensor, PrefixState]:
        """Next-token logits (N, T, V) after each of T new tokens of a row, and the next decoding state."""
        n_rows, n_tokens = ids_NT.shape
        next_state = state.append(ids_NT, torch.full_like(state.length_N, n_tokens) if n_new_N is None else n_new_N)
        tgt_NT = next_state.prefix_NT
        is_real_NT = torch.arange(tgt_NT.shape[1], device=tgt_NT.device) < next_state.length_N.unsqueeze(1)
        sentence_N = torch.arange(n_rows, device=ids_NT.device) // state.n_beams
        states_NTD = self._decode(tgt_NT, is_real_NT, state.memory.select(sentence_N))
        position_NT = state.length_N.unsqueeze(1) + torch.arange(n_tokens, device=ids_NT.device)
        # Clamped, because rows with fewer new tokens than T have positions past the end; their logits are undefined.
        new_NTD = states_NTD.take_along_dim(position_NT.clamp_(max=tgt_NT.shape[1] - 1).unsqueeze(2), dim=1)
        return self.logits(new_NTD), next_state

    def _memory(self, src_BS: Tensor) -> Memory:
        is_real_BS = src_BS != PAD_ID
        require_right_padding(is_real_BS)
        src_BSD = self.embedding_dropout(self.src_embedding(src_BS))
        return Memory(self.encode(src_BSD, is_real_BS), is_real_BS)

    def _decode(self, tgt_BT: Tensor, is_real_BT: Tensor, memory: Memory, hook: AttentionHook | None = None) -> Tensor:
        return self.decode(self.embedding_dropout(self.tgt_embedding(tgt_BT)), is_real_BT, memory, hook)


def attend(scores_BTS: Tensor, memory: Memory, hook: WeightsHook | None = None) -> Tensor:
    """Softmax of the scores over the real source positions, times the states of the memory: (B, T, D)."""
    values_BSD, is_real_BS = memory.states_BSD, memory.is_real_BS
    weights_BTS = scores_BTS.masked_fill(~is_real_BS.unsqueeze(1), -torch.inf).softmax(dim=-1)
    if hook is not None:
        hook(weights_BTS.unsqueeze(1))  # one head
    return weights_BTS.to(values_BSD.dtype) @ values_BSD
