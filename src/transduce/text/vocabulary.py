"""The four special tokens at the start of every vocabulary, and those at the end of language models' vocabularies.

They are entries of the vocabulary only. No tokenizer matches them in text, so ``</s>`` in a sentence is ordinary text.
"""

from __future__ import annotations

__all__ = [
    "BOS_ID", "EOS_ID", "LANGUAGE_MODEL_TOKENS", "MASK_TOKEN", "NO_TEXT", "PAD_ID", "SENTINELS", "SPECIAL_TOKENS",
    "UNK_ID",
]  # fmt: skip

PAD_ID = 0  # pads the rows of a batch to the longest
BOS_ID = 1  # the first decoder input: the outputs "shifted right" of Figure 1
EOS_ID = 2  # ends every sentence, source and target
UNK_ID = 3  # text that the vocabulary cannot represent; byte-level vocabularies represent everything

SPECIAL_TOKENS = ("<pad>", "<s>", "</s>", "<unk>")  # indexed by id

# At the end of vocabularies of language models. Text never contains them as tokens either: words, punctuation and
# digits are split from each other before merging.
MASK_TOKEN = "<mask>"  # in place of a token that a masked language model predicts
SENTINELS = tuple(f"<extra_id_{number}>" for number in range(100))  # each stands for a span of text (T5)
LANGUAGE_MODEL_TOKENS = (MASK_TOKEN, *SENTINELS)

NO_TEXT = "cannot learn a vocabulary: the training data has no text, or only empty lines"
