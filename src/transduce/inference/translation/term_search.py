"""What a search must and must not write for a list of terms.

Shapes: X target words, Y source words.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING

from transduce.inference.engine import Constraints
from transduce.inference.translation.segment_text import ReadSegment, SegmentText
from transduce.patterns import compiled_on_use
from transduce.terms import Terms
from transduce.terms.terms import words_of
from transduce.text import Tokenizer
from transduce.text.characters import SPACELESS

if TYPE_CHECKING:
    from transduce.inference.translation.word_alignment import AlignedSentence

__all__ = ["TermSearch", "word_inside_ids"]

_GOES_ON = compiled_on_use(rf"[^\W_{SPACELESS}]")


class TermSearch:
    """What is asked of the translations that do not keep terms, when they are searched again."""

    def __init__(self, terms: Terms, text: SegmentText, *, are_required: bool) -> None:
        """``are_required``: the terms must be written; if not, only what is to be avoided may not."""
        self._terms, self._text, self._are_required = terms, text, are_required

    def is_needed(self, source: str, target: str) -> bool:
        """Whether a translation must be searched again."""
        return not self._enforced.are_kept(source, target)

    @cached_property
    def _enforced(self) -> Terms:
        return self._terms if self._are_required else Terms(avoided=self._terms.avoided)

    def replaced(self, aligned: AlignedSentence) -> list[str]:
        """Return the words that stand for the terms which a translation lacks: they are not to stand beside them.

        A word stands for the source word that it attends to most.
        """
        if not self._are_required:
            return []
        source, target = (
            [text[start:end] for start, end in spans]
            for text, spans in (
                (aligned.source, aligned.source_words), (aligned.target, aligned.target_words)
            )
        )  # fmt: skip
        lost = {each.source for each in self._terms.lost(aligned.source, aligned.target)}
        places = {index for place, term in self._terms.places(source) if term.source in lost for index in place}
        wanted = {word for each in self._terms.found(aligned.source) for word in words_of(each.target)}
        return [
            word
            for word, weights_Y in zip(target, aligned.weights_XY, strict=True)
            if int(weights_Y.argmax()) in places and len(word) > 3 and word.isalpha() and word not in wanted
        ]

    @cached_property
    def _pieces(self) -> list[tuple[str, int]]:
        """The tokens that begin a word, sorted."""
        tokenizer = self._text.tokenizers.tgt
        ids = tokenizer.word_start_ids
        return sorted(zip(tokenizer.pieces(ids), ids, strict=True))

    def _beginning_with(self, stem: str) -> Iterator[int]:
        """Yield the tokens that begin a word as ``stem`` does."""
        first = bisect_left(self._pieces, (stem, 0))
        return (id for _, id in takewhile(lambda each: each[0].startswith(stem), islice(self._pieces, first, None)))

    def constrained(self, constraints: Constraints, source: ReadSegment, replaced: Sequence[str] = ()) -> Constraints:
        """Return the constraints of a translation with those of the terms of its source, without ``replaced`` words."""
        text = source.masked.text if source.is_caps else source.text
        phrases = [self._text.phrase_ids(each.target, source) for each in self._enforced.found(text)]
        if source.is_caps:
            replaced = [form for word in replaced for form in (word.lower(), word.capitalize())]
        forms = [*chain.from_iterable(map(_forms, self._enforced.avoided)), *replaced]
        avoided = {self._text.phrase_ids(form, source) for form in forms}
        stems = (f"▁{each[: max(4, len(each) * 3 // 4)]}" for each in replaced)
        starts = {phrase[0] for phrase in phrases if phrase}
        avoided |= {(id,) for id in chain.from_iterable(map(self._beginning_with, stems)) if id not in starts}
        return replace(constraints, phrases=list(filter(None, phrases)), avoided=sorted(filter(None, avoided)))


def _forms(phrase: str) -> Sequence[str]:
    """Return a phrase as it stands in a text, at the beginning of one, and in capitals."""
    if phrase != phrase.lower():
        return (phrase,)
    return (phrase, phrase[:1].upper() + phrase[1:], phrase.upper())


def word_inside_ids(tokenizer: Tokenizer) -> list[int]:
    """Return the ids of the tokens that go on with a word."""
    ids = sorted(tokenizer.vocabulary.values())
    return [id for id, piece in zip(ids, tokenizer.pieces(ids), strict=True) if _GOES_ON.match(piece)]
