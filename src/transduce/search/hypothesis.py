"""One output of a search."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Hypothesis"]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """An output with its log-probability in nats."""

    ids: tuple[int, ...]  # without begin and end symbols
    log_prob: float  # sum over its symbols, the end symbol included
    score: float  # log_prob / length penalty; where it is not finished, log_prob
    is_finished: bool  # False: cut at the limit, so there is no end symbol
