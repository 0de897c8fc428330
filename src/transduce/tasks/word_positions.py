"""Positions that count words: half of the sinusoids are of the place, the others of the words up to there.

Deviates: from section 3.5, which ``positions = "sinusoidal"`` restores. A tree has several symbols for each word, and a
word several tokens, so that the places of a word and of what is written for it have little to do with each other; their
counts differ by one. By section 3.5's own argument (PE(pos + k) is a linear function of PE(pos)) attention learns to
find the word.

Shapes: B sentences, N rows or real positions in a list, T positions, D d_model, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.config import ModelConfig
from transduce.model import EncoderDecoder, make_model
from transduce.model.embedding import SinusoidalPositions, TokenEmbedding
from transduce.model.front_end import Positions, TokenFrontEnd
from transduce.model.padding import PaddingInfo
from transduce.model.transformer import FrontEndMaker
from transduce.text import PAD_ID, Tokenizer, Tokenizers

__all__ = ["WordPositionFrontEnd", "model_that_counts_words"]


@dataclass(frozen=True, slots=True)
class WordPositions(Positions):
    """Where each row stands, and how many words had begun at each of its tokens."""

    n_words_NT: Tensor = field(kw_only=True)

    def select(self, rows_N: Tensor) -> WordPositions:
        """Those of some rows."""
        return self.from_positions(Positions.select(self, rows_N), self.n_words_NT[rows_N])

    def rewind(self, n_N: Tensor) -> WordPositions:
        """With the last ``n`` tokens of each row taken back."""
        return self.from_positions(Positions.rewind(self, n_N), self.n_words_NT)

    def n_words(self) -> Tensor:
        """How many words each row has begun, (N, 1)."""
        padded_NT = F.pad(self.n_words_NT, (1, 0))  # none before the first token
        return padded_NT.gather(1, self.of_new(1))

    @classmethod
    def from_positions(cls, positions: Positions, n_words_NT: Tensor) -> WordPositions:
        """Places, with the words."""
        return cls(positions.n_rows, positions.device, positions.most, positions.fewer_N, n_words_NT=n_words_NT)


class WordPositionFrontEnd(TokenFrontEnd):
    """Token embeddings and positions, of which one half counts tokens and the other words (``begins_word``)."""

    begins_word_V: Tensor

    def __init__(self, embedding: TokenEmbedding, begins_word: Iterable[int], *, p_drop: float) -> None:
        super().__init__(embedding, SinusoidalPositions(embedding.embedding_dim // 2), p_drop=p_drop)
        begins_word_V = torch.zeros(embedding.num_embeddings, dtype=torch.int64)
        begins_word_V[list(begins_word)] = 1
        self.register_buffer("begins_word_V", begins_word_V, persistent=False)

    def forward(self, ids_BT: Tensor) -> tuple[Tensor, PaddingInfo]:
        """The states (N, D) of the real positions of ids that are padded on the right with 0, and where they stand."""
        padding = PaddingInfo.from_mask(ids_BT != PAD_ID)
        n_words_N = self.begins_word_V[ids_BT].cumsum(dim=1).flatten()[padding.index_N]
        encoding_ND = self._encoding(padding.positions_N(), n_words_N, ids_BT.shape[1])
        return self.dropout(self.embedding(ids_BT.flatten()[padding.index_N]) + encoding_ND), padding

    def start(self, n_rows: int) -> WordPositions:
        """Where rows stand that have seen nothing."""
        return WordPositions.from_positions(super().start(n_rows), self.begins_word_V.new_empty(n_rows, 0))

    def extend(self, ids_NT: Tensor, positions: Positions, n_new_N: Tensor | None = None) -> tuple[Tensor, Positions]:
        """The states (N, T, D) of the next tokens of each row, and where the rows stand behind them."""
        assert isinstance(positions, WordPositions)
        n_tokens = ids_NT.shape[1]
        position_NT = positions.of_new(n_tokens)
        n_words_NT = positions.n_words() + self.begins_word_V[ids_NT].cumsum(dim=1)
        encoding_NTD = self._encoding(position_NT, n_words_NT, positions.most + n_tokens)
        room = positions.most + n_tokens - positions.n_words_NT.shape[1]
        kept_NT = F.pad(positions.n_words_NT, (0, max(0, room))).scatter(1, position_NT, n_words_NT)
        after = WordPositions.from_positions(positions.after(n_tokens, n_new_N), kept_NT)
        return self.dropout(self.embedding(ids_NT) + encoding_NTD), after

    def _encoding(self, position: Tensor, n_words: Tensor, n_positions: int) -> Tensor:
        halves = self.positions(position, n_positions), self.positions(n_words, n_positions + 1)
        return torch.cat(halves, dim=-1)


def model_that_counts_words(config: ModelConfig, tokenizers: Tokenizers | None) -> EncoderDecoder:
    """A new Transformer whose positions count the words that the tokenizers know of; without any, for its shapes."""

    def front_end(tokenizer: Tokenizer | None) -> FrontEndMaker:
        begins_word = [] if tokenizer is None else tokenizer.word_start_ids
        return lambda embedding: WordPositionFrontEnd(embedding, begins_word, p_drop=config.p_drop)

    src, tgt = (None, None) if tokenizers is None else (tokenizers.src, tokenizers.tgt)
    return make_model(config, source=front_end(src), target=front_end(tgt))
