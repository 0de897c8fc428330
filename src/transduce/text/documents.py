"""Documents as token ids and back: lines, each followed by the token of a line end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from transduce.text.byte_level import to_byte_level
from transduce.text.normalise import normalise
from transduce.text.tokenizer import Tokenizer

__all__ = ["DocumentCodec"]


class DocumentCodec:
    """Encodes documents by a tokenizer for lines.

    >>> from transduce.text import byte_tokenizer
    >>> codec = DocumentCodec(byte_tokenizer())
    >>> codec.decode(codec.encode(["one", "two"]))
    'one\\ntwo\\n'
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.newline_id = tokenizer.vocabulary[to_byte_level("\n")]

    def encode(self, lines: Sequence[str]) -> list[int]:
        """Return the ids of a document, without BOS and EOS; each line is normalised."""
        encoded = self.tokenizer.encode_batch([normalise(line) for line in lines])
        return list(chain.from_iterable((*ids, self.newline_id) for ids in encoded))

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ``ids``, skipping special tokens; a last line without its end stays without it."""
        lines: list[list[int]] = [[]]
        for id in ids:
            if id == self.newline_id:
                lines.append([])
            else:
                lines[-1].append(id)
        return "\n".join(self.tokenizer.decode_batch(lines))

    def n_bytes(self, ids: Iterable[int]) -> int:
        """Return the number of bytes of the text of ``ids`` in UTF-8, line ends included."""
        return len(self.decode(ids).encode("utf-8", "surrogateescape"))
