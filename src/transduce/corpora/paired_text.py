"""Interface of text sources for preparation: pairs of a source and a target, which is a translation or a tree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from transduce.config import DataConfig, Split
from transduce.corpora.cleaning import CleaningReport

__all__ = ["PairedText", "Pairs", "UncleanedPairs"]

Pairs = Iterator[tuple[str, str]]
UncleanedPairs = Iterator[tuple[str, str] | None]  # None: a line that is not a pair


class PairedText(ABC):
    """Training pairs by corpus, and optional dev and test pairs."""

    config: DataConfig

    @property
    def corpora(self) -> tuple[str, ...]:
        """Names of the training corpora."""
        return tuple(self.config.weights)

    @abstractmethod
    def clean_train_pairs(self, corpus: str, report: CleaningReport) -> Pairs:
        """Yield the cleaned training pairs of a corpus in a fixed order; ``report`` counts dropped pairs by reason."""

    def augmented_train_pairs(self, corpus: str) -> Pairs:
        """Yield synthetic training pairs made from the corpus; tokenizers are not trained on them. None by default."""
        yield from ()

    def has(self, split: Split) -> bool:
        """Whether the split exists; "train" always does."""
        return split == "train" or self.name_of(split) != ""

    @abstractmethod
    def pairs(self, split: Split) -> Pairs:
        """Yield the pairs of dev or test. Raises DataError for a line that cannot be read."""

    @abstractmethod
    def name_of(self, split: Split) -> str:
        """Display name of the dev or test text, reported beside scores; "" if there is none."""
