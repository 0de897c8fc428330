"""The Transformer: an encoder, a decoder, and the matrix that turns states into scores. Section 3, figure 1.

Shapes: B sentences, S source positions, T target positions, M and N the real ones of them in a list (N also: rows of a
decoding), D d_model, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from transduce.config import TransformerConfig
from transduce.model.attention import AttentionHook, AttentionKernel
from transduce.model.decoding import DecodingState
from transduce.model.embedding import TokenEmbedding, make_positions
from transduce.model.encoder_decoder import EncoderDecoder, make_embeddings, make_output
from transduce.model.experts import AuxiliaryLosses
from transduce.model.front_end import FrontEnd, TokenFrontEnd
from transduce.model.initialisation import initialise
from transduce.model.padding import EncoderOutput, causal_mask
from transduce.model.stack import Stack
from transduce.model.stack_config import StackConfig

__all__ = ["FrontEndMaker", "SourceMaker", "Transformer"]

FrontEndMaker = Callable[[TokenEmbedding], TokenFrontEnd]
SourceMaker = Callable[[TokenEmbedding], FrontEnd]  # of tokens, or of anything else that can be read


class Transformer(EncoderDecoder):
    """The model of figure 1 over ids padded on the right with 0.

    ``kernel`` chooses how attention is computed: "reference" (readable), "fused" (torch's), or "auto" (the faster).
    ``source`` and ``target`` make other front ends over the two embeddings than those of section 3.5.
    The weights are drawn from torch's global generator: call ``torch.manual_seed`` first.

    >>> import torch
    >>> from transduce.config import ModelConfig
    >>> model = Transformer(ModelConfig(n_encoder_layers=1, n_decoder_layers=1, src_vocab_size=9, tgt_vocab_size=9))
    >>> src_BS, tgt_BT = torch.tensor([[5, 6, 2]]), torch.tensor([[1, 7]])
    >>> model.logits(model(src_BS, tgt_BT)).shape
    torch.Size([2, 9])
    """

    def __init__(
        self,
        config: TransformerConfig,
        *,
        source: SourceMaker | None = None,
        target: FrontEndMaker | None = None,
        kernel: AttentionKernel = "auto",
    ) -> None:
        super().__init__(config)

        def with_positions(embedding: TokenEmbedding) -> TokenFrontEnd:
            return TokenFrontEnd(embedding, make_positions(config), p_drop=config.p_drop)

        src_embedding, tgt_embedding = make_embeddings(config)
        self.target = (target or with_positions)(tgt_embedding)
        self.source: FrontEnd = (source or with_positions)(src_embedding)
        self.encoder = Stack(StackConfig.from_config(config, config.n_encoder_layers), kind="encoder", kernel=kernel)
        self.decoder = Stack(
            StackConfig.from_config(config, config.n_decoder_layers),
            has_cross_attention=True,
            kind="decoder",
            kernel=kernel,
        )
        self.output = make_output(config, tgt_embedding)
        initialise(self)

    def forward(
        self,
        src_BS: Tensor,
        tgt_BT: Tensor,
        *,
        attention_hook: AttentionHook | None = None,
        auxiliary: AuxiliaryLosses | None = None,
    ) -> Tensor:
        """The decoder's states at the real target positions, (N, D), as ``EncoderDecoder`` has it."""
        memory = self.encode(src_BS, attention_hook=attention_hook, auxiliary=auxiliary)
        return self.decode(memory, tgt_BT, attention_hook=attention_hook, auxiliary=auxiliary)

    def encode(
        self, src_BS: Tensor, *, attention_hook: AttentionHook | None = None, auxiliary: AuxiliaryLosses | None = None
    ) -> EncoderOutput:
        """The encoder's states at the real source positions."""
        x_MD, padding = self.source(src_BS)
        states_MD = self.encoder(
            x_MD, padding, allow_BTS=padding.allow_B1S(), attention_hook=attention_hook, auxiliary=auxiliary
        )
        return EncoderOutput(states_MD, padding)

    def decode(
        self,
        memory: EncoderOutput,
        tgt_BT: Tensor,
        *,
        attention_hook: AttentionHook | None = None,
        auxiliary: AuxiliaryLosses | None = None,
    ) -> Tensor:
        """The decoder's states at the real target positions, (N, D), all at once (teacher forcing)."""
        x_ND, padding = self.target(tgt_BT)
        causal_1TT = causal_mask(tgt_BT.shape[1], tgt_BT.device)
        states_ND: Tensor = self.decoder(
            x_ND, padding, allow_BTS=causal_1TT, memory=memory, attention_hook=attention_hook, auxiliary=auxiliary
        )
        return states_ND[: padding.n_real]

    def start(self, src_BS: Tensor) -> DecodingState:
        """Encode, and prepare the decoder to write one row for each sentence."""
        memory = self.encode(src_BS)
        return self.decoder.start(self.target.start(len(memory.padding.is_real_BT)), memory)

    def extend(
        self, ids_NT: Tensor, state: DecodingState, n_new_N: Tensor | None = None
    ) -> tuple[Tensor, DecodingState]:
        """Scores (N, T, V) of what follows each of T more tokens of a row, and the state that has seen them."""
        x_NTD, positions = self.target.extend(ids_NT, state.positions, n_new_N)
        states_NTD, state = self.decoder.extend(x_NTD, state, positions, n_new_N)
        return self.logits(states_NTD), state
