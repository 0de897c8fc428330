"""Warnings about translations: each kind is logged once, when first seen, and counted at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transduce.tasks import Translation

__all__ = ["LineWarnings"]

# For each flag of a translation: the message for the first line, and the one for the final count.
_MESSAGES = {
    "is_long": (
        "has a sentence longer than any source of the training text; expect a poor translation",
        "with a sentence longer than any source of the training text",
    ),
    "is_short": (
        "has a translation far shorter than those of the training text; part of it may be missing",
        "with a translation far shorter than those of the training text",
    ),
    "lacks_masks": (
        "has masked text (a URL, a tag, ...) that the model did not place; it was inserted at its position in the "
        "source",
        "where masked text was inserted at its position in the source",
    ),
}


class LineWarnings:
    """Logs warnings about a stream of translations."""

    def __init__(self, log: Callable[[str], object], *, max_source_tokens: int) -> None:
        self._log, self._max_source_tokens = log, max_source_tokens
        self._n_lines = 0
        self._counts: Counter[str] = Counter()

    def observe(self, translation: Translation) -> None:
        """Check the translation of the next line. Truncation is logged for every line."""
        self._n_lines += 1
        if translation.is_truncated:
            limit = f"{self._max_source_tokens:,} tokens"
            self._log(f"warning: line {self._n_lines} is longer than {limit}; its end was cut off")
        for flag, (first_message, _) in _MESSAGES.items():
            if getattr(translation, flag):
                self._counts[flag] += 1
                if self._counts[flag] == 1:
                    self._log(f"warning: line {self._n_lines} {first_message}")

    def log_counts(self) -> None:
        """Log the count of each warning that occurred more than once."""
        for flag, (_, count_message) in _MESSAGES.items():
            if self._counts[flag] > 1:
                self._log(f"warning: {self._counts[flag]:,} of {self._n_lines:,} lines {count_message}")
