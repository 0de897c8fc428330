"""The layer types of Table 1: full and restricted self-attention, recurrent, convolutional, separable.

All are a ``SequenceLayer``, padded (B, T, D) in and out. The Transformer's layer is ``transduce.model.attention``'s
``SelfAttention``, which skips padding and calls the same functions: ``dot_product_attention``, and
``restricted_attention`` with ``model.attention = "restricted"``.
"""

from transduce.model.sequence_layers.convolutional import Convolution, SeparableConvolution
from transduce.model.sequence_layers.recurrent import Recurrent, RecurrentCell, gru_step, lstm_step, rnn_step
from transduce.model.sequence_layers.self_attention import FullSelfAttention, RestrictedSelfAttention
from transduce.model.sequence_layers.sequence_layer import SequenceLayer

__all__ = [
    "Convolution",
    "FullSelfAttention",
    "Recurrent",
    "RecurrentCell",
    "RestrictedSelfAttention",
    "SeparableConvolution",
    "SequenceLayer",
    "gru_step",
    "lstm_step",
    "rnn_step",
]  # fmt: skip
