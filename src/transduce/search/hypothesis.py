"""The result of a search."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Hypothesis"]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A hypothesis: an output with its log-probability in nats."""

    ids: tuple[int, ...]  # without BOS and EOS
    log_prob: float  # sum over its tokens, EOS included; NaN if not scored
    score: float  # log_prob / length penalty; log_prob if not finished; NaN if not scored
    is_finished: bool  # False: truncated at the maximum length, without EOS
