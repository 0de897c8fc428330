"""The Transformer: embeddings with positions, an encoder, a decoder, and the output projection. Section 3, figure 1.

Shapes: B sentences, S source positions, T target positions, M real source positions, N real target positions or rows of
a decoding batch, D d_model, V vocabulary.
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
from transduce.model.media import media_front_end
from transduce.model.output import FurtherHeads
from transduce.model.padding import EncoderOutput, PaddingInfo, PairPadding
from transduce.model.stack import Stack
from transduce.model.stack_config import StackConfig

__all__ = ["FrontEndMaker", "SourceMaker", "Transformer"]

FrontEndMaker = Callable[[TokenEmbedding], TokenFrontEnd]
SourceMaker = Callable[[TokenEmbedding], FrontEnd]  # tokens, or other inputs such as audio frames


class Transformer(EncoderDecoder):
    """The encoder-decoder of figure 1 over ids padded on the right with 0.

    With ``config.source`` the encoder reads images or audio instead: features padded on the right (``model/media.py``).
    ``kernel`` selects the attention implementation: "reference" (readable), "fused" (torch's) or "auto" (the faster).
    ``source`` and ``target`` make front ends over the two embeddings; the default is section 3.5. Without ``is_causal``
    the decoder sees both sides, and cannot write from left to right.
    Weights are sampled from torch's global generator: call ``torch.manual_seed`` first.

    >>> import torch
    >>> from transduce.config import ModelConfig
    >>> model = Transformer(ModelConfig(n_encoder_layers=1, n_decoder_layers=1, src_vocab_size=9, tgt_vocab_size=9))
    >>> src_BS, tgt_BT = torch.tensor([[5, 6, 2]]), torch.tensor([[1, 7]])
    >>> model.logits(model(src_BS, tgt_BT)).shape
    torch.Size([2, 9])
    """

    config: TransformerConfig

    def __init__(
        self,
        config: TransformerConfig,
        *,
        source: SourceMaker | None = None,
        target: FrontEndMaker | None = None,
        kernel: AttentionKernel = "auto",
        is_causal: bool = True,
    ) -> None:
        super().__init__(config)

        def with_positions(embedding: TokenEmbedding) -> TokenFrontEnd:
            return TokenFrontEnd(embedding, make_positions(config), p_drop=config.p_drop)

        src_embedding, tgt_embedding = make_embeddings(config)
        self.target = (target or with_positions)(tgt_embedding)
        self.source: FrontEnd
        if source is None and config.source != "tokens":
            self.source = media_front_end(config)
        else:
            self.source = (source or with_positions)(src_embedding)
        self.encoder = Stack(StackConfig.from_config(config, config.n_encoder_layers), kind="encoder", kernel=kernel)
        decoder_config = StackConfig.from_config(config, config.n_decoder_layers)
        self.decoder = Stack(
            decoder_config, has_cross_attention=True, kind="decoder", kernel=kernel, is_causal=is_causal
        )
        self.output = make_output(config, tgt_embedding)
        # Blockwise parallel decoding; without it, the paper's one prediction at each position.
        self.lookahead_heads = (
            FurtherHeads(config.d_model, n_heads=config.block_size - 1) if config.block_size > 1 else None
        )
        initialise(self)

    def forward(
        self,
        src_BS: Tensor,
        tgt_BT: Tensor,
        *,
        padding: PairPadding | None = None,
        attention_hook: AttentionHook | None = None,
        auxiliary: AuxiliaryLosses | None = None,
    ) -> Tensor:
        """The decoder's states at the real target positions, (N, D); see ``EncoderDecoder.forward``."""
        src, tgt = padding or (None, None)
        memory = self.encode(src_BS, padding=src, attention_hook=attention_hook, auxiliary=auxiliary)
        if auxiliary is not None:
            auxiliary.memory = memory
        return self.decode(memory, tgt_BT, padding=tgt, attention_hook=attention_hook, auxiliary=auxiliary)

    def encode(
        self,
        src_BS: Tensor,
        *,
        padding: PaddingInfo | None = None,
        attention_hook: AttentionHook | None = None,
        auxiliary: AuxiliaryLosses | None = None,
    ) -> EncoderOutput:
        """The encoder's states at the real source positions."""
        x_MD, padding = self.source(src_BS, padding)
        states_MD = self.encoder(x_MD, padding, attention_hook=attention_hook, auxiliary=auxiliary)
        return EncoderOutput(states_MD, padding)

    def decode(
        self,
        memory: EncoderOutput,
        tgt_BT: Tensor,
        *,
        padding: PaddingInfo | None = None,
        attention_hook: AttentionHook | None = None,
        auxiliary: AuxiliaryLosses | None = None,
    ) -> Tensor:
        """The decoder's states at the real target positions, (N, D), in parallel (teacher forcing)."""
        x_ND, padding = self.target(tgt_BT, padding)
        states_ND: Tensor = self.decoder(
            x_ND, padding, memory=memory, attention_hook=attention_hook, auxiliary=auxiliary
        )
        return states_ND[: padding.n_real]

    def start(self, src_BS: Tensor, *, padding: PaddingInfo | None = None) -> DecodingState:
        """Encode the source and return the initial decoding state: one row per sentence.

        ``padding`` is that of the source if it is known; features, which are not ids, need it.
        """
        memory = self.encode(src_BS, padding=padding)
        return self.decoder.start(self.target.start(memory.padding.n_sentences), memory)

    def extend(
        self, ids_NT: Tensor, state: DecodingState, n_new_N: Tensor | None = None
    ) -> tuple[Tensor, DecodingState]:
        """Next-token logits (N, T, V) after each of T new tokens of a row, and the next decoding state."""
        states_NTD, state = self.extend_states(ids_NT, state, n_new_N)
        return self.logits(states_NTD), state

    def extend_states(
        self, ids_NT: Tensor, state: DecodingState, n_new_N: Tensor | None = None
    ) -> tuple[Tensor, DecodingState]:
        """The decoder's states (N, T, D) at each of T new tokens of a row, and the next decoding state."""
        x_NTD, positions = self.target.extend(ids_NT, state.positions, n_new_N)
        return self.decoder.extend(x_NTD, state, positions, n_new_N)
