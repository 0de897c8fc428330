"""The Transformer of section 3: formulas, attention, layers, encoder and decoder, decoding state, cost.

Read ``attention.py`` first, then ``layers.py`` and ``transformer.py``; they follow the paper's order.
"""

from __future__ import annotations

from transduce.model.attention import AttentionKernel, AttentionKind, AttentionSink
from transduce.model.cost import Cost, cost_of
from transduce.model.decoding import DecodingState
from transduce.model.describe import describe
from transduce.model.ensemble import Ensemble, EnsembleState
from transduce.model.inference import fast_precision, for_inference, has_int8_products
from transduce.model.transformer import EncoderOutput, Transformer

__all__ = [
    "AttentionKernel",
    "AttentionKind",
    "AttentionSink",
    "Cost",
    "DecodingState",
    "EncoderOutput",
    "Ensemble",
    "EnsembleState",
    "Transformer",
    "cost_of",
    "describe",
    "fast_precision",
    "for_inference",
    "has_int8_products",
]
