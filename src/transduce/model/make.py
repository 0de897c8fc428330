"""Builds the model of a configuration."""

from __future__ import annotations

from typing import assert_never, cast

from transduce.config import (
    AnyModelConfig,
    ByteNetConfig,
    ConvS2SConfig,
    LanguageModelConfig,
    LastStateConfig,
    ModelConfig,
    RecurrentConfig,
    TransformerConfig,
)
from transduce.errors import ConfigError
from transduce.model.baselines import ByteNetModel, ConvS2SModel, LastStateModel, RecurrentModel
from transduce.model.encoder_decoder import EncoderDecoder
from transduce.model.transformer import FrontEndMaker, Transformer

__all__ = ["make_model"]


def make_model(
    config: ModelConfig, *, source: FrontEndMaker | None = None, target: FrontEndMaker | None = None
) -> EncoderDecoder:
    """Build an encoder-decoder, sampling from torch's global generator.

    Only a Transformer uses ``source`` and ``target``. Raises ConfigError for a language model.
    """
    match cast(AnyModelConfig, config):
        case TransformerConfig() as config:
            return Transformer(config, source=source, target=target)
        case RecurrentConfig() as config:
            return RecurrentModel(config)
        case LastStateConfig() as config:
            return LastStateModel(config)
        case ConvS2SConfig() as config:
            return ConvS2SModel(config)
        case ByteNetConfig() as config:
            return ByteNetModel(config)
        case LanguageModelConfig():
            raise ConfigError("system = 'language-model' has no encoder and decoder; use system = 'transformer'")
        case never:
            assert_never(never)
