"""The Transformer of section 3: attention, layers, stacks, front ends, output layers, decoding state, cost.

Reading order, as in the paper: ``attention.py``, ``layers.py``, ``stack.py``, ``embedding.py``, ``transformer.py``.
"""

from transduce.model.attention import AttentionHook, AttentionKernel, AttentionKind
from transduce.model.blockwise import BlockDecoder, BlockState
from transduce.model.cost import Cost, cost_of
from transduce.model.decoding import DecodingState
from transduce.model.describe import describe
from transduce.model.embedding import LearnedPositions
from transduce.model.encoder_decoder import EncoderDecoder
from transduce.model.ensemble import Ensemble, EnsembleState
from transduce.model.experts import AuxiliaryLosses
from transduce.model.inference import fast_precision, for_inference, has_int8_products
from transduce.model.initialisation import ShapesOnly
from transduce.model.language_model import RewardLM, TransformerLM, ValuedLM
from transduce.model.make import make_model
from transduce.model.masked_transformer import MaskedTransformer
from transduce.model.output import FurtherHeads, LinearOutput, MultiHeadOutput, OutputLayer, ScalarOutput, TiedOutput
from transduce.model.padding import EncoderOutput
from transduce.model.stack import Stack
from transduce.model.stack_config import StackConfig
from transduce.model.transformer import Transformer

__all__ = [
    "AttentionHook",
    "AttentionKernel",
    "AttentionKind",
    "AuxiliaryLosses",
    "BlockDecoder",
    "BlockState",
    "Cost",
    "DecodingState",
    "EncoderDecoder",
    "EncoderOutput",
    "Ensemble",
    "EnsembleState",
    "FurtherHeads",
    "LearnedPositions",
    "LinearOutput",
    "MaskedTransformer",
    "MultiHeadOutput",
    "OutputLayer",
    "RewardLM",
    "ScalarOutput",
    "ShapesOnly",
    "Stack",
    "StackConfig",
    "TiedOutput",
    "Transformer",
    "TransformerLM",
    "ValuedLM",
    "cost_of",
    "describe",
    "fast_precision",
    "for_inference",
    "has_int8_products",
    "make_model",
]  # fmt: skip
