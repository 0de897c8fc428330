"""The interface of all sources of text for preparation: items by corpus and split.

An item is what a task learns from: a pair of texts, a document, a prompt with responses, an image with its text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from transduce.config import DataConfig, Split

__all__ = ["Pair", "Report", "Source"]

Pair = tuple[str, str]  # source and target
Item = TypeVar("Item", covariant=True)


class Report(Protocol):
    """What a source left out of a corpus, and why."""

    def lines(self) -> list[str]:
        """Return it in words."""

    def as_json(self) -> dict[str, object]:
        """Return it as JSON values."""


class Source(ABC, Generic[Item]):
    """The items of a configuration.

    ``reports`` has for each training corpus what its last reading left out; it stays empty if a source counts nothing.
    """

    def __init__(self, config: DataConfig) -> None:
        self.reports: dict[str, Report] = {}
        self.corpora = tuple(config.weights)  # names of the training corpora

    @abstractmethod
    def train(self, corpus: str) -> Iterator[Item]:
        """Yield the training items of a corpus in a fixed order. Items that cannot be used are left out."""

    @abstractmethod
    def of(self, split: Split) -> Iterator[Item]:
        """Yield the items of dev or test. Raises DataError for one that cannot be read."""

    @abstractmethod
    def name_of(self, split: Split) -> str:
        """Display name of the dev or test items, reported beside scores; "" if there are none."""

    def has(self, split: Split) -> bool:
        """Whether the split exists; "train" always does."""
        return split == "train" or self.name_of(split) != ""
