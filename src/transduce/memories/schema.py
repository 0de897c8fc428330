"""The file of a memory: a database of sqlite.

``pairs`` has a text and its translation, the hashes of its pattern and of the texts before and after, the hashes of its
words, 4 bytes each, and how often it was read. ``words`` has for each word the ids of the pairs whose source has it.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from hashlib import blake2b
from zlib import crc32

from transduce.memories.similarity import compared_words
from transduce.text import normalise

__all__ = [
    "APPLICATION_ID", "FORMAT", "NOTHING", "SCHEMA", "Pair", "Row", "hash_of", "neighbour_of", "packed", "unpacked",
    "word_hashes",
]  # fmt: skip

Pair = tuple[str, str]  # source, target
Row = tuple[str, str, int, int]  # and the hashes of the sources before and after
APPLICATION_ID = 0x7464746D  # "tdtm"
FORMAT = 1
NOTHING = 0  # in place of the hash of a neighbour
SCHEMA = (
    "CREATE TABLE languages (src TEXT NOT NULL, tgt TEXT NOT NULL)",
    "CREATE TABLE pairs (id INTEGER PRIMARY KEY, key INTEGER NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL,"
    " before INTEGER NOT NULL, after INTEGER NOT NULL, words BLOB NOT NULL, n INTEGER NOT NULL DEFAULT 1)",
    "CREATE TABLE words (word INTEGER PRIMARY KEY, pairs BLOB NOT NULL)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {FORMAT}",
)


def hash_of(text: str) -> int:
    """Return the hash of a text, which fits an integer of sqlite."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)


def neighbour_of(text: str) -> int:
    """Return the hash of a neighbour as it is looked up."""
    return hash_of(key) if (key := normalise(text)) else NOTHING


def word_hashes(key: str) -> list[int]:
    """Return the hashes of the words of a pattern."""
    return [crc32(word.encode()) for word in compared_words(key)]


def packed(numbers: Sequence[int]) -> bytes:
    """Return numbers of 4 bytes each."""
    return _little_endian(array("I", numbers)).tobytes()


def unpacked(data: bytes) -> array[int]:
    """Return the numbers of ``packed``."""
    return _little_endian(array("I", data))


def _little_endian(numbers: array[int]) -> array[int]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
