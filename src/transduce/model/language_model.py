"""The left or the right half of figure 1 alone: a stack over tokens, without a source.

Shapes: B sequences, T positions, N rows or real positions in a list, D d_model, V vocabulary.
"""

from __future__ import annotations

from torch import Tensor, nn

from transduce.model.attention import AttentionHook
from transduce.model.decoding import DecodingState, IncrementalDecoder
from transduce.model.embedding import SinusoidalPositions, TokenEmbedding
from transduce.model.experts import AuxiliaryLosses
from transduce.model.front_end import TokenFrontEnd
from transduce.model.initialisation import initialise
from transduce.model.output import TiedOutput
from transduce.model.padding import causal_mask
from transduce.model.stack import Stack
from transduce.model.stack_config import StackConfig
from transduce.model.weights import NamedOnDisk

__all__ = ["LanguageModel"]


class LanguageModel(NamedOnDisk, IncrementalDecoder[DecodingState]):
    """Tokens in, scores of tokens out: the next one if it ``is_causal`` (decoder-only), else that of each place.

    Sinusoidal positions, unless others are given; the output matrix is that of the embedding. The weights are drawn
    from torch's global generator.
    """

    def __init__(
        self, config: StackConfig, *, vocab_size: int, is_causal: bool = True, positions: nn.Module | None = None
    ) -> None:
        super().__init__()
        embedding = TokenEmbedding(vocab_size, config.d_model)
        self.is_causal = is_causal
        self.source = TokenFrontEnd(embedding, positions or SinusoidalPositions(config.d_model), p_drop=config.p_drop)
        self.decoder = Stack(config, kind="decoder" if is_causal else "encoder")
        self.output = TiedOutput(embedding)
        initialise(self)

    def forward(
        self, ids_BT: Tensor, *, attention_hook: AttentionHook | None = None, auxiliary: AuxiliaryLosses | None = None
    ) -> Tensor:
        """The states (N, D) at the real positions of ids padded on the right with 0; ``output`` scores them."""
        x_ND, padding = self.source(ids_BT)
        allow_BTS = causal_mask(ids_BT.shape[1], ids_BT.device) if self.is_causal else padding.allow_B1S()
        states_ND: Tensor = self.decoder(
            x_ND, padding, allow_BTS=allow_BTS, attention_hook=attention_hook, auxiliary=auxiliary
        )
        return states_ND[: padding.n_real]

    def start(self, n_rows: int) -> DecodingState:
        """Prepare to write so many rows. Only a causal model can."""
        assert self.is_causal
        return self.decoder.start(self.source.start(n_rows))

    def extend(
        self, ids_NT: Tensor, state: DecodingState, n_new_N: Tensor | None = None
    ) -> tuple[Tensor, DecodingState]:
        """Scores (N, T, V) of what follows each of T more tokens of a row, and the state that has seen them."""
        x_NTD, positions = self.source.extend(ids_NT, state.positions, n_new_N)
        states_NTD, state = self.decoder.extend(x_NTD, state, positions, n_new_N)
        return self.output.logits(states_NTD), state
