"""The four special tokens at the start of every vocabulary.

They are entries of the vocabulary only. No tokenizer matches them in text, so ``</s>`` in a sentence is ordinary text.
"""

from __future__ import annotations

__all__ = ["BOS_ID", "EOS_ID", "NO_TEXT", "PAD_ID", "SPECIAL_TOKENS", "UNK_ID"]

PAD_ID = 0  # pads the rows of a batch to the longest
BOS_ID = 1  # the first decoder input: the outputs "shifted right" of Figure 1
EOS_ID = 2  # ends every sentence, source and target
UNK_ID = 3  # text that the vocabulary cannot represent; byte-level vocabularies represent everything

SPECIAL_TOKENS = ("<pad>", "<s>", "</s>", "<unk>")  # indexed by id

NO_TEXT = "cannot learn a vocabulary: the training data has no text, or only empty lines"
