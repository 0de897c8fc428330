"""The start alphabet of a subword vocabulary: the 256 bytes, or these and the characters of the training text.

With the alphabet of bytes, the first merges that a trainer learns spell out the characters of the text. With that of
characters, each character that occurs often enough is one token from the start, and merges join characters, as in the
papers on byte-pair encoding and WordPiece. The bytes stay in the vocabulary, for characters that training has not seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from tokenizers import Tokenizer as LibraryTokenizer

from transduce.text.byte_level import bytes_of, to_byte_level
from transduce.text.tokenizer_pipelines import CONTINUATION
from transduce.text.vocabulary import LANGUAGE_MODEL_TOKENS, SPECIAL_TOKENS

__all__ = ["Alphabet", "count_words", "frequent_characters", "max_token_characters", "merges_of", "n_character_merges"]

Alphabet = Literal["bytes", "characters"]


def count_words(library: LibraryTokenizer, texts: Iterable[str]) -> Counter[str]:
    """Count the words of ``texts`` as ``library`` pre-tokenizes them, in the byte-level alphabet."""
    counts = Counter[str]()
    for text in texts:
        words = library.pre_tokenizer.pre_tokenize_str(library.normalizer.normalize_str(text))
        counts.update(word for word, _ in words)
    return counts


def frequent_characters(word_counts: Mapping[str, int], *, min_count: int) -> list[str]:
    """Return the characters of more than one byte that occur ``min_count`` times, the most frequent first.

    ``word_counts``: counts of words as text. Ties are in the order of code points.

    >>> frequent_characters({"süß": 2, "für": 1}, min_count=2)
    ['ü', 'ß']
    """
    counts = Counter[str]()
    for word, count in word_counts.items():
        if not word.isascii():
            for character in word:
                counts[character] += count
    frequent = [
        (-n, character) for character, n in counts.items() if n >= min_count and len(to_byte_level(character)) > 1
    ]
    return [character for _, character in sorted(frequent)]


def merges_of(character: str) -> list[tuple[str, str]]:
    """Return the merges that make one token of the bytes of ``character``, from left to right.

    >>> merges_of("ä"), len(merges_of("日"))
    ([('Ã', '¤')], 2)
    """
    utf8 = to_byte_level(character)
    return [(utf8[:n], utf8[n]) for n in range(1, len(utf8))]


def n_character_merges(merges: Sequence[tuple[str, str]]) -> int:
    """Return how many merges make characters, with an alphabet of these: the first ones, and no later one does.

    >>> of_characters = [*merges_of("ü"), *merges_of("日")]
    >>> n_character_merges([*of_characters, ("s", "Ã¼")]), n_character_merges([("l", "o"), *of_characters])
    (3, 0)
    """
    is_within = [_is_within_character(bytes_of(left + right)) for left, right in merges]
    n_first = next((n for n, each in enumerate(is_within) if not each), len(merges))
    return 0 if any(is_within[n_first:]) else n_first


def max_token_characters(vocabulary: Iterable[str]) -> int:
    """Return the number of characters of the longest token of text.

    >>> max_token_characters(["</s>", "…Ã¼", "Ã¼be"])
    3
    """
    tokens = set(vocabulary).difference(SPECIAL_TOKENS, LANGUAGE_MODEL_TOKENS)
    texts = (bytes_of(token.removeprefix(CONTINUATION)).decode("utf-8", "ignore") for token in tokens)
    return max(map(len, texts), default=0)


def _is_within_character(merged: bytes) -> bool:
    """Whether bytes are the first ones of a single character, or all of it."""
    n_bytes = 2 + (merged[0] >= 0xE0) + (merged[0] >= 0xF0)
    return merged[0] >= 0xC0 and len(merged) <= n_bytes and all(byte & 0xC0 == 0x80 for byte in merged[1:])
