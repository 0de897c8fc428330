"""Tokenizers: text to token ids and back, each saved as one self-contained JSON file.

A ``Tokenizer`` wraps a tokenizer of the ``tokenizers`` library, built from its JSON description. All kinds have the
special tokens at ids 0 to 3; tokenizers for text are byte-level and lossless. Training is in ``bpe.py``,
``wordpiece.py`` and ``word_level.py`` (for linearised trees).

A tokenizer does not normalise: callers apply ``normalise`` first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain, compress, pairwise
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as LibraryTokenizer

from transduce.errors import CheckpointError, DataError
from transduce.files import read_json, write_text
from transduce.text.byte_level import bytes_of, to_byte_level
from transduce.text.chunks import chunks
from transduce.text.encoded_texts import ID_BYTES, IdBytes, pack_ids, unpack_ids
from transduce.text.masks import MASKS
from transduce.text.term_marks import ids_of_term_marks
from transduce.text.tokenizer_faults import USE_OURS, fault_of
from transduce.text.tokenizer_pipelines import CONTINUATION
from transduce.text.vocabulary import LANGUAGE_MODEL_TOKENS, SPECIAL_TOKENS, UNK_ID
from transduce.text.word_cache import WordCache, words_of

__all__ = ["REPLACEMENT", "SENTENCEPIECE", "WORD_START", "Tokenizer", "load_tokenizer", "tokenizer_from"]

SENTENCEPIECE = "SentencePiece"  # the type of model of ``sentencepiece_tokenizer.py``
WORD_START = "▁"  # shown in place of the space before a word
REPLACEMENT = "\ufffd"  # what libraries decode invalid bytes to
TEXTS_PER_CHUNK, WORDS_PER_TEXT = 8192, 100


class Tokenizer:
    """A lossless mapping between text and token ids.

    >>> from transduce.text import train_bpe
    >>> tokenizer = train_bpe(["low lower low"], vocab_size=264)
    >>> tokenizer.pieces(tokenizer.encode("low slow"))
    ['▁low', '▁', 's', 'lo', 'w']
    >>> tokenizer.decode(tokenizer.encode("low </s> 日"))
    'low </s> 日'
    """

    def __init__(self, description: str, values: Mapping[str, Any] | None = None) -> None:
        """Build from the JSON that ``save`` writes, unchecked; use ``load_tokenizer`` to read a file.

        ``values``: the parsed JSON, if it is known.
        """
        values = json.loads(description) if values is None else values
        self.description = description  # the JSON; saved unchanged: a newer library must not change the fingerprint
        self._library: Any = LibraryTokenizer.from_str(json.dumps(values))  # the description may have duplicate keys
        self.size = self._library.get_vocab_size()
        # Whether the vocabulary is closed: word-level, for linearised trees, not for text.
        self.is_closed: bool = values["model"]["type"] == "WordLevel"
        self._is_wordpiece: bool = values["model"]["type"] == "WordPiece"
        self._cache = WordCache(self._encode_words)

    @cached_property
    def fingerprint(self) -> str:
        """A SHA-256 hash of the description, 64 hexadecimal digits."""
        canonical = json.dumps(json.loads(self.description), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("utf-8")).hexdigest()

    def encode(self, text: str, *, max_tokens: int | None = None) -> list[int]:
        """Return the ids of ``text``, without BOS and EOS.

        With ``max_tokens``, a text with more tokens may be encoded in part, but always to more than ``max_tokens`` ids:
        enough to see that it is too long, without encoding all of it.
        """
        [ids] = self.encode_batch([text], max_tokens=max_tokens)
        return ids

    def encode_batch(self, texts: Sequence[str], *, max_tokens: int | None = None) -> list[list[int]]:
        """Encode many texts, as ``encode`` does one; each distinct word is segmented once (``word_cache.py``)."""
        rows = chain.from_iterable(self._chunks_of_rows(texts, max_tokens))
        return list(map(unpack_ids, rows))

    def encode_packed(self, texts: Sequence[str], *, max_tokens: int | None = None) -> list[IdBytes]:
        """Encode many texts to bytes, which need a tenth of the memory of lists of ids."""
        return list(chain.from_iterable(self._chunks_of_rows(texts, max_tokens)))

    def _chunks_of_rows(self, texts: Sequence[str], max_tokens: int | None) -> Iterator[list[IdBytes]]:
        """Yield the ids of all texts, some thousand texts at a time."""
        max_characters = None  # characters that always have more than max_tokens tokens
        is_long = max_tokens is not None and max(map(len, texts), default=0) > max_tokens
        if max_tokens is not None and is_long and self._max_token_bytes is not None:
            max_characters = self._max_token_bytes * (max_tokens + 1)
        truncated = (text[:max_characters] for text in texts)
        for chunk in chunks(truncated, TEXTS_PER_CHUNK, len):  # the library uses 100 bytes per token
            words = list(map(words_of, chunk))
            ids_of_word = self._cache.values_of(words).__getitem__
            yield [b"".join(map(ids_of_word, each)) for each in words]

    def _encode_words(self, words: Collection[str]) -> list[IdBytes]:
        """Return the ids of each of several words, or of texts that ``words_of`` could not divide.

        Many words are passed to the library in texts of a hundred: it takes almost three times as long for one by
        itself. For a few, it would take longer to find out which tokens start words.
        """
        single = [word for word in words if word.split() == [word]] if len(words) > WORDS_PER_TEXT else []
        groups = [single[start : start + WORDS_PER_TEXT] for start in range(0, len(single), WORDS_PER_TEXT)]
        encoded = dict[str, IdBytes]()
        for group, packed in zip(groups, self._encode_whole([" ".join(group) for group in groups]), strict=True):
            starts = compress(range(0, len(packed), ID_BYTES), map(self._starts_word.__getitem__, unpack_ids(packed)))
            bounds = [*starts, len(packed)]
            encoded.update(zip(group, (packed[begin:end] for begin, end in pairwise(bounds)), strict=True))
        others = [text for text in words if text not in encoded]
        encoded.update(zip(others, self._encode_whole(others), strict=True))
        return [encoded[word] for word in words]

    def _encode_whole(self, texts: list[str]) -> list[IdBytes]:
        encodings = self._library.encode_batch_fast(texts, add_special_tokens=False)
        return [pack_ids(encoding.ids) for encoding in encodings]

    def encode_continuation(self, text: str) -> list[int]:
        """Return the ids of text that continues a line: unlike ``encode``, without a space before its first word.

        >>> from transduce.text import byte_tokenizer
        >>> tokenizer = byte_tokenizer()
        >>> tokenizer.pieces(tokenizer.encode("s")), tokenizer.pieces(tokenizer.encode_continuation("s"))
        (['▁', 's'], ['s'])
        """
        words = [word for word, _ in self._library.pre_tokenizer.pre_tokenize_str(text)]
        is_inside = self._is_wordpiece and text[:1].isalnum()  # other characters start a word of their own
        ids = self._pieces_inside(words[0]) if is_inside else []
        return ids + [token.id for word in words[is_inside:] for token in self._library.model.tokenize(word)]

    def _pieces_inside(self, word: str) -> list[int]:
        """Return the ids of the longest pieces that continue a word; each byte is such a piece."""
        ids, position = list[int](), 0
        while position < len(word):
            ends = range(len(word), position, -1)
            found = ((self._library.token_to_id(CONTINUATION + word[position:end]), end) for end in ends)
            id, position = next((id, end) for id, end in found if id is not None)
            ids.append(id)
        return ids

    @cached_property
    def _starts_word(self) -> list[bool]:
        """Whether each token starts a word of normalised text; in a closed vocabulary each token is a word."""
        starts = [self.is_closed] * self.size
        for id in [] if self.is_closed else self.word_start_ids:
            starts[id] = True
        return starts

    @cached_property
    def _max_token_bytes(self) -> int | None:
        """Bytes of the longest token; None for a closed vocabulary, where ``<unk>`` has any length."""
        return None if self.is_closed else max(map(len, self.vocabulary))

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ``ids``, skipping special tokens and bytes that are not valid UTF-8.

        Raises DataError for an id outside the vocabulary.
        """
        [text] = self.decode_batch([ids])
        return text

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        """Decode many rows of ids, as ``decode`` does one."""
        rows = [self._without_special(ids) for ids in batch]
        texts: list[str] = self._library.decode_batch(rows, skip_special_tokens=False)
        return [
            self._whole_characters(ids) if REPLACEMENT in text and not self.is_closed else text
            for text, ids in zip(texts, rows, strict=True)
        ]

    def _whole_characters(self, ids: Iterable[int]) -> str:
        """Decode without the bytes in whose place the library writes U+FFFD; one that the text has stays."""
        pieces = (bytes_of(self._library.id_to_token(id).removeprefix(CONTINUATION)) for id in ids)
        return b"".join(pieces).decode("utf-8", "ignore").removeprefix(" ")

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return each token in readable form: ``▁`` where a word begins, ``\\xe6`` for a byte of a split character.

        WordPiece continuation prefixes are removed, so the pieces concatenate to the text for every kind of tokenizer.
        """
        tokens = [self._library.id_to_token(id) for id in self._checked(ids)]
        return [_readable(token) for token in tokens if token is not None]

    def piece(self, ids: Iterable[int]) -> str:
        """Return several tokens in readable form, as ``pieces`` gives each: a character of several tokens is whole."""
        tokens = [self._library.id_to_token(id) for id in self._checked(ids)]
        return _readable("".join(token.removeprefix(CONTINUATION) for token in tokens if token is not None))

    def spans(self, ids: Iterable[int]) -> list[tuple[int, int]]:
        """Return the (start, end) of each token in the text that ``decode`` returns, without the space before a word.

        A token of bytes inside a character has the whole character; special tokens are empty. The vocabulary must be
        one of text.

        >>> from transduce.text import byte_tokenizer
        >>> byte_tokenizer().spans(byte_tokenizer().encode("a b"))
        [(0, 0), (0, 1), (1, 1), (2, 3)]
        """
        pieces = [self._bytes_of_token(id) if id >= len(SPECIAL_TOKENS) else b"" for id in self._checked(ids)]
        whole = b"".join(pieces)
        # The characters that have begun, byte by byte; not a space at the start, which ``decode`` removes.
        is_spaced = whole.startswith(b" ")
        n_before = [n - is_spaced for n in accumulate((byte & 0xC0) != 0x80 for byte in whole)]
        spans, position = list[tuple[int, int]](), 0
        for piece in pieces:
            begin, end = position + len(piece) - len(piece.lstrip(b" ")), position + len(piece)
            position = end
            if begin < end:
                spans.append((n_before[begin] - 1, n_before[end - 1]))
            else:  # a space, or nothing
                at = 0 if end == 0 else max(0, n_before[end - 1] - bool(piece))
                spans.append((at, at))
        return spans

    def _bytes_of_token(self, id: int) -> bytes:
        """Return what a token adds to a text, a space before a word included."""
        return bytes_of((self._library.id_to_token(id) or "").removeprefix(CONTINUATION))

    def words(self, text: str) -> list[str]:
        """Return the pre-tokenized words, each with the space before it, in the byte-level alphabet."""
        normalizer, pre_tokenizer = self._library.normalizer, self._library.pre_tokenizer
        normalized = text if normalizer is None else normalizer.normalize_str(text)
        return [word for word, _ in pre_tokenizer.pre_tokenize_str(normalized)]

    @property
    def vocabulary(self) -> dict[str, int]:
        """Token, in the byte-level alphabet, to id."""
        vocabulary: dict[str, int] = self._library.get_vocab()
        return vocabulary

    @property
    def merges(self) -> list[tuple[str, str]] | None:
        """The BPE merges by rank, the first applied first; None for other kinds."""
        merges = json.loads(self._library.to_str())["model"].get("merges")
        return None if merges is None else [(left, right) for left, right in merges]

    @property
    def word_start_ids(self) -> list[int]:
        """Ids of the tokens that begin with a space; in a closed vocabulary, ``<unk>`` and the tags, one for each word.

        Assumes normalised text: only U+0020 counts as the start of a word.
        Raises DataError for a closed vocabulary that is not one of linearised trees.
        """
        if self.is_closed:
            from transduce.text.bracket_grammar import TokenKinds

            return [UNK_ID, *TokenKinds.from_vocabulary(self.vocabulary).tags]  # a parser reads <unk> as a word
        return sorted(id for token, id in self.vocabulary.items() if token.startswith(_SPACE))

    @cached_property
    def space_id(self) -> int | None:
        """The token of a space, if it is the only one that starts a word: with characters or bytes as tokens."""
        starts = self.word_start_ids
        return starts[0] if len(starts) == 1 else None

    @cached_property
    def mask_and_sentinel_ids(self) -> list[int]:
        """Ids of the mask token and the sentinels, in order; none if the vocabulary lacks them."""
        ids = list(map(self._library.token_to_id, LANGUAGE_MODEL_TOKENS))
        return [] if None in ids else [id for id in ids if id is not None]

    @property
    def suppressed_ids(self) -> list[int]:
        """Ids that search never writes in a translation, besides padding and BOS."""
        return [*self.mask_and_sentinel_ids, *self._term_mark_ids]

    def split_language_code(self, text: str) -> tuple[str, str]:
        """Return a code at the start of a text that chooses the output language, and the rest; our models have none."""
        return "", text

    @cached_property
    def has_masks(self) -> bool:
        """Whether each mask (``masks.py``) is a token of the vocabulary."""
        return all(self._library.token_to_id(to_byte_level(token)) is not None for token in MASKS)

    @property
    def has_term_marks(self) -> bool:
        """Whether each term mark (``term_marks.py``) is a token of the vocabulary: its model reads hints."""
        return bool(self._term_mark_ids)

    @cached_property
    def _term_mark_ids(self) -> list[int]:
        return ids_of_term_marks(self._library.token_to_id)

    def save(self, path: Path) -> None:
        """Write the tokenizer as one file."""
        write_text(path, self.description)

    def _checked(self, ids: Iterable[int]) -> list[int]:
        checked = list(map(int, ids))
        if checked and not 0 <= min(checked) <= max(checked) < self.size:
            invalid = next(id for id in checked if not 0 <= id < self.size)
            raise DataError(f"id {invalid} is not in the vocabulary; ids go from 0 to {self.size - 1}")
        return checked

    def _without_special(self, ids: Iterable[int]) -> list[int]:
        return [id for id in self._checked(ids) if id >= len(SPECIAL_TOKENS)]


_SPACE = to_byte_level(" ")


def _readable(token: str) -> str:
    characters = token.removeprefix(CONTINUATION)
    return bytes_of(characters).decode("utf-8", "backslashreplace").replace(" ", WORD_START)


def _further_kind(type_of_model: str) -> type[Tokenizer] | None:
    """Return the kind of tokenizer whose model the ``tokenizers`` library does not know; it checks its description."""
    if type_of_model != SENTENCEPIECE:
        return None
    from transduce.text.sentencepiece_tokenizer import SentencePieceTokenizer

    return SentencePieceTokenizer


def tokenizer_from(description: str, values: Mapping[str, Any] | None = None) -> Tokenizer:
    """Build a tokenizer of any kind from the JSON that ``save`` writes, unchecked."""
    values = json.loads(description) if values is None else values
    kind = _further_kind(str(values["model"]["type"])) or Tokenizer
    return kind(description, values)


def load_tokenizer(path: Path) -> Tokenizer:
    """Read a tokenizer that ``Tokenizer.save`` wrote.

    Raises CheckpointError if the file is missing, corrupt, or not written by transduce.
    """
    values = read_json(path, error=CheckpointError, may_be_link=True)
    model = values.get("model")
    if isinstance(model, dict) and _further_kind(str(model.get("type"))):
        try:
            return tokenizer_from(path.read_text(encoding="utf-8"), values)
        except CheckpointError as error:
            raise CheckpointError(f"{path}: {error}") from error
    fault = fault_of(values)
    if fault is not None:
        raise CheckpointError(f"{path} {fault}")
    try:
        tokenizer = Tokenizer(path.read_text(encoding="utf-8"), values)
        is_lossless = tokenizer.is_closed or tokenizer.decode(tokenizer.encode(_PROBE)) == _PROBE
    except Exception as error:  # the library raises plain Exception
        reason = " ".join(str(error).split())  # on one line: it may quote the file
        raise CheckpointError(f"{path} is not a usable tokenizer: {reason:.200}") from error
    if not is_lossless:
        raise CheckpointError(f"{path} is a tokenizer that loses text; {USE_OURS}")
    return tokenizer


# Text of the round-trip test: special tokens as text, and every byte that occurs in UTF-8, lead and continuation.
_PROBE = " ".join(SPECIAL_TOKENS) + "".join(
    map(chr, [*range(0x800), *range(0x800, 0xD800, 0x400), *range(0xE000, 0x110000, 0x2000)])
)
