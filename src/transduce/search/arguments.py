"""What greedy and beam search share: their errors, and the least beam of a search for phrases.

Shapes: B sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from transduce.errors import SearchError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["MIN_PHRASE_BEAM", "check_arguments", "no_hypothesis_error"]

MIN_PHRASE_BEAM = 6  # where hypotheses are shared out by what they have of phrases


def check_arguments(max_lengths_B: Tensor, /, *, eos_id: int, suppressed_ids: Sequence[int]) -> None:
    """Check search arguments. Raises ValueError for a length below 1 or a suppressed EOS."""
    if max_lengths_B.ndim != 1 or bool((max_lengths_B < 1).any()):
        raise ValueError(f"max_lengths_B must have one length of at least 1 per sentence, got {max_lengths_B.tolist()}")
    if eos_id in suppressed_ids:
        raise ValueError(f"suppressed_ids must not contain eos_id {eos_id}, got {list(suppressed_ids)}")


def no_hypothesis_error(sentence: int, /, *, n_tokens: int) -> SearchError:
    """The error for a sentence, counted from 0, that has no hypothesis of ``n_tokens`` tokens."""
    return SearchError(
        f"search: sentence {sentence} (counted from 0) has no hypothesis of {n_tokens} tokens: "
        "the model returns NaN, or probability zero to every allowed token; check its weights"
    )
