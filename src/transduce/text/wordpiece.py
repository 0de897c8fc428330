"""Byte-level WordPiece: the English-French vocabulary of section 5.1, trained by likelihood. Lossless.

Pieces inside a word have a continuation prefix, which distinguishes them from the same letters at the start of a word.
Encoding is greedy: from left to right, the longest matching piece.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import models

from transduce.errors import ConfigError, DataError
from transduce.text.alphabet import Alphabet, count_words, frequent_characters
from transduce.text.byte_level import BYTE_CHARACTERS, from_byte_level, to_byte_level
from transduce.text.masks import MASKS
from transduce.text.term_marks import TERM_MARKS
from transduce.text.tokenizer import Tokenizer
from transduce.text.tokenizer_pipelines import CONTINUATION, MAX_WORD_BYTES, byte_level_pipeline
from transduce.text.vocabulary import NO_TEXT, SPECIAL_TOKENS, UNK_ID
from transduce.text.wordpiece_trainer import learn_pieces

__all__ = ["train_wordpiece"]

MIN_CHARACTER_COUNT = 2  # a character seen once does not generalise


def train_wordpiece(
    texts: Iterable[str],
    *,
    vocab_size: int,
    masks: bool = False,
    term_marks: bool = False,
    alphabet: Alphabet = "bytes",
    min_pair_count: int | None = None,
    extra_tokens: Sequence[str] = (),
) -> Tokenizer:
    """Train a WordPiece tokenizer of ``vocab_size`` ids: 4 special tokens, 2 * 256 bytes, merged pieces. Section 5.1.

    Each byte is a piece at the start of a word and one inside a word. The normalised texts are read once, as a stream.
    Training (``wordpiece_trainer.py``, which explains ``min_pair_count``) is deterministic; if too few pairs of pieces
    occur often enough, the vocabulary is smaller. With ``masks``, each mask (``masks.py``) is a piece, at the start of
    a word and inside, with ``term_marks`` each of these (``term_marks.py``). With the ``alphabet`` of "characters"
    (``alphabet.py``), so is each character that occurs twice, the most frequent first, as long as the vocabulary has
    room. ``extra_tokens`` are the last ids of the vocabulary; no text contains them.

    Raises ConfigError if ``vocab_size`` is below 516, DataError if all texts are empty.

    >>> tokenizer = train_wordpiece(["low lower low"], vocab_size=10_000)
    >>> tokenizer.size, tokenizer.pieces(range(516, tokenizer.size))
    (519, ['▁l', 'ow', '▁low'])
    """
    pieces = _start_and_inside(BYTE_CHARACTERS)
    marks = [*(MASKS if masks else ()), *(TERM_MARKS if term_marks else ())]
    mask_pieces = _start_and_inside(list(map(to_byte_level, marks)), by_piece=True)
    smallest = len(SPECIAL_TOKENS) + len(pieces) + len(mask_pieces) + len(extra_tokens)
    if vocab_size < smallest:
        raise ConfigError(
            f"vocab_size must be at least {smallest} (4 special tokens, "
            f"{f'{len(extra_tokens)} of language models, ' if extra_tokens else ''}256 bytes, "
            f"{f'{len(marks)} masks and marks, ' if marks else ''}"
            f"each at the start of a word and inside), got {vocab_size}"
        )
    word_counts = count_words(_library(pieces), texts)
    if not word_counts:
        raise DataError(NO_TEXT)
    n_pieces = vocab_size - len(SPECIAL_TOKENS) - len(mask_pieces) - len(extra_tokens)
    if alphabet == "bytes":
        pieces = learn_pieces(word_counts, alphabet=pieces, n_pieces=n_pieces, min_pair_count=min_pair_count)
    else:
        pieces = _learn_from_characters(word_counts, pieces, n_pieces, min_pair_count)
    return Tokenizer(_library(list(dict.fromkeys([*pieces, *mask_pieces, *extra_tokens]))).to_str())


def _start_and_inside(pieces: Sequence[str], *, by_piece: bool = False) -> list[str]:
    """Return all pieces as they are at the start of a word and inside: one kind after the other, or piece by piece."""
    inside = [CONTINUATION + piece for piece in pieces]
    if by_piece:
        return [form for both in zip(pieces, inside, strict=True) for form in both]
    return [*pieces, *inside]


def _learn_from_characters(
    byte_level_counts: Counter[str], byte_pieces: Sequence[str], n_pieces: int, min_pair_count: int | None
) -> list[str]:
    """Return the pieces of bytes, of characters, and those merged from them: up to ``n_pieces``.

    The trainer sees words of characters. Rare characters are in its alphabet, too, but none of their pairs is frequent.
    If the vocabulary has no room for all frequent characters, nothing is merged.
    """
    counts = {from_byte_level(word): count for word, count in byte_level_counts.items()}
    frequent = frequent_characters(counts, min_count=min_pair_count or MIN_CHARACTER_COUNT)
    characters = frequent[: (n_pieces - len(byte_pieces)) // 2]
    first = [*byte_pieces, *_start_and_inside(list(map(to_byte_level, characters)))]
    if len(characters) < len(frequent):
        return first
    words = {word.replace(CONTINUATION, _ELLIPSIS): count for word, count in counts.items()}
    alphabet = _start_and_inside(sorted({character for word in words for character in word}))
    n_alphabet, n_learned = len(alphabet), n_pieces - len(first)
    learned = learn_pieces(words, alphabet=alphabet, n_pieces=n_alphabet + n_learned, min_pair_count=min_pair_count)
    return [*first, *map(_as_bytes, learned[n_alphabet:])]


_ELLIPSIS = "\ud800"  # stands for the character of the continuation prefix, while the trainer sees characters


def _as_bytes(piece: str) -> str:
    """Return a piece of characters in the byte-level alphabet, with the same prefix."""
    prefix = CONTINUATION if piece.startswith(CONTINUATION) else ""
    return prefix + to_byte_level(piece.removeprefix(prefix).replace(_ELLIPSIS, CONTINUATION))


def _library(pieces: Sequence[str]) -> LibraryTokenizer:
    """Return a byte-level WordPiece tokenizer with the special tokens and ``pieces``."""
    return byte_level_pipeline(
        models.WordPiece(
            vocab={piece: id for id, piece in enumerate([*SPECIAL_TOKENS, *pieces])},
            unk_token=SPECIAL_TOKENS[UNK_ID],
            continuing_subword_prefix=CONTINUATION,
            max_input_chars_per_word=MAX_WORD_BYTES,
        )
    )
