"""The classes of trained models, which register themselves when they are imported."""

from transduce.inference.language_models.causal import CausalLanguageModel
from transduce.inference.language_models.masked import MaskedLanguageModel
from transduce.inference.language_models.pixels import PixelModel
from transduce.inference.language_models.responses import ResponseModel, RewardModel
from transduce.inference.language_models.spans import SpanLanguageModel
from transduce.inference.media_model import Reader, Transcriber
from transduce.inference.parser import Parser
from transduce.inference.translation.translator import MaskPredictTranslator, Translator

__all__ = [
    "CausalLanguageModel", "MaskPredictTranslator", "MaskedLanguageModel", "Parser", "PixelModel", "Reader",
    "ResponseModel", "RewardModel", "SpanLanguageModel", "Transcriber", "Translator",
]  # fmt: skip
