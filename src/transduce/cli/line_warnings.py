"""What may be wrong with translations: each kind is told once, when it is first seen, and counted at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transduce.tasks import Translation

__all__ = ["LineWarnings"]

# For the mark of a translation: what is told of the first line, and what of all.
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
        "has something to be left as it is (a URL, a tag, ...) that the model did not place; it was put where the "
        "source has it",
        "where something to be left as it is was put where the source has it",
    ),
}


class LineWarnings:
    """Watches translations as they come."""

    def __init__(self, log: Callable[[str], object], *, max_source_tokens: int) -> None:
        self._log, self._max_source_tokens = log, max_source_tokens
        self._n_lines = 0
        self._counts: Counter[str] = Counter()

    def observe(self, translation: Translation) -> None:
        """The translation of the next line. That text was cut off is told of every line."""
        self._n_lines += 1
        if translation.is_truncated:
            limit = f"{self._max_source_tokens:,} tokens"
            self._log(f"warning: line {self._n_lines} is longer than {limit}; its end was cut off")
        for mark, (of_first, _) in _MESSAGES.items():
            if getattr(translation, mark):
                self._counts[mark] += 1
                if self._counts[mark] == 1:
                    self._log(f"warning: line {self._n_lines} {of_first}")

    def log_counts(self) -> None:
        """What was seen more than once."""
        for mark, (_, of_all) in _MESSAGES.items():
            if self._counts[mark] > 1:
                self._log(f"warning: {self._counts[mark]:,} of {self._n_lines:,} lines {of_all}")
