"""What translations took from lists of terms and from a memory, counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from transduce.config.decoding import LoadingOptions

if TYPE_CHECKING:
    from transduce.inference import Translation

__all__ = ["ListCounts"]


class ListCounts:
    """Counts of a stream of translations, for what their options name."""

    def __init__(self, loading: LoadingOptions, direction: tuple[str, str] | None) -> None:
        """``direction``: None where workers translate, which know it; their terms are not counted."""
        from transduce.inference.translation.loading import read_term_lists
        from transduce.terms import TermAccuracy

        has_terms = loading.terms is not None or loading.avoid is not None
        self._terms: TermAccuracy | None = None
        if direction is not None and has_terms:
            self._terms = TermAccuracy(read_term_lists(loading, *direction))
        self._has_memory = loading.memory is not None
        self._n_lines = self._n_exact = self._n_in_context = self._n_similar = 0

    def observe(self, translation: Translation) -> None:
        """Count the next translation."""
        self._n_lines += 1
        if self._terms is not None:
            self._terms.observe(translation.source, translation.text)
        if translation.matches:
            is_exact = translation.matches[0].similarity == 1
            self._n_exact += is_exact
            self._n_in_context += is_exact and translation.matches[0].is_in_context
            self._n_similar += not is_exact

    def log(self, log: Callable[[str], object]) -> None:
        """Log the counts."""
        if self._terms is not None:
            log(f"terms: {self._terms}")
        if self._has_memory:
            log(
                f"memory: {self._n_exact:,} of {self._n_lines:,} lines taken, {self._n_in_context:,} in context;"
                f" {self._n_similar:,} others have similar ones"
            )
