"""Text to token ids and back, without torch: normalisation, BPE, WordPiece, word-level vocabularies, sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transduce.imports import imported_on_use

if TYPE_CHECKING:
    from transduce.text.bpe import byte_tokenizer, train_bpe, train_characters
    from transduce.text.bpe_dropout import BpeDropout
    from transduce.text.capitals import is_all_caps, to_capitals, to_sentence_case
    from transduce.text.kept_strings import lost_strings, mend, needs_translation
    from transduce.text.masks import MASKS, MaskedText, MaskRules, mask, n_masks, unmask
    from transduce.text.normalise import normalise
    from transduce.text.sentencepiece_tokenizer import SentencePieceTokenizer
    from transduce.text.sentences import Segment, spaces_between, split_clauses, split_sentences
    from transduce.text.tokenizer import WORD_START, Tokenizer, load_tokenizer
    from transduce.text.tokenizer_pair import Tokenizers
    from transduce.text.tokenizer_pipelines import CONTINUATION
    from transduce.text.treebank_words import treebank_words
    from transduce.text.verbatim import find_verbatim
    from transduce.text.vocabulary import (
        BOS_ID,
        EOS_ID,
        LANGUAGE_MODEL_TOKENS,
        MASK_TOKEN,
        PAD_ID,
        SENTINELS,
        SPECIAL_TOKENS,
        UNK_ID,
    )
    from transduce.text.word_level import train_word_level
    from transduce.text.word_spans import word_spans
    from transduce.text.wordpiece import train_wordpiece
    from transduce.text.wordpiece_trainer import split_characters

__all__ = [
    "BOS_ID", "CONTINUATION", "EOS_ID", "LANGUAGE_MODEL_TOKENS", "MASKS", "MASK_TOKEN", "PAD_ID", "SENTINELS",
    "SPECIAL_TOKENS", "UNK_ID", "WORD_START", "BpeDropout", "MaskRules", "MaskedText", "Segment",
    "SentencePieceTokenizer", "Tokenizer", "Tokenizers", "byte_tokenizer", "find_verbatim", "is_all_caps",
    "load_tokenizer", "lost_strings", "mask", "mend", "n_masks", "needs_translation", "normalise",
    "spaces_between", "split_characters", "split_clauses", "split_sentences", "to_capitals", "to_sentence_case",
    "train_bpe", "train_characters", "train_word_level", "train_wordpiece", "treebank_words", "unmask", "word_spans",
]  # fmt: skip

imported_on_use(__name__)
