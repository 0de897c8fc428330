"""Search for the outputs of texts: encode them, ask an engine, and put its results in the order of the texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from transduce.config import SearchConfig
from transduce.inference.engine import NO_CONSTRAINTS, Constraints, Engine, Request, Run, never
from transduce.search import MAX_UNIT, Hypothesis, n_repeats
from transduce.text import EOS_ID, Tokenizer, normalise

__all__ = ["MAX_SOURCE_TOKENS", "SearchResult", "TextSearch"]

# Longer sources are truncated: no model is trained on such sentences, and attention is quadratic in their length.
MAX_SOURCE_TOKENS = 1024

# Makes the constraints of an output from the index of its text and its maximum length.
ConstraintMaker = Callable[[int, int], Constraints]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Search result of one text."""

    hypotheses: tuple[Hypothesis, ...]  # best first; empty for an empty text
    n_src_tokens: int  # EOS included; a lower bound for a truncated source
    is_truncated: bool  # the source was too long


class TextSearch:
    """Search with an engine that reads the ids of a tokenizer."""

    def __init__(self, engine: Engine, src_tokenizer: Tokenizer) -> None:
        self.engine, self._src_tokenizer = engine, src_tokenizer

    @property
    def max_source_tokens(self) -> int:
        """Maximum source length, EOS included; longer sources are truncated."""
        return min(MAX_SOURCE_TOKENS, self.engine.max_positions)

    def source_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode texts without EOS; of an overlong text, return just enough tokens to exceed the maximum."""
        return self._src_tokenizer.encode_batch(
            [normalise(text) for text in texts], max_tokens=self.max_source_tokens - 1
        )

    def __call__(
        self,
        texts: Sequence[str],
        search: SearchConfig,
        *,
        should_stop: Callable[[], bool] = never,
        constrain: ConstraintMaker | None = None,
        min_tokens: Sequence[int] | None = None,
        is_scored: bool = True,
        has_loops: bool = True,
        report: Callable[[int], object] = lambda n_done: None,
    ) -> list[SearchResult] | None:
        """Return one result per text; None if ``should_stop``, checked before each batch, is true.

        ``min_tokens``: for each text, the least value of its maximum output length, EOS included. Without
        ``is_scored``, the hypotheses of greedy search have no scores. Without ``has_loops``, few tokens do not follow
        each other again and again, unless they do so in the source; for beam search and greedy search. ``report`` gets
        the number of texts done, after each batch. Raises ConfigError if model and search do not go together.
        """
        encoded = self.source_ids(texts)
        sources = [ids[: self.max_source_tokens - 1] for ids in encoded]
        nonempty = [index for index, ids in enumerate(sources) if ids]

        def request(index: int) -> Request:
            source = [*sources[index], EOS_ID]
            limit = min(self.engine.max_positions, search.max_length or self.engine.max_positions)
            max_length = min(search.max_output_tokens(len(source)), limit)
            if min_tokens is not None:
                max_length = max(max_length, min_tokens[index])
            constraints = NO_CONSTRAINTS if constrain is None else constrain(index, max_length)
            if not has_loops:
                constraints = replace(constraints, max_repeats=_max_repeats(sources[index]))
            n_wanted = sum(map(len, constraints.phrases))
            return Request(max(max_length, min(max_length + n_wanted, limit)), source, constraints=constraints)

        run = Run(is_scored, should_stop, report)
        found = self.engine.hypotheses(list(map(request, nonempty)), search, run)
        if found is None:
            return None
        results = dict(zip(nonempty, found, strict=True))
        return [
            SearchResult(results.get(index, ()), len(ids) + 1, is_truncated=len(sources[index]) < len(ids))
            for index, ids in enumerate(encoded)
        ]


def _max_repeats(source: Sequence[int]) -> list[int]:
    """How often 1, 2, ... tokens may follow each other in the translation of a source: as in it, but at least twice."""
    return [max(2 + (unit == 1), n_repeats(source, unit)) for unit in range(1, MAX_UNIT + 1)]
