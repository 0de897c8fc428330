"""The systems that Table 2 compares the Transformer with, small and trainable: same data, tokenizer, search and budget.

They follow the papers in what made each system what it was, and leave out what made it large.
"""

from __future__ import annotations

from transduce.model.rivals.convolutional import ByteNetModel, ConvS2SModel
from transduce.model.rivals.grid import GridModel, Memory, PrefixState
from transduce.model.rivals.recurrent import AdditiveAttention, LastStateModel, RecurrentModel

__all__ = [
    "AdditiveAttention",
    "ByteNetModel",
    "ConvS2SModel",
    "GridModel",
    "LastStateModel",
    "Memory",
    "PrefixState",
    "RecurrentModel",
]
