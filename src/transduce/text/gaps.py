"""Texts with gaps, written ``<mask>``, as token ids and back."""

from __future__ import annotations

from collections.abc import Sequence

from transduce.errors import DataError
from transduce.text.documents import DocumentCodec
from transduce.text.normalise import normalise
from transduce.text.vocabulary import MASK_TOKEN

__all__ = ["GapCodec"]


class GapCodec:
    """Encodes texts whose gaps are ids given by the caller.

    >>> from transduce.text import byte_tokenizer
    >>> tokenizer = byte_tokenizer()
    >>> ids = GapCodec(DocumentCodec(tokenizer)).encode("a<mask>c", [500])
    >>> ["gap" if id == 500 else tokenizer.pieces([id])[0] for id in ids]
    ['▁', 'a', 'gap', 'c', '\\n']
    """

    def __init__(self, documents: DocumentCodec) -> None:
        self.documents, self.tokenizer = documents, documents.tokenizer

    def n_gaps(self, text: str) -> int:
        """Return the number of gaps of a text."""
        return sum(line.count(MASK_TOKEN) for line in _normalised_lines(text))

    def encode(self, text: str, gap_ids: Sequence[int]) -> list[int]:
        """Return the ids of a document, without BOS and EOS; the n-th gap is the n-th of ``gap_ids``.

        A gap after a space, or at the start of a line, includes the space, unless spaces are tokens of their own.
        Raises DataError if there are not as many gaps as ids.
        """
        if self.n_gaps(text) != len(gap_ids):
            raise DataError(f"the text has {self.n_gaps(text):,} gaps for {len(gap_ids):,} ids: {text[:50]!r}")
        remaining, ids = iter(gap_ids), list[int]()
        for line in _normalised_lines(text):
            first, *others = line.split(MASK_TOKEN)
            ids += self.tokenizer.encode(first.rstrip()) if first.strip() else []
            before = first
            for part in others:
                is_after_space = not before or before.endswith(" ")
                space_id = self.tokenizer.space_id
                ids += [space_id] if is_after_space and space_id is not None else []
                ids.append(next(remaining))
                if part.strip():
                    stripped = part.strip()
                    has_space = part.startswith(" ")
                    ids += (self.tokenizer.encode if has_space else self.tokenizer.encode_continuation)(stripped)
                before = part or "\0"  # a gap directly after a gap is not after a space
            ids.append(self.documents.newline_id)
        return ids


def _normalised_lines(text: str) -> list[str]:
    return list(map(normalise, text.removesuffix("\n").split("\n")))
