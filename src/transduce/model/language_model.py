"""Decoder-only and bidirectional language models: one stack of figure 1 over tokens, without a source.

``ValuedLM`` and ``RewardLM`` have further outputs, for alignment.

Shapes: B sequences, T positions, S key positions, N real positions or rows of a decoding batch, D d_model,
V vocabulary.
"""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor, nn

from transduce.config import LanguageModelConfig
from transduce.model.attention import AttentionHook
from transduce.model.decoding import DecodingState, IncrementalDecoder
from transduce.model.embedding import SinusoidalPositions, TokenEmbedding, make_positions
from transduce.model.experts import AuxiliaryLosses
from transduce.model.front_end import TokenFrontEnd
from transduce.model.initialisation import initialise
from transduce.model.output import LinearOutput, ScalarOutput, TiedOutput, VocabularyOutput
from transduce.model.stack import Stack
from transduce.model.stack_config import StackConfig
from transduce.model.weights import NamedOnDisk

__all__ = ["RewardLM", "TransformerLM", "ValuedLM"]


class TransformerLM(NamedOnDisk, IncrementalDecoder[DecodingState]):
    """A language model: logits of the next token if ``is_causal`` (decoder-only), else of the token at each position.

    By default, positions are sinusoidal and the output layer is tied to the embedding. Weights are sampled from torch's
    global generator.
    """

    def __init__(
        self,
        config: StackConfig,
        *,
        vocab_size: int,
        is_causal: bool = True,
        positions: nn.Module | None = None,
        embedding: TokenEmbedding | None = None,
        output: VocabularyOutput | None = None,
        window: int | None = None,
    ) -> None:
        """``window``: the number of positions that it is trained on, for those who use it; None: not known."""
        super().__init__()
        embedding = embedding or TokenEmbedding(vocab_size, config.d_model)
        self.is_causal, self.window = is_causal, window
        self.config: LanguageModelConfig | None = None  # of one that was built from it
        self.source = TokenFrontEnd(embedding, positions or SinusoidalPositions(config.d_model), p_drop=config.p_drop)
        self.decoder = Stack(config, kind="decoder" if is_causal else "encoder")
        self.output = output or TiedOutput(embedding)
        initialise(self)

    @classmethod
    def from_config(cls, config: LanguageModelConfig) -> Self:
        """Build the model of a configuration."""
        embedding = TokenEmbedding(config.vocab_size, config.d_model, is_scaled=config.scale_embeddings)
        model = cls(
            StackConfig.from_config(config, config.n_layers),
            vocab_size=config.vocab_size,
            is_causal=config.is_causal,
            positions=make_positions(config),
            embedding=embedding,
            output=cls.output_of(config, embedding),
            window=config.n_positions,
        )
        model.config = config
        return model

    @staticmethod
    def output_of(config: LanguageModelConfig, embedding: TokenEmbedding) -> VocabularyOutput:
        """Build the output layer of a configuration."""
        if config.tied_embeddings:
            return TiedOutput(embedding, has_bias=config.output_bias)
        return LinearOutput(config.d_model, config.vocab_size, has_bias=config.output_bias)

    def forward(
        self, ids_BT: Tensor, *, attention_hook: AttentionHook | None = None, auxiliary: AuxiliaryLosses | None = None
    ) -> Tensor:
        """The states (N, D) at the real positions of ids padded on the right with 0; ``output`` gives their logits."""
        x_ND, padding = self.source(ids_BT)
        states_ND: Tensor = self.decoder(x_ND, padding, attention_hook=attention_hook, auxiliary=auxiliary)
        return states_ND[: padding.n_real]

    def start(self, n_rows: int) -> DecodingState:
        """The initial decoding state of ``n_rows`` rows; causal models only."""
        assert self.is_causal
        return self.decoder.start(self.source.start(n_rows))

    def extend(
        self, ids_NT: Tensor, state: DecodingState, n_new_N: Tensor | None = None
    ) -> tuple[Tensor, DecodingState]:
        """Next-token logits (N, T, V) after each of T new tokens of a row, and the next decoding state."""
        x_NTD, positions = self.source.extend(ids_NT, state.positions, n_new_N)
        states_NTD, state = self.decoder.extend(x_NTD, state, positions, n_new_N)
        return self.output.logits(states_NTD), state


class RewardLM(TransformerLM):
    """A causal language model with a scalar output, read at the last token of a response. Ouyang et al. (2022).

    The weights of the output are drawn with standard deviation 1 / sqrt(d_model + 1). Ziegler et al. (2019).
    """

    output: ScalarOutput  # type: ignore[assignment]

    def __init__(self, config: StackConfig, **settings: Any) -> None:
        super().__init__(config, **settings)
        nn.init.normal_(self.output.linear.weight, std=(config.d_model + 1) ** -0.5)
        nn.init.zeros_(self.output.linear.bias)

    @staticmethod
    def output_of(config: LanguageModelConfig, embedding: TokenEmbedding) -> ScalarOutput:  # type: ignore[override]
        """Build the scalar output."""
        return ScalarOutput(config.d_model)

    def scalars(self, ids_BT: Tensor) -> Tensor:
        """The outputs at all real positions of ids padded on the right with 0, (N,)."""
        return self.output.logits(self(ids_BT))

    @torch.no_grad()
    def normalise(self, rewards_B: Tensor) -> None:
        """Change scale and offset of the output so that these rewards would have mean 0 and standard deviation 1."""
        linear, deviation = self.output.linear, rewards_B.std(correction=0).clamp_min(1e-6)
        linear.bias.sub_(rewards_B.mean())
        linear.weight.div_(deviation)
        linear.bias.div_(deviation)


class ValuedLM(TransformerLM):
    """A causal language model with an estimate of the return at each position: policy and value function of PPO.

    The value function is a network of its own, so that what it learns does not change the policy. Stiennon et al.
    (2020).
    """

    value: RewardLM

    @classmethod
    def from_config(cls, config: LanguageModelConfig) -> Self:
        """Build both; the value function is drawn after the policy."""
        model = super().from_config(config)
        model.value = RewardLM.from_config(config)
        return model

    @torch.no_grad()
    def start_value(self, reward_model: RewardLM) -> None:
        """Start the value function from a reward model. Stiennon et al. (2020).

        One of another shape is of no use here; then the value function starts from the policy's layers, with an output
        of 0 (Ziegler et al., 2019).
        """
        theirs = reward_model.canonical()
        if {name: weight.shape for name, weight in self.value.canonical().items()} == {
            name: weight.shape for name, weight in theirs.items()
        }:
            for name, weight in self.value.canonical().items():
                weight.copy_(theirs[name])
            return
        ours = self.canonical()
        for name, weight in self.value.canonical().items():
            if name.startswith("output."):
                nn.init.zeros_(weight)
            else:
                weight.copy_(ours[name])
