"""Word positions: half of the sinusoids encode the token position, the other half the word position.

Deviates: from section 3.5, which ``positions = "sinusoidal"`` restores. A tree has several tokens per word, and a word
several subword tokens, so the token positions of a word and of its output are hardly related, while their word
positions differ by one. By section 3.5's argument (PE(pos + k) is a linear function of PE(pos)) attention learns to
find the word.

Shapes: B sentences, N real positions in a flat list or rows of a decoding batch, T positions, D d_model, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.config import TransformerConfig
from transduce.model.embedding import SinusoidalPositions, TokenEmbedding
from transduce.model.front_end import Positions, TokenFrontEnd
from transduce.model.padding import PaddingInfo
from transduce.model.transformer import FrontEndMaker, Transformer
from transduce.text import PAD_ID, Tokenizer, Tokenizers

__all__ = ["WordPositionFrontEnd", "word_position_model"]


@dataclass(frozen=True, slots=True)
class WordPositions(Positions):
    """Positions of the next tokens, with the number of words begun up to each token so far, (N, T)."""

    n_words_NT: Tensor = field(kw_only=True)

    def select(self, rows_N: Tensor) -> WordPositions:
        """Select rows."""
        return self.from_positions(Positions.select(self, rows_N), self.n_words_NT[rows_N])

    def rewind(self, n_N: Tensor) -> WordPositions:
        """Remove the last ``n`` tokens of each row. Counts past the end of a row are never read."""
        return self.from_positions(Positions.rewind(self, n_N), self.n_words_NT)

    def n_words(self) -> Tensor:
        """Return the number of words begun in each row, (N, 1)."""
        padded_NT = F.pad(self.n_words_NT, (1, 0))  # zero before the first token
        return padded_NT.gather(1, self.next_positions(1))

    @classmethod
    def from_positions(cls, positions: Positions, n_words_NT: Tensor) -> WordPositions:
        """Add word counts to ``positions``."""
        return cls(positions.n_rows, positions.device, positions.longest, positions.shorter_by_N, n_words_NT=n_words_NT)


class WordPositionFrontEnd(TokenFrontEnd):
    """Token embeddings plus encodings of token and word positions; ``begins_word`` has the ids that begin a word."""

    begins_word_V: Tensor

    def __init__(self, embedding: TokenEmbedding, begins_word: Iterable[int], *, p_drop: float) -> None:
        super().__init__(embedding, SinusoidalPositions(embedding.embedding_dim // 2), p_drop=p_drop)
        begins_word_V = torch.zeros(embedding.num_embeddings, dtype=torch.int64)
        begins_word_V[list(begins_word)] = 1
        self.register_buffer("begins_word_V", begins_word_V, persistent=False)

    def forward(self, ids_BT: Tensor, padding: PaddingInfo | None = None) -> tuple[Tensor, PaddingInfo]:
        """Return the states (N, D) of the real positions of right-padded ids, and their padding info."""
        padding = padding or PaddingInfo.from_mask(ids_BT != PAD_ID)
        n_words_N = padding.gather(self.begins_word_V[ids_BT].cumsum(dim=1))
        encoding_ND = self._encoding(padding.position_N, n_words_N, padding.n_positions)
        return self.dropout(self.embedding(padding.gather(ids_BT)) + encoding_ND), padding

    def start(self, n_rows: int) -> WordPositions:
        """Return the positions of empty rows."""
        return WordPositions.from_positions(super().start(n_rows), self.begins_word_V.new_empty(n_rows, 0))

    def extend(self, ids_NT: Tensor, positions: Positions, n_new_N: Tensor | None = None) -> tuple[Tensor, Positions]:
        """Return the states (N, T, D) of the next tokens of each row, and the positions after them."""
        assert isinstance(positions, WordPositions)
        n_tokens = ids_NT.shape[1]
        position_NT = positions.next_positions(n_tokens)
        n_words_NT = positions.n_words() + self.begins_word_V[ids_NT].cumsum(dim=1)
        encoding_NTD = self._encoding(position_NT, n_words_NT, positions.longest + n_tokens)
        n_added_columns = positions.longest + n_tokens - positions.n_words_NT.shape[1]
        padded_NT = F.pad(positions.n_words_NT, (0, max(0, n_added_columns)))
        all_words_NT = padded_NT.scatter(1, position_NT, n_words_NT)
        after = WordPositions.from_positions(positions.advance(n_tokens, n_new_N), all_words_NT)
        return self.dropout(self.embedding(ids_NT) + encoding_NTD), after

    def _encoding(self, position: Tensor, n_words: Tensor, n_positions: int) -> Tensor:
        halves = self.positions(position, n_positions), self.positions(n_words, n_positions + 1)
        return torch.cat(halves, dim=-1)


def word_position_model(config: TransformerConfig, tokenizers: Tokenizers | None) -> Transformer:
    """Build a Transformer with word positions; without tokenizers, only its shapes are valid."""

    def front_end(tokenizer: Tokenizer | None) -> FrontEndMaker:
        begins_word = [] if tokenizer is None else tokenizer.word_start_ids
        return lambda embedding: WordPositionFrontEnd(embedding, begins_word, p_drop=config.p_drop)

    src, tgt = (None, None) if tokenizers is None else (tokenizers.src, tokenizers.tgt)
    return Transformer(config, source=front_end(src), target=front_end(tgt))
