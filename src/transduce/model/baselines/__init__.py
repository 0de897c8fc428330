"""The systems that Table 2 compares the Transformer with, small and trainable: same data, tokenizer, search and budget.

They follow the papers in what made each system what it was, and leave out what made it large.
"""

from transduce.model.baselines.convolutional import ByteNetModel, ConvS2SModel
from transduce.model.baselines.recurrent import LastStateModel, RecurrentModel

__all__ = ["ByteNetModel", "ConvS2SModel", "LastStateModel", "RecurrentModel"]
