"""A model that scores the shortlists of one batch.

Shapes: B sentences, W beams of each, N = B W rows of the decoding batch, S source positions, T new tokens of a row,
V vocabulary, R target tokens of each source token, P frequent target tokens, X scored tokens of a batch (rounded up),
D d_model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.bucketing import bucket_rows
from transduce.model.decoding import IncrementalDecoder
from transduce.model.encoder_decoder import EncoderDecoder
from transduce.model.inference import with_output_rows
from transduce.model.shortlist import Shortlist
from transduce.text import PAD_ID, UNK_ID

__all__ = ["ShortlistDecoder", "ShortlistState", "allowed_tokens"]

SPECIAL_IDS = range(UNK_ID + 1)  # padding, BOS, EOS and UNK are the first scored tokens, so their ids stay


def allowed_tokens(shortlist: Shortlist, src_BS: Tensor, tgt_vocab_size: int) -> Tensor:
    """The tokens scored for each sentence: bool, (B, V) over the target vocabulary, on the CPU."""
    src_BS = src_BS.cpu()
    allowed_BV = torch.zeros(len(src_BS), tgt_vocab_size, dtype=torch.bool)
    candidates_BSR = F.embedding(src_BS, torch.from_numpy(shortlist.candidates_VR)).long()
    candidates_BSR.masked_fill_((src_BS == PAD_ID).unsqueeze(2), PAD_ID)  # padding has no translation
    allowed_BV.scatter_(1, candidates_BSR.flatten(1), True)
    allowed_BV[:, [*SPECIAL_IDS, *shortlist.frequent_P.tolist()]] = True
    return allowed_BV


@dataclass(frozen=True, slots=True, eq=False)
class ShortlistState:
    """The decoding state of the model, and the sentence of each row."""

    state: Any
    sentence_N: Tensor

    def select(self, rows_BW: Tensor) -> ShortlistState:
        """The state of the selected rows."""
        return ShortlistState(self.state.select(rows_BW), self.sentence_N[rows_BW.flatten()])

    def rewind(self, n_N: Tensor) -> ShortlistState:
        """The state without the last ``n_N`` tokens of each row."""
        return ShortlistState(self.state.rewind(n_N), self.sentence_N)


class ShortlistDecoder(IncrementalDecoder[ShortlistState]):
    """A model that scores the shortlists of one batch. Tokens have numbers of their own (N, X), see ``ids``."""

    def __init__(self, model: EncoderDecoder, shortlist: Shortlist, src_BS: Tensor) -> None:
        """``model``: the result of ``for_inference``."""
        allowed_BV = allowed_tokens(shortlist, src_BS, model.config.tgt_vocab_size)
        scored = allowed_BV.any(dim=0).nonzero().squeeze(1)
        n_extra = bucket_rows(len(scored)) - len(scored)  # copies of the padding token, which is never generated
        ids_X = F.pad(scored, (0, n_extra), value=PAD_ID)
        is_scored_BX = F.pad(allowed_BV[:, scored], (0, n_extra))
        device = src_BS.device
        self.ids_X, self._is_excluded_BX = ids_X.to(device), ~is_scored_BX.to(device)
        self._model = with_output_rows(model, self.ids_X)

    def start(self, src_BS: Tensor) -> ShortlistState:
        """Encode the batch and return the initial decoding state: one row per sentence."""
        return ShortlistState(self._model.start(src_BS), torch.arange(len(src_BS), device=src_BS.device))

    def extend(
        self, ids_NT: Tensor, state: ShortlistState, n_new_N: Tensor | None = None
    ) -> tuple[Tensor, ShortlistState]:
        """Read T tokens of every row; return the logits (N, T, X) after each and the next state."""
        return self._extend(self.ids_X[ids_NT], state, n_new_N)

    def extend_by_ids(
        self, ids_NT: Tensor, state: ShortlistState, n_new_N: Tensor | None = None
    ) -> tuple[Tensor, ShortlistState]:
        """``extend`` for the vocabulary's ids: logits (N, T, V), minus infinity for tokens outside of the shortlist."""
        logits_NTX, state = self._extend(ids_NT, state, n_new_N)
        logits_NTV = logits_NTX.new_full((*ids_NT.shape, self._model.config.tgt_vocab_size), -torch.inf)
        logits_NTV[:, :, self.ids_X] = logits_NTX
        return logits_NTV, state

    def _extend(self, ids_NT: Tensor, state: ShortlistState, n_new_N: Tensor | None) -> tuple[Tensor, ShortlistState]:
        logits_NTX, next_state = self._model.extend(ids_NT, state.state, n_new_N)
        logits_NTX = logits_NTX.masked_fill(self._is_excluded_BX[state.sentence_N].unsqueeze(1), -torch.inf)
        return logits_NTX, ShortlistState(next_state, state.sentence_N)

    def ids(self, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """The vocabulary's ids of a hypothesis' tokens."""
        return tuple(self.ids_X[list(numbers)].tolist())
