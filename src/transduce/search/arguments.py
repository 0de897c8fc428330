"""What both searches refuse, before they start and on the way."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from transduce.errors import SearchError

__all__ = ["check_arguments", "no_hypothesis_error"]


def check_arguments(max_lengths_B: Tensor, /, *, eos_id: int, suppressed_ids: Sequence[int], alpha: float) -> None:
    """Raises ValueError for limits below 1, a forbidden end symbol, or a length penalty that would not grow."""
    if max_lengths_B.ndim != 1 or bool((max_lengths_B < 1).any()):
        raise ValueError(f"limits_B must be one number of at least 1 for each sentence, got {max_lengths_B.tolist()}")
    if eos_id in suppressed_ids:
        raise ValueError(f"the end symbol {eos_id} is forbidden, so no output could end; got {list(suppressed_ids)}")
    if alpha < 0:
        raise ValueError(f"alpha must be at least 0, got {alpha}")


def no_hypothesis_error(sentence: int, /, *, n_tokens_of_tree: int) -> SearchError:
    """The error for a sentence, counted from 0, that no symbol can go on."""
    return SearchError(
        f"search: sentence {sentence} (counted from 0) has no possible output of {n_tokens_of_tree} symbols: "
        "the model gives NaN, or probability zero to every symbol that is allowed; check its weights"
    )
