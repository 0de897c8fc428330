"""Byte-level byte-pair encoding (BPE): the English-German vocabulary of section 5.1. Lossless."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import models, trainers

from transduce.errors import ConfigError, DataError
from transduce.text.alphabet import Alphabet, count_words, frequent_characters, merges_of
from transduce.text.byte_level import BYTE_CHARACTERS, from_byte_level, to_byte_level
from transduce.text.masks import MASKS
from transduce.text.term_marks import TERM_MARKS
from transduce.text.tokenizer import Tokenizer
from transduce.text.tokenizer_pipelines import byte_level_pipeline
from transduce.text.vocabulary import NO_TEXT, SPECIAL_TOKENS

__all__ = ["byte_tokenizer", "train_bpe", "train_characters"]

MAX_TEXT_CHARACTERS = 5000  # for training; time grows with the square of the length of a word
MIN_PAIR_COUNT = 2  # a pair seen once does not generalise
WORDS_PER_CHUNK = 10_000  # of the words passed to the library's trainer at once

Merge = tuple[str, str]  # two tokens in the byte-level alphabet


def train_bpe(
    texts: Iterable[str],
    *,
    vocab_size: int,
    masks: bool = False,
    term_marks: bool = False,
    alphabet: Alphabet = "bytes",
    min_pair_count: int | None = None,
    extra_tokens: Sequence[str] = (),
) -> Tokenizer:
    """Train a BPE tokenizer of ``vocab_size`` ids: 4 special tokens, 256 bytes, the most frequent merges. Section 5.1.

    The normalised texts are read once, as a stream. Training is deterministic; with too few pairs that occur
    ``min_pair_count`` times (default: twice), the vocabulary is smaller. Texts of more than 5,000 characters (which
    cleaning drops by default) are split. With ``masks``, each mask (``masks.py``) is a token, with ``term_marks`` each
    of these (``term_marks.py``), made by merges that rank before all learned ones. With the ``alphabet`` of
    "characters" (``alphabet.py``), so is each character that occurs ``min_pair_count`` times, the most frequent first,
    as long as the vocabulary has room. ``extra_tokens`` are the last ids of the vocabulary; no text contains them.

    Raises ConfigError if ``vocab_size`` is below 260, DataError if all texts are empty.

    >>> tokenizer = train_bpe(["low lower low"], vocab_size=10_000)
    >>> tokenizer.size, tokenizer.pieces(range(260, tokenizer.size))
    (263, ['lo', '▁lo', '▁low'])
    """
    marks = [*(MASKS if masks else ()), *(TERM_MARKS if term_marks else ())]
    merges_of_masks = list(dict.fromkeys(chain.from_iterable(map(merges_of, marks))))
    n_fixed = len(SPECIAL_TOKENS) + len(BYTE_CHARACTERS) + len(merges_of_masks) + len(extra_tokens)
    if vocab_size < n_fixed:
        others = f", {len(merges_of_masks)} for masks and marks" if marks else ""
        others += f", {len(extra_tokens)} of language models" if extra_tokens else ""
        parts = f"4 special tokens, {len(BYTE_CHARACTERS)} bytes{others}"
        raise ConfigError(f"vocab_size must be at least {n_fixed} ({parts}), got {vocab_size}")
    stream = iter(texts)
    first = next((text for text in stream if text), None)
    if first is None:
        raise DataError(NO_TEXT)
    lines = chain.from_iterable(map(_split_long, chain([first], stream)))
    n_merges, min_count = vocab_size - n_fixed, MIN_PAIR_COUNT if min_pair_count is None else min_pair_count
    if alphabet == "bytes":
        learned = _learn_from_bytes(lines, n_merges=n_merges, min_count=min_count)
    else:
        learned = _learn_from_characters(lines, n_merges=n_merges, min_count=min_count, known=merges_of_masks)
    return Tokenizer(_library(merges_of_masks, learned, extra_tokens).to_str())


def byte_tokenizer(*, extra_tokens: Sequence[str] = ()) -> Tokenizer:
    """Return the tokenizer whose tokens are bytes: nothing is learned.

    >>> byte_tokenizer().pieces(byte_tokenizer().encode("a b"))
    ['▁', 'a', '▁', 'b']
    """
    return Tokenizer(_library([], [], extra_tokens).to_str())


def train_characters(
    texts: Iterable[str], *, vocab_size: int, min_count: int = 1, extra_tokens: Sequence[str] = ()
) -> Tokenizer:
    """Return the tokenizer whose tokens are characters: those that occur ``min_count`` times, and the bytes for others.

    Raises ConfigError if ``vocab_size`` has no room for all of them, DataError if all texts are empty.

    >>> tokenizer = train_characters(["süß"], vocab_size=300)
    >>> tokenizer.pieces(tokenizer.encode("süß"))
    ['▁', 's', 'ü', 'ß']
    """
    word_counts = _word_counts(texts)
    if not word_counts:
        raise DataError(NO_TEXT)
    characters = frequent_characters(word_counts, min_count=min_count)
    merges = list(dict.fromkeys(chain.from_iterable(map(merges_of, characters))))
    size = len(SPECIAL_TOKENS) + len(BYTE_CHARACTERS) + len(merges) + len(extra_tokens)
    if size > vocab_size:
        raise ConfigError(f"vocab_size must be at least {size} for the characters of this text, got {vocab_size}")
    return Tokenizer(_library([], merges, extra_tokens).to_str())


def _word_counts(texts: Iterable[str]) -> dict[str, int]:
    """Count the words of texts, as text."""
    counts = count_words(byte_level_pipeline(models.BPE()), texts)
    return {from_byte_level(word): count for word, count in counts.items()}


def _split_long(text: str) -> list[str]:
    return [text[start : start + MAX_TEXT_CHARACTERS] for start in range(0, len(text), MAX_TEXT_CHARACTERS)]


def _learn_from_bytes(texts: Iterator[str], *, n_merges: int, min_count: int) -> list[Merge]:
    library = byte_level_pipeline(models.BPE())
    library.train_from_iterator(texts, _trainer(BYTE_CHARACTERS, n_merges=n_merges, min_count=min_count))
    return _merges(library)


def _learn_from_characters(
    texts: Iterator[str], *, n_merges: int, min_count: int, known: Sequence[Merge]
) -> list[Merge]:
    """Return the merges that make the characters, then those learned from words of characters: ``n_merges`` tokens."""
    word_counts = _word_counts(texts)
    made = {left + right for left, right in known}
    first_merges = list[Merge]()
    for character in frequent_characters(word_counts, min_count=min_count):
        new = [(left, right) for left, right in merges_of(character) if left + right not in made]
        if len(first_merges) + len(new) > n_merges:
            return first_merges  # no room for longer tokens
        first_merges += new
        made.update(left + right for left, right in new)
    library = LibraryTokenizer(models.BPE())  # without a pre-tokenizer: each text is a word
    alphabet = sorted({character for word in word_counts for character in word})
    trainer = _trainer(alphabet, n_merges=n_merges - len(first_merges), min_count=min_count)
    library.train_from_iterator(_repeated(word_counts), trainer)
    learned = [(to_byte_level(left), to_byte_level(right)) for left, right in _merges(library)]
    return [*first_merges, *learned]


def _repeated(word_counts: dict[str, int]) -> Iterator[list[str]]:
    """Yield each word as often as it occurs, in chunks."""
    for word, count in word_counts.items():
        for start in range(0, count, WORDS_PER_CHUNK):
            yield [word] * min(WORDS_PER_CHUNK, count - start)


def _trainer(alphabet: Sequence[str], *, n_merges: int, min_count: int) -> trainers.BpeTrainer:
    return trainers.BpeTrainer(
        vocab_size=len(alphabet) + n_merges,
        min_frequency=min_count,
        initial_alphabet=list(alphabet),
        special_tokens=[],
        show_progress=False,
    )


def _merges(library: LibraryTokenizer) -> list[Merge]:
    """Return the merges that a library's trainer has learned, the most frequent first."""
    return [(left, right) for left, right in json.loads(library.to_str())["model"]["merges"]]


def _library(
    merges_of_masks: Sequence[Merge], learned: Sequence[Merge], extra_tokens: Sequence[str]
) -> LibraryTokenizer:
    """Return a BPE tokenizer: special tokens, bytes, ``learned`` tokens, masks, extra tokens.

    The merges of masks rank first.

    Special tokens are not passed to the trainer: it would register them with the library, which matches registered
    tokens in the user's text and drops them in decoding.
    """
    tokens = [
        *SPECIAL_TOKENS,
        *BYTE_CHARACTERS,
        *(left + right for left, right in chain(learned, merges_of_masks)),
        *extra_tokens,
    ]
    vocabulary = {token: id for id, token in enumerate(dict.fromkeys(tokens))}
    merges = list(dict.fromkeys([*merges_of_masks, *learned]))
    return byte_level_pipeline(models.BPE(vocab=vocabulary, merges=merges))
