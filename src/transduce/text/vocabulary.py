"""The four symbols that every vocabulary begins with, whatever made the rest of it.

They are entries of the vocabulary only. No tokenizer ever looks for them in a text, so that a sentence with ``</s>`` in
it is a sentence like any other.
"""

from __future__ import annotations

__all__ = ["BOS_ID", "EOS_ID", "NO_TEXT", "PAD_ID", "SPECIAL_TOKENS", "UNK_ID"]

PAD_ID = 0  # fills rows of a batch up to the longest
BOS_ID = 1  # what the decoder is given before the first token: the outputs "shifted right" of Figure 1
EOS_ID = 2  # ends every sentence, on both sides
UNK_ID = 3  # text that the vocabulary cannot spell; byte-level vocabularies spell everything

SPECIAL_TOKENS = ("<pad>", "<s>", "</s>", "<unk>")  # at the index of their ids

NO_TEXT = "a vocabulary cannot be learned from no text: every line is empty, or there is none"
