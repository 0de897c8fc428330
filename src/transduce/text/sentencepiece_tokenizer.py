"""SentencePiece models as tokenizers, for models that were trained elsewhere.

A Marian model has a SentencePiece model for each side and a vocabulary file that numbers the pieces. Here the special
tokens move to ids 0 to 3, and the description keeps the numbers that the other library uses.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from transduce.errors import CheckpointError, shown
from transduce.patterns import compiled_on_use
from transduce.text.encoded_texts import IdBytes, pack_ids
from transduce.text.tokenizer import REPLACEMENT, SENTENCEPIECE, WORD_START, Tokenizer
from transduce.text.vocabulary import BOS_ID, SPECIAL_TOKENS, UNK_ID

__all__ = ["SentencePieceTokenizer", "sentencepiece_description"]

_BYTE = compiled_on_use("<0x([0-9A-F]{2})>")  # a piece of a character that the vocabulary lacks
LANGUAGE_CODE = compiled_on_use(">>.*?<<")  # at the start of a text: the language to translate into, as one token


def sentencepiece_description(
    model: bytes,
    vocabulary: Mapping[str, int],
    *,
    pad_id: int,
    start_id: int,
    eos_id: int,
    unk_id: int,
    suppressed: Sequence[int] = (),
) -> str:
    """Return the description of a tokenizer; save it as a file, or pass it to ``SentencePieceTokenizer``.

    ``vocabulary`` numbers the pieces as the other library does; its numbers may begin anywhere and have gaps.
    ``pad_id``, ``start_id`` (the decoder's first input, which becomes BOS), ``eos_id``, ``unk_id`` and ``suppressed``
    (tokens that are never written) are numbers there.
    """
    specials = (pad_id, start_id, eos_id, unk_id)
    ordinary = sorted((id, piece) for piece, id in vocabulary.items() if id not in specials)
    values = {
        "model": {
            "type": SENTENCEPIECE,
            "proto": base64.b64encode(model).decode("ascii"),
            "pieces": [piece for _, piece in ordinary],
            "original_ids": [*specials, *(id for id, _ in ordinary)],
            "suppressed": sorted(suppressed),
        }
    }
    return json.dumps(values, ensure_ascii=False)


class SentencePieceTokenizer(Tokenizer):
    """A SentencePiece model whose pieces a vocabulary numbers. Unlike our tokenizers, it may lose text (``<unk>``)."""

    def __init__(self, description: str, values: Mapping[str, Any] | None = None) -> None:
        """Build from a description. Raises CheckpointError if it or its SentencePiece model is damaged."""
        values = json.loads(description) if values is None else values
        self.description = description
        try:
            fields = values["model"]
            self.proto = base64.b64decode(fields["proto"], validate=True)
            self._tokens = [*SPECIAL_TOKENS, *map(str, fields["pieces"])]
            self.original_ids = list(map(int, fields["original_ids"]))
            suppressed = set(fields.get("suppressed", ()))
            "".join(self._tokens).encode()  # half a surrogate pair, which JSON can have, is no text
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            raise CheckpointError(f"the SentencePiece tokenizer is damaged: {shown(str(error))}") from error
        pieces = self._tokens[len(SPECIAL_TOKENS) :]
        if len(self.original_ids) != len(self._tokens) or len(set(pieces)) < len(pieces):
            raise CheckpointError("the SentencePiece tokenizer is damaged: its pieces do not fit their numbers")
        self._library = _processor(self.proto)
        self.size = len(self._tokens)
        self._id_of_piece = {piece: id for id, piece in enumerate(self._tokens) if id >= len(SPECIAL_TOKENS)}
        self.is_closed = False
        numbered = list(enumerate(self.original_ids))[BOS_ID + 1 :]  # PAD and BOS are suppressed in any case
        self._suppressed_ids = [id for id, original in numbered if original in suppressed]

    def _chunks_of_rows(self, texts: Sequence[str], max_tokens: int | None) -> Iterator[list[IdBytes]]:
        """Yield the ids of all texts; SentencePiece has a cache of its own."""
        yield [pack_ids(self._encoded(text)) for text in texts]

    def _encoded(self, text: str) -> list[int]:
        code, text = self.split_language_code(text)
        pieces = [*([code] if code else []), *self._library.encode(text, out_type=str)]
        return [self._id_of_piece.get(piece, UNK_ID) for piece in pieces]

    def split_language_code(self, text: str) -> tuple[str, str]:
        """Return a code such as ``>>deu<<`` at the start of a text, and the rest; ("", text) without one."""
        match = LANGUAGE_CODE.match(text)
        return (match[0], text[match.end() :].lstrip()) if match else ("", text)

    def encode_continuation(self, text: str) -> list[int]:
        """Return the ids of text that continues a line, without a space before its first word."""
        ids = self._encoded(text)
        first = self._tokens[ids[0]] if ids else ""
        if first == WORD_START:
            return ids[1:]
        inside = self._id_of_piece.get(first.removeprefix(WORD_START))
        return ids if inside is None else [inside, *ids[1:]]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ``ids``, skipping special tokens and bytes that are not valid UTF-8.

        Raises DataError for an id outside the vocabulary.
        """
        text = str(self._library.decode([self._tokens[id] for id in self._without_special(ids)]))
        text = text.replace(WORD_START, " ").lstrip()  # pieces of the other side's model keep their mark
        return text.replace(REPLACEMENT, "")

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        """Decode many rows of ids, as ``decode`` does one."""
        return list(map(self.decode, batch))

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return each piece."""
        return [self._tokens[id] for id in self._checked(ids)]

    def piece(self, ids: Iterable[int]) -> str:
        """Return several pieces as one."""
        return "".join(self.pieces(ids))

    def _bytes_of_token(self, id: int) -> bytes:
        piece = self._tokens[id]
        if byte := _BYTE.fullmatch(piece):
            return bytes([int(byte[1], 16)])
        return piece.replace(WORD_START, " ").encode()

    def words(self, text: str) -> list[str]:
        """Return the words as their pieces spell them, each with its word mark."""
        words = list[str]()
        for piece in self.pieces(self._encoded(text)):
            if piece.startswith(WORD_START) or not words:
                words.append("")
            words[-1] += piece
        return words

    @property
    def vocabulary(self) -> dict[str, int]:
        """Piece to id. A piece that is spelt like one of our special tokens has its number behind it."""
        n_special = len(SPECIAL_TOKENS)
        return {
            f"{piece}#{id}" if id >= n_special and piece in SPECIAL_TOKENS else piece: id
            for id, piece in enumerate(self._tokens)
        }

    @property
    def merges(self) -> None:
        """None: the merges are within the SentencePiece model."""

    @property
    def word_start_ids(self) -> list[int]:
        """Ids of the pieces that begin a word."""
        return [id for id, piece in enumerate(self._tokens) if piece.startswith(WORD_START)]

    @property
    def suppressed_ids(self) -> list[int]:
        """Ids of tokens that the other library never writes."""
        return self._suppressed_ids

    @cached_property
    def mask_and_sentinel_ids(self) -> list[int]:
        """None of its pieces is a mask token or a sentinel."""
        return []

    @cached_property
    def has_masks(self) -> bool:
        """Its vocabulary has no masks."""
        return False

    @property
    def has_term_marks(self) -> bool:
        """Its vocabulary has no term marks."""
        return False


def _processor(proto: bytes) -> Any:
    try:
        import sentencepiece
    except ImportError as error:
        raise CheckpointError(
            f"this model's tokenizer needs sentencepiece ({error}); pip install 'transduce[exchange]'"
        ) from error
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(proto)
    except Exception as error:  # the library raises plain RuntimeError, TypeError
        raise CheckpointError(f"the SentencePiece model is damaged: {shown(' '.join(str(error).split()))}") from error
    return processor
