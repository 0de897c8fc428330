"""How many passes of a model a search needed."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["PassCounts"]


@dataclass(slots=True)
class PassCounts:
    """How many passes of a model a search needed. Searches add to it."""

    sentences: int = 0
    passes: int = 0  # summed over the sentences that took part in each
    tokens: int = 0  # written, EOS included
    drafted: int = 0
    accepted: int = 0  # of the drafted tokens

    @property
    def passes_per_sentence(self) -> float:
        """Passes of the model for a sentence; NaN without sentences."""
        return self.passes / self.sentences if self.sentences else math.nan

    @property
    def tokens_per_pass(self) -> float:
        """Tokens that a pass adds to a sentence: 1 without drafts."""
        return self.tokens / self.passes if self.passes else math.nan
