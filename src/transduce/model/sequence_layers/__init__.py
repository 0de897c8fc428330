"""The layers that Table 1 compares: self-attention, whole and restricted, recurrent, convolutional, separable.

All are a ``SequenceLayer``: grid in, grid out. The Transformer does not use them; it has its own self-attention,
without padding, in ``transduce.model.attention``.
"""

from transduce.model.sequence_layers.convolutional import Convolution, SeparableConvolution
from transduce.model.sequence_layers.recurrent import Recurrent, RecurrentCell, gru_step, lstm_step
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
]  # fmt: skip
