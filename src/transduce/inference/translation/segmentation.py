"""Segmentation of lines into segments that a model can translate, by the length statistics of its training text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from transduce.inference.translation.line_statistics import LineStatistics
from transduce.text import MASKS, Segment, split_clauses, split_sentences
from transduce.text.normalise import visible

__all__ = ["Segmenter"]


class Segmenter:
    """Split lines into sentences, and sentences longer than any in training into clauses.

    A line stays whole if its numbers of sentences and tokens are at most the 95 % quantiles of the training lines. A
    sentence stays whole if it has at most as many tokens as the longest training line, and at most ten masked strings.
    """

    def __init__(
        self,
        language: str,
        statistics: LineStatistics | None,
        n_tokens: Callable[[Sequence[str]], list[int]],
        *,
        max_tokens: int,
        n_masks: Callable[[str], int] = lambda text: 0,
    ) -> None:
        """``n_tokens`` counts the tokens of texts, EOS included; ``max_tokens`` is the maximum source length.

        ``n_masks`` counts the masks that a text needs; there are ten, so a text that needs more is split. Without
        statistics, every sentence is a segment.
        """
        self.language, self._n_tokens, self._n_masks = language, n_tokens, n_masks
        self.max_sentences = 1 if statistics is None else statistics.sentences
        self.usual = max_tokens if statistics is None else min(statistics.tokens, max_tokens)  # 95 % quantile
        self.longest = max_tokens if statistics is None else min(statistics.longest, max_tokens)

    def __call__(self, lines: Sequence[str]) -> list[list[Segment]]:
        """Return the segments of each line, at least one; an empty line has one empty segment.

        They are without invisible characters, behind which a sentence may end.
        """
        lines = list(map(visible, lines))
        sentences = [split_sentences(line, self.language) for line in lines]
        n_tokens_of_lines = self._n_tokens(lines)
        segments = []
        for line, parts, n_tokens in zip(lines, sentences, n_tokens_of_lines, strict=True):
            if len(parts) == 1:
                is_whole = n_tokens <= self.longest
            else:
                is_whole = len(parts) <= self.max_sentences and n_tokens <= self.usual
            is_whole = is_whole and self._n_masks(line) <= len(MASKS)
            segments.append([Segment(line, "")] if is_whole else self._split_long(parts, n_tokens))
        return segments

    def _split_long(self, sentences: Sequence[Segment], n_tokens: int) -> list[Segment]:
        """Split sentences that are too long into clauses; ``n_tokens`` is their total length."""
        parts = list(chain.from_iterable(map(self._with_enough_masks, sentences)))
        if n_tokens <= self.longest:
            return parts
        segments = []
        for part, count in zip(parts, self._n_tokens([part.text for part in parts]), strict=True):
            segments += [part] if count <= self.longest else self._clauses(part)
        return segments

    def _with_enough_masks(self, sentence: Segment) -> list[Segment]:
        """Split a sentence with more strings to be masked than there are masks."""
        is_whole = self._n_masks(sentence.text) <= len(MASKS)
        return [sentence] if is_whole else _split(sentence, len(MASKS), self._n_masks)

    def _clauses(self, part: Segment) -> list[Segment]:
        return _split(part, self.usual, lambda text: self._n_tokens([text])[0])


def _split(segment: Segment, maximum: int, count: Callable[[str], int]) -> list[Segment]:
    clauses = split_clauses(segment.text, maximum, count)
    return [*clauses[:-1], Segment(clauses[-1].text, segment.space)]
