"""The Transformer of section 3: attention, layers, stacks, front ends, output layers, decoding state, cost.

Reading order, as in the paper: ``attention.py``, ``layers.py``, ``stack.py``, ``embedding.py``, ``transformer.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transduce.imports import imported_on_use

if TYPE_CHECKING:
    from transduce.model.attention import (
        AttentionHook,
        AttentionKernel,
        AttentionKind,
        CrossAttention,
        MultiHeadAttention,
        SelfAttention,
        dot_product_attention,
        weighted_values,
    )
    from transduce.model.blockwise import BlockDecoder, BlockState
    from transduce.model.cost import Cost, cost_of
    from transduce.model.decoding import DecodingState
    from transduce.model.describe import describe
    from transduce.model.dropout import Dropout
    from transduce.model.embedding import LearnedPositions, SinusoidalPositions, TokenEmbedding, sinusoid
    from transduce.model.encoder_decoder import EncoderDecoder
    from transduce.model.ensemble import Ensemble, EnsembleState
    from transduce.model.experts import AuxiliaryLosses
    from transduce.model.front_end import TokenFrontEnd
    from transduce.model.inference import fast_precision, for_inference, has_int8_products
    from transduce.model.initialisation import ShapesOnly, initialise
    from transduce.model.language_model import RewardLM, TransformerLM, ValuedLM
    from transduce.model.layers import FeedForward, Layer, Residual
    from transduce.model.make import make_model
    from transduce.model.masked_transformer import MaskedTransformer
    from transduce.model.output import (
        FurtherHeads,
        LinearOutput,
        MultiHeadOutput,
        OutputLayer,
        ScalarOutput,
        TiedOutput,
    )
    from transduce.model.padding import EncoderOutput, PaddingInfo, causal_mask
    from transduce.model.score_functions import make_compatibility
    from transduce.model.stack import Stack
    from transduce.model.stack_config import LAYER_NORM_EPS, StackConfig
    from transduce.model.transformer import Transformer
    from transduce.model.weights import name_on_disk

__all__ = [
    "LAYER_NORM_EPS", "AttentionHook", "AttentionKernel", "AttentionKind", "AuxiliaryLosses", "BlockDecoder",
    "BlockState", "Cost", "CrossAttention", "DecodingState", "Dropout", "EncoderDecoder", "EncoderOutput",
    "Ensemble", "EnsembleState", "FeedForward", "FurtherHeads", "Layer", "LearnedPositions", "LinearOutput",
    "MaskedTransformer", "MultiHeadAttention", "MultiHeadOutput", "OutputLayer", "PaddingInfo", "Residual",
    "RewardLM", "ScalarOutput", "SelfAttention", "ShapesOnly", "SinusoidalPositions", "Stack", "StackConfig",
    "TiedOutput", "TokenEmbedding", "TokenFrontEnd", "Transformer", "TransformerLM", "ValuedLM", "causal_mask",
    "cost_of", "describe", "dot_product_attention", "fast_precision", "for_inference", "has_int8_products",
    "initialise", "make_compatibility", "make_model", "name_on_disk", "sinusoid", "weighted_values",
]  # fmt: skip

imported_on_use(__name__)
