"""How lines are cut into what a model translates at a time, by what its training text was like."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from transduce.tasks.line_statistics import LineStatistics
from transduce.text import Segment, split_clauses, split_sentences

__all__ = ["Segmenter"]


class Segmenter:
    """Cuts lines into sentences, and sentences that are longer than all of training into clauses.

    A line that has no more sentences and tokens than is usual in the training text stays whole, and so does a sentence
    that is no longer than the longest there.
    """

    def __init__(
        self,
        language: str,
        statistics: LineStatistics | None,
        n_tokens: Callable[[Sequence[str]], list[int]],
        *,
        max_tokens: int,
    ) -> None:
        """``n_tokens`` counts those of many texts, the end symbol included; ``max_tokens`` are read of a text.

        Without statistics, every sentence stands alone.
        """
        self.language, self._n_tokens = language, n_tokens
        self.most_sentences = 1 if statistics is None else statistics.sentences
        self.usual = max_tokens if statistics is None else min(statistics.tokens, max_tokens)
        self.longest = max_tokens if statistics is None else min(statistics.longest, max_tokens)

    def __call__(self, lines: Sequence[str]) -> list[list[Segment]]:
        """The segments of each line, at least one; a blank line has one that is empty."""
        sentences = [split_sentences(line, self.language) for line in lines]
        n_tokens_of_lines = self._n_tokens(lines)
        found = []
        for line, parts, n_tokens in zip(lines, sentences, n_tokens_of_lines, strict=True):
            if len(parts) == 1:
                is_whole = n_tokens <= self.longest
            else:
                is_whole = len(parts) <= self.most_sentences and n_tokens <= self.usual
            found.append([Segment(line, "")] if is_whole else self._shortened(parts, n_tokens))
        return found

    def _shortened(self, parts: Sequence[Segment], n_tokens: int) -> list[Segment]:
        """Sentences, each short enough."""
        if n_tokens <= self.longest:  # of all together
            return list(parts)
        counts = self._n_tokens([part.text for part in parts])
        found = []
        for part, count in zip(parts, counts, strict=True):
            found += [part] if count <= self.longest else self._clauses(part)
        return found

    def _clauses(self, sentence: Segment) -> list[Segment]:
        clauses = split_clauses(sentence.text, self.usual, lambda text: self._n_tokens([text])[0])
        return [*clauses[:-1], Segment(clauses[-1].text, sentence.space)]
