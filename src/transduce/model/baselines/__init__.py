"""The baselines of Table 2, small and trainable: same data, tokenizer, search and budget as the Transformer.

Each keeps the characteristic parts of its paper's architecture, at a smaller size.
"""

from transduce.model.baselines.convolutional import ByteNetModel, ConvS2SModel
from transduce.model.baselines.recurrent import LastStateModel, RecurrentModel

__all__ = ["ByteNetModel", "ConvS2SModel", "LastStateModel", "RecurrentModel"]
