"""The Transformer: an encoder, a decoder, and the matrix that turns states into scores. Section 3, figure 1.

Shapes: B batch, S source positions, T target positions, M and N the real ones of them in a list, D d_model,
V vocabulary, H heads, W beams of a sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor, nn

from transduce.config import TransformerConfig
from transduce.model.attention import AttentionKernel, AttentionSink, blocked_scores, tap
from transduce.model.decoding import DecodingState, LayerCache
from transduce.model.dropout import Dropout
from transduce.model.embedding import WordCount, make_positions, positional_encoding
from transduce.model.encoder_decoder import EncoderDecoder
from transduce.model.initialisation import initialise
from transduce.model.layers import LAYER_NORM_EPS, DecoderLayer, EncoderLayer
from transduce.model.layout import Layout, causal_mask
from transduce.text import PAD_ID

__all__ = ["EncoderOutput", "Transformer"]


@dataclass(frozen=True, slots=True)
class EncoderOutput:
    """What the decoder asks: the states of the real source positions, and where they stand."""

    states_MD: Tensor
    layout: Layout


class Transformer(EncoderDecoder):
    """The model of figure 1 over ids padded on the right with 0.

    ``kernel`` chooses how attention is computed: "reference" (readable), "fused" (torch's), or "auto" (the faster).
    The weights are drawn from torch's global generator: call ``torch.manual_seed`` first.

    >>> config = TransformerConfig(n_encoder_layers=1, n_decoder_layers=1, src_vocab_size=9, tgt_vocab_size=9)
    >>> model = Transformer(config)
    >>> src_BS, tgt_BT = torch.tensor([[5, 6, 2]]), torch.tensor([[1, 7]])
    >>> model.logits(model(src_BS, tgt_BT)).shape
    torch.Size([2, 9])
    """

    config: TransformerConfig

    def __init__(self, config: TransformerConfig, *, kernel: AttentionKernel = "auto") -> None:
        super().__init__(config)
        self.src_positions = make_positions(config)
        self.tgt_positions = make_positions(config)
        counts_words = config.positions == "words"
        self.src_words = WordCount(config.src_vocab_size) if counts_words else None
        self.tgt_words = WordCount(config.tgt_vocab_size) if counts_words else None
        self.embedding_dropout = Dropout(config.p_drop)
        self.encoder = nn.ModuleList(EncoderLayer(config, kernel=kernel) for _ in range(config.n_encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(config, kernel=kernel) for _ in range(config.n_decoder_layers))
        # With the norm inside the residual branch, the sum that leaves a stack is not normalised yet.
        is_pre = config.norm == "pre"
        self.encoder_norm = nn.LayerNorm(config.d_model, eps=LAYER_NORM_EPS) if is_pre else nn.Identity()
        self.decoder_norm = nn.LayerNorm(config.d_model, eps=LAYER_NORM_EPS) if is_pre else nn.Identity()
        initialise(self)

    def forward(self, src_BS: Tensor, tgt_BT: Tensor, *, attention_sink: AttentionSink | None = None) -> Tensor:
        """The decoder's states at the real target positions, (N, D), row by row; ``logits`` makes scores of them.

        ``tgt_BT`` is the decoder's input: it begins with the begin symbol ("shifted right", figure 1).
        """
        memory = self.encode(src_BS, attention_sink=attention_sink)
        return self.decode(memory, tgt_BT, attention_sink=attention_sink)

    def encode(self, src_BS: Tensor, *, attention_sink: AttentionSink | None = None) -> EncoderOutput:
        """The encoder's states at the real source positions."""
        layout = Layout.of(src_BS != PAD_ID)
        x_MD = self._embed(src_BS, layout, self.src_embedding, self.src_positions, self.src_words)
        allow_B1S = layout.allow_B1S()
        for number, layer in enumerate(self.encoder):
            x_MD = layer(x_MD, layout, allow_B1S=allow_B1S, sink=tap(attention_sink, "encoder", number))
        return EncoderOutput(self.encoder_norm(x_MD), layout)

    def decode(self, memory: EncoderOutput, tgt_BT: Tensor, *, attention_sink: AttentionSink | None = None) -> Tensor:
        """The decoder's states at the real target positions, (N, D), all at once (teacher forcing)."""
        layout = Layout.of(tgt_BT != PAD_ID)
        x_ND = self._embed(tgt_BT, layout, self.tgt_embedding, self.tgt_positions, self.tgt_words)
        causal_1TT = causal_mask(tgt_BT.shape[1], tgt_BT.device)
        allow_B1S = memory.layout.allow_B1S()
        for number, layer in enumerate(self.decoder):
            x_ND = layer(
                x_ND,
                layout,
                memory.states_MD,
                memory.layout,
                causal_1TT=causal_1TT,
                allow_B1S=allow_B1S,
                self_sink=tap(attention_sink, "decoder", number),
                cross_sink=tap(attention_sink, "cross", number),
            )
        states_ND: Tensor = self.decoder_norm(x_ND)
        return states_ND[: layout.n_real]

    def start(self, src_BS: Tensor) -> DecodingState:
        """Encode, and prepare the decoder to write one row for each sentence, token by token."""
        memory = self.encode(src_BS)
        memory_BSD = memory.layout.to_grid(memory.states_MD)
        layers = []
        for layer in self._decoder_layers():
            cross_k_BHSK, cross_v_BHSV = layer.cross_attention.keys_values(memory_BSD)
            layers.append(LayerCache(cross_k_BHSK[:, :, :0], cross_v_BHSV[:, :, :0], cross_k_BHSK, cross_v_BHSV))
        nothing_B1C = torch.ones(len(src_BS), 1, 0, dtype=torch.bool, device=src_BS.device)
        n_words_N = None if self.tgt_words is None else torch.zeros_like(src_BS[:, 0])
        return DecodingState(tuple(layers), memory.layout.allow_B1S(), nothing_B1C, n_steps=0, n_words_N=n_words_N)

    def step(self, last_ids_N: Tensor, state: DecodingState) -> tuple[Tensor, DecodingState]:
        """Scores (N, V) of the token after ``last_ids``, and the state that has seen it."""
        position_N, n_words_N = torch.full_like(last_ids_N, state.n_steps), state.n_words_N
        if self.tgt_words is not None and n_words_N is not None:
            n_words_N = n_words_N + self.tgt_words(last_ids_N.unsqueeze(1)).squeeze(1)
        x_ND = self.tgt_embedding(last_ids_N) + positional_encoding(
            self.tgt_positions, position_N, state.n_steps + 1, n_words_N
        )
        x_BWD = self.embedding_dropout(x_ND).unflatten(0, (-1, state.n_beams))
        state = state.with_room()
        itself_BWW = torch.eye(state.n_beams, dtype=torch.bool, device=x_ND.device).expand(len(x_BWD), -1, -1)
        is_past_BWC = torch.cat((state.is_past_BWC, itself_BWW), dim=2)
        # With one row, every slot is its past.
        blocked_GWC = self._blocked_scores(is_past_BWC if state.n_beams > 1 else None, state)
        blocked_G1S = self._blocked_scores(state.allow_B1S, state)
        for layer, cache in zip(self._decoder_layers(), state.layers, strict=True):
            x_BWD = layer.step(x_BWD, cache, blocked_GWC=blocked_GWC, n_filled=state.n_filled, blocked_G1S=blocked_G1S)
        logits_NV = self.logits(self.decoder_norm(x_BWD.flatten(0, 1)))
        return logits_NV, replace(state, is_past_BWC=is_past_BWC, n_steps=state.n_steps + 1, n_words_N=n_words_N)

    def _blocked_scores(self, allow_BTS: Tensor | None, state: DecodingState) -> Tensor | None:
        """A mask in the form that all layers of a step take."""
        if allow_BTS is None:
            return None
        return blocked_scores(allow_BTS, n_heads=self.config.n_heads, dtype=state.layers[0].cross_k_BHSK.dtype)

    def _decoder_layers(self) -> Iterator[DecoderLayer]:
        """The stack, typed."""
        return cast(Iterator[DecoderLayer], iter(self.decoder))

    def _embed(
        self, ids_BT: Tensor, layout: Layout, embedding: nn.Module, positions: nn.Module, words: WordCount | None
    ) -> Tensor:
        """Token plus position, (N, D), for the real positions of (B, T) ids."""
        n_words_N = None if words is None else words(ids_BT).flatten()[layout.index_N]
        x_ND = embedding(ids_BT.flatten()[layout.index_N]) + positional_encoding(
            positions, layout.positions_N(), ids_BT.shape[1], n_words_N
        )
        out_ND: Tensor = self.embedding_dropout(x_ND)
        return out_ND
