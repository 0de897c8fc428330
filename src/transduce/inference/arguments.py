"""Checks of what users pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

__all__ = ["require_sequence"]


def require_sequence(texts: object, expected: str, for_one: str) -> None:
    """Raise TypeError for a single string (the message ends with ``for_one``) and for unordered collections."""
    if isinstance(texts, str | bytes):
        raise TypeError(f"{expected}; {for_one}")
    if isinstance(texts, Mapping | Set) or not isinstance(texts, Iterable):
        raise TypeError(f"{expected}, got {type(texts).__name__}")
