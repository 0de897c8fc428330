"""The model that a configuration names."""

from __future__ import annotations

from typing import assert_never

from transduce.config import ModelConfig
from transduce.model.encoder_decoder import EncoderDecoder
from transduce.model.rivals import ByteNetModel, ConvS2SModel, LastStateModel, RecurrentModel
from transduce.model.transformer import FrontEndMaker, Transformer

__all__ = ["make_model"]


def make_model(
    config: ModelConfig, *, source: FrontEndMaker | None = None, target: FrontEndMaker | None = None
) -> EncoderDecoder:
    """A new model, its weights drawn from torch's global generator; other front ends are for the Transformer."""
    match config.system:
        case "transformer":
            return Transformer(config, source=source, target=target)
        case "recurrent":
            return RecurrentModel(config)
        case "last-state":
            return LastStateModel(config)
        case "convs2s":
            return ConvS2SModel(config)
        case "bytenet":
            return ByteNetModel(config)
        case _:
            assert_never(config.system)
