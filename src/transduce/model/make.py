"""Builds the model of a configuration, whatever it is.

The configuration says what the model is, so a model folder is read without its task. The task sets two fields, which
recipes leave out (``Task.own_model``): ``decoder = "masked"`` is the Transformer of mask-predict; ``output = "scalar"``
is a reward model, ``"tokens-and-value"`` the policy of PPO with its value function.
"""

from __future__ import annotations

from typing import assert_never, cast, overload

from transduce.config import (
    AnyModelConfig,
    ByteNetConfig,
    ConvS2SConfig,
    EncoderDecoderConfig,
    LanguageModelConfig,
    LastStateConfig,
    ModelConfig,
    RecurrentConfig,
    TransformerConfig,
)
from transduce.model.baselines import ByteNetModel, ConvS2SModel, LastStateModel, RecurrentModel
from transduce.model.encoder_decoder import EncoderDecoder
from transduce.model.language_model import RewardLM, TransformerLM, ValuedLM
from transduce.model.masked_transformer import MaskedTransformer
from transduce.model.transformer import Transformer
from transduce.model.word_positions import word_position_model
from transduce.text import Tokenizers

__all__ = ["make_model"]


@overload
def make_model(config: EncoderDecoderConfig, tokenizers: Tokenizers | None = None) -> EncoderDecoder: ...


@overload
def make_model(config: LanguageModelConfig, tokenizers: Tokenizers | None = None) -> TransformerLM: ...


@overload
def make_model(config: ModelConfig, tokenizers: Tokenizers | None = None) -> EncoderDecoder | TransformerLM: ...


def make_model(config: ModelConfig, tokenizers: Tokenizers | None = None) -> EncoderDecoder | TransformerLM:
    """Build a model, sampling from torch's global generator.

    Only word positions depend on the tokenizers; without them, the shapes are right, and the values are not.
    """
    match cast(AnyModelConfig, config):
        case TransformerConfig(decoder="masked") as config:
            return MaskedTransformer(config)
        case TransformerConfig(positions="words") as config:
            return word_position_model(config, tokenizers)
        case TransformerConfig() as config:
            return Transformer(config)
        case RecurrentConfig() as config:
            return RecurrentModel(config)
        case LastStateConfig() as config:
            return LastStateModel(config)
        case ConvS2SConfig() as config:
            return ConvS2SModel(config)
        case ByteNetConfig() as config:
            return ByteNetModel(config)
        case LanguageModelConfig() as config:
            kinds = {"tokens": TransformerLM, "scalar": RewardLM, "tokens-and-value": ValuedLM}
            return kinds[config.output].from_config(config)
        case never:
            assert_never(never)
