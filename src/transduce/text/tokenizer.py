"""Tokenizers: text to ids and back, in one file that says all about itself.

A ``Tokenizer`` is whatever its description (the JSON of the ``tokenizers`` library) makes it; this module knows what
every kind has in common: special symbols at ids 0 to 3, and for text byte-level spelling, without loss. How a kind is
learned stands in a module of its own (``bpe.py``, ``wordpiece.py``; ``tokens.py`` for what is no text).

A tokenizer encodes what it is given. Callers pass text through ``normalise`` first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import models

from transduce.errors import CheckpointError, DataError, quoted, shown
from transduce.files import read_json, write_text
from transduce.text.bracket_grammar import TokenKinds
from transduce.text.chunks import chunks
from transduce.text.masks import MASKS
from transduce.text.tokenizer_pipelines import CONTINUATION, MAX_WORD_BYTES, byte_level_pipeline, whitespace_pipeline
from transduce.text.vocabulary import SPECIAL_TOKENS, UNK_ID

__all__ = ["WORD_START", "Tokenizer", "Tokenizers", "load_tokenizer", "to_byte_level"]

WORD_START = "▁"  # stands for the space before a word when pieces are shown
SHARED_FILE, SRC_FILE, TGT_FILE = "tokenizer.json", "tokenizer.src.json", "tokenizer.tgt.json"


class Tokenizer:
    """Text to ids and back, without loss.

    >>> from transduce.text import train_bpe
    >>> tokenizer = train_bpe(["low lower low"], vocab_size=264)
    >>> tokenizer.pieces(tokenizer.encode("low slow"))
    ['▁low', '▁', 's', 'lo', 'w']
    >>> tokenizer.decode(tokenizer.encode("low </s> 日"))
    'low </s> 日'
    """

    def __init__(self, description: str) -> None:
        """Build from the JSON that ``save`` writes; ``load_tokenizer`` is the way in for files that may be wrong."""
        self._description = description  # kept as it came, so that a newer library cannot change the fingerprint
        canonical = json.dumps(json.loads(description), sort_keys=True, separators=(",", ":"))
        self._library = LibraryTokenizer.from_str(canonical)  # what was checked: of a key given twice, the last
        self.fingerprint = hashlib.sha256(canonical.encode("utf-8")).hexdigest()
        self.size = self._library.get_vocab_size()

    @cached_property
    def is_closed(self) -> bool:
        """Whether it is a closed list of symbols, as trees are written with, and not for text."""
        return bool(json.loads(self._description)["model"]["type"] == "WordLevel")

    def encode(self, text: str, *, max_tokens: int | None = None) -> list[int]:
        """The ids of ``text``, without begin and end symbols.

        With ``max_tokens``, all that is asked of a text with more is that it has more: of one that is far longer, the
        beginning is encoded, to more ids than that.
        """
        [ids] = self.encode_batch([text], max_tokens=max_tokens)
        return ids

    def encode_batch(self, texts: Sequence[str], *, max_tokens: int | None = None) -> list[list[int]]:
        """``encode`` for many texts at a time, on all cores."""
        most = None  # so many characters have more tokens, whatever they are
        if max_tokens is not None and self._longest is not None:
            most = self._longest * (max_tokens + 1)
        rows: list[list[int]] = []
        for some in chunks((text[:most] for text in texts), len(texts), len):  # the library holds 100 bytes a token
            encodings = self._library.encode_batch_fast(some, add_special_tokens=False)
            rows += [encoding.ids for encoding in encodings]
        return rows

    @cached_property
    def _longest(self) -> int | None:
        """Bytes of the longest token; None where tokens are words of a closed list, of any length."""
        return None if self.is_closed else max(map(len, self.vocabulary))

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ``ids``; special symbols are skipped. Bytes that make no character become U+FFFD.

        Raises DataError for an id that is not in the vocabulary.
        """
        return self._library.decode(self._ordinary(ids), skip_special_tokens=False)

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        """``decode`` for many rows of ids at a time."""
        return self._library.decode_batch([self._ordinary(ids) for ids in batch], skip_special_tokens=False)

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Each id as something to read: ``▁`` where a word begins, ``\\xe6`` for a byte that is part of a character.

        The mark of a WordPiece inside a word is not shown, so the pieces of a text spell it, whatever the kind.
        """
        tokens = [self._library.id_to_token(id) for id in self._checked(ids)]
        return [_readable(token) for token in tokens if token is not None]

    def words(self, text: str) -> list[str]:
        """What ``encode`` spells one by one: words with the space before them, in the byte-level alphabet."""
        normalizer, splitter = self._library.normalizer, self._library.pre_tokenizer
        prepared = text if normalizer is None else normalizer.normalize_str(text)
        return [word for word, _ in splitter.pre_tokenize_str(prepared)]

    @property
    def vocabulary(self) -> dict[str, int]:
        """Every token, in the byte-level alphabet, with its id."""
        vocabulary: dict[str, int] = self._library.get_vocab()
        return vocabulary

    @property
    def merges(self) -> list[tuple[str, str]] | None:
        """The pairs of tokens that byte-pair encoding merges, the best first; None if this is no BPE."""
        merges = json.loads(self._library.to_str())["model"].get("merges")
        return None if merges is None else [(left, right) for left, right in merges]

    @property
    def word_start_ids(self) -> list[int]:
        """The ids of tokens that begin with the space before a word; of symbols of trees, those that stand for a word.

        Text is normalised before it is encoded: a blank of any other kind inside a word makes two of it.
        Raises DataError for symbols that are not those of trees.
        """
        if self.is_closed:
            return [
                UNK_ID,
                *TokenKinds.from_vocabulary(self.vocabulary).tags,
            ]  # a parser reads one that is not known as a word
        return sorted(id for token, id in self.vocabulary.items() if token.startswith(_SPACE))

    @cached_property
    def has_masks(self) -> bool:
        """Whether each mask (``masks.py``) is a token of the vocabulary."""
        return all(to_byte_level(token) in self.vocabulary for token in MASKS)

    def save(self, path: Path) -> None:
        """Write the tokenizer as one file."""
        write_text(path, self._description)

    def _checked(self, ids: Iterable[int]) -> list[int]:
        known = list(map(int, ids))
        if known and not 0 <= min(known) <= max(known) < self.size:
            stranger = next(id for id in known if not 0 <= id < self.size)
            raise DataError(f"id {stranger} is not in the vocabulary; ids go from 0 to {self.size - 1}")
        return known

    def _ordinary(self, ids: Iterable[int]) -> list[int]:
        return [id for id in self._checked(ids) if id >= len(SPECIAL_TOKENS)]


def _bytes_of_characters() -> dict[str, bytes]:
    """The byte-level alphabet: printable bytes of Latin-1 stand for themselves, the others for U+0100 and onwards."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    tokens = {chr(byte): bytes([byte]) for byte in printable}
    return tokens | {chr(0x100 + n): bytes([byte]) for n, byte in enumerate(others)}


_BYTES_OF_CHARACTER = _bytes_of_characters()
_CHARACTER_OF_BYTE = {spelled[0]: token for token, spelled in _BYTES_OF_CHARACTER.items()}


def to_byte_level(text: str) -> str:
    """``text`` in the byte-level alphabet, as vocabularies hold it.

    >>> to_byte_level("ä b")
    'Ã¤Ġb'
    """
    return "".join(_CHARACTER_OF_BYTE[byte] for byte in text.encode("utf-8"))


_SPACE = to_byte_level(" ")


def _readable(token: str) -> str:
    tokens = token.removeprefix(CONTINUATION)
    spelled = b"".join(_BYTES_OF_CHARACTER.get(token, token.encode("utf-8")) for token in tokens)
    return spelled.decode("utf-8", "backslashreplace").replace(" ", WORD_START)


def load_tokenizer(path: Path) -> Tokenizer:
    """Read a tokenizer that ``Tokenizer.save`` wrote.

    Raises CheckpointError if the file is missing, corrupt, or a tokenizer of another system.
    """
    fault = _fault(read_json(path, error=CheckpointError, may_be_link=True))
    if fault is not None:
        raise CheckpointError(f"{path} {fault}")
    try:
        tokenizer = Tokenizer(path.read_text(encoding="utf-8"))
        is_lossless = tokenizer.is_closed or tokenizer.decode(tokenizer.encode(_PROBE)) == _PROBE
    except Exception as error:  # the library raises no narrower type
        reason = " ".join(str(error).split())  # it may quote the file
        raise CheckpointError(f"{path} is not a tokenizer that can be used: {reason:.200}") from error
    if not is_lossless:
        raise CheckpointError(f"{path} is a tokenizer that loses text; use one that transduce has trained")
    return tokenizer


# Special symbols, and every byte that UTF-8 uses: all of its lead bytes and all that continue.
_PROBE = " ".join(SPECIAL_TOKENS) + "".join(
    map(chr, [*range(0x800), *range(0x800, 0xD800, 0x400), *range(0xE000, 0x110000, 0x2000)])
)


# What a model of each kind sets beside its vocabulary and merges.
_SETTINGS: dict[str, dict[str, Any]] = {
    "BPE": {},
    "WordLevel": {"unk_token": SPECIAL_TOKENS[UNK_ID]},
    "WordPiece": {
        "unk_token": SPECIAL_TOKENS[UNK_ID],
        "continuing_subword_prefix": CONTINUATION,
        "max_input_chars_per_word": MAX_WORD_BYTES,
    },
}


_OURS = "use a tokenizer that transduce has trained"


def _fault(description: dict[str, Any]) -> str | None:
    """What the library would read but this system did not write, to be refused before the library sees it.

    Some bad settings end in an abort inside the library, which no ``except Exception`` catches.
    """
    model, added_tokens = description.get("model"), description.get("added_tokens")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(model, dict) or not isinstance(vocabulary, dict):
        return "is not a tokenizer: it has no model with a vocabulary"
    kind = model.get("type")
    if not isinstance(kind, str) or kind not in _SETTINGS:
        return f"holds a {shown(kind)} model; only {' and '.join(_SETTINGS)} can be used"
    wanted = _SETTINGS[kind]
    settings = {name: value for name, value in model.items() if name not in ("type", "vocab", "merges") and value}
    for name in [*settings, *wanted]:
        if settings.get(name) != wanted.get(name):
            return f"sets {shown(name)} to {quoted(model.get(name))}; {_OURS}"
    if added_tokens:
        return f"adds tokens beside its vocabulary; {_OURS}"
    if list(map(vocabulary.get, SPECIAL_TOKENS)) != list(range(len(SPECIAL_TOKENS))):
        return f"has not {', '.join(SPECIAL_TOKENS)} at ids 0 to 3; it is of another system"
    ids = vocabulary.values()
    if not all(type(id) is int for id in ids) or set(ids) != set(range(len(ids))):
        return f"should number its vocabulary from 0 to {len(ids) - 1}, each id once"
    bytes_in_words = [*_BYTES_OF_CHARACTER, *(CONTINUATION + token for token in _BYTES_OF_CHARACTER)]
    if kind == "WordPiece" and not vocabulary.keys() >= set(bytes_in_words):
        return "lacks bytes, at the start of a word or inside; it would lose text"
    frame = _frame(kind)
    for name in sorted((description.keys() | frame.keys()) - {"model", "added_tokens"}):
        if not _is_within(description.get(name), frame.get(name)):
            return f"has another {shown(name)} than transduce writes; {_OURS}"
    return None


@cache
def _frame(kind: str) -> dict[str, Any]:
    """What stands round the model of a tokenizer that was trained here, as the library of today writes it."""
    match kind:
        case "WordLevel":
            library = whitespace_pipeline(models.WordLevel())
        case "WordPiece":
            library = byte_level_pipeline(models.WordPiece())
        case _:
            library = byte_level_pipeline(models.BPE())
    frame: dict[str, Any] = json.loads(library.to_str())
    return frame


def _is_within(got: object, wanted: object) -> bool:
    """Whether two JSON values are the same, but for keys of ``wanted`` that an older library did not write."""
    if isinstance(got, dict) and isinstance(wanted, dict):
        return got.keys() <= wanted.keys() and all(_is_within(value, wanted[key]) for key, value in got.items())
    if isinstance(got, list) and isinstance(wanted, list):
        return len(got) == len(wanted) and all(map(_is_within, got, wanted))
    return type(got) is type(wanted) and got == wanted


@dataclass(frozen=True, slots=True)
class Tokenizers:
    """The tokenizers of source and target; one object in both places is a shared vocabulary (section 5.1)."""

    src: Tokenizer
    tgt: Tokenizer

    @property
    def is_shared(self) -> bool:
        """Whether both sides use one vocabulary."""
        return self.src is self.tgt

    @property
    def fingerprint(self) -> str:
        """What tells this pair from any other, in 64 hexadecimal digits."""
        return hashlib.sha256(f"{self.src.fingerprint} {self.tgt.fingerprint}".encode()).hexdigest()

    @staticmethod
    def files(folder: Path) -> tuple[str, ...]:
        """The names of the files that ``load`` would read in ``folder``."""
        is_separate = (folder / SRC_FILE).exists() or (folder / TGT_FILE).exists()
        return (SRC_FILE, TGT_FILE) if is_separate else (SHARED_FILE,)

    def save(self, folder: Path) -> None:
        """Write ``tokenizer.json``, or ``tokenizer.src.json`` and ``tokenizer.tgt.json`` where they differ."""
        if self.is_shared:
            self.src.save(folder / SHARED_FILE)
        else:
            self.src.save(folder / SRC_FILE)
            self.tgt.save(folder / TGT_FILE)

    @classmethod
    def load(cls, folder: Path) -> Tokenizers:
        """Read what ``save`` wrote. Raises CheckpointError if a file is missing, corrupt or of another system."""
        tokenizers = [load_tokenizer(folder / name) for name in cls.files(folder)]
        return cls(tokenizers[0], tokenizers[-1])
