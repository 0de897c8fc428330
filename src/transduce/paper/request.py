"""What is asked of a reproduction."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Request"]


@dataclass(frozen=True, slots=True)
class Request:
    """The whole, or a form for tests that takes seconds and shows only that it works; and a user's own sentence."""

    is_short: bool = False
    sentence: str | None = None  # for the figures of attention
