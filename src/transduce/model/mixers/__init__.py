"""The layers that Table 1 compares: self-attention, whole and restricted, recurrent, convolutional, separable.

All are a ``Mixer``: grid in, grid out. The Transformer does not use them; it has its own self-attention, without
padding, in ``transduce.model.attention``.
"""

from transduce.model.mixers.attending import FullSelfAttention, RestrictedSelfAttention
from transduce.model.mixers.convolutional import Convolution, SeparableConvolution
from transduce.model.mixers.mixer import Mixer
from transduce.model.mixers.recurrent import Recurrent, RecurrentCell, gru_step, lstm_step

__all__ = [
    "Convolution", "FullSelfAttention", "Mixer", "Recurrent", "RecurrentCell", "RestrictedSelfAttention",
    "SeparableConvolution", "gru_step", "lstm_step",
]  # fmt: skip
