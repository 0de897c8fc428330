"""What preparation asks of text, whatever the pairs are: sentences and translations, or sentences and trees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from transduce.config import DataConfig, Split
from transduce.corpora.cleaning import CleaningReport

__all__ = ["PairedText", "Pairs", "UncleanedPairs"]

Pairs = Iterator[tuple[str, str]]
UncleanedPairs = Iterator[tuple[str, str] | None]  # None: a line that is no pair


class PairedText(ABC):
    """Training pairs by corpus; dev and test pairs where there are such."""

    config: DataConfig

    @property
    def corpora(self) -> tuple[str, ...]:
        """The names of those that training reads."""
        return tuple(self.config.weights)

    @abstractmethod
    def clean_train_pairs(self, corpus: str, report: CleaningReport) -> Pairs:
        """Pairs of a corpus that may be trained on, in a fixed order; ``report`` says what was left out, and why."""

    def augmented_train_pairs(self, corpus: str) -> Pairs:
        """More to train on, made of those: nobody wrote them, and no tokenizer learns from them. None by default."""
        yield from ()

    def has(self, split: Split) -> bool:
        """Whether there is such a part; training text is always there."""
        return split == "train" or self.name_of(split) != ""

    @abstractmethod
    def pairs(self, split: Split) -> Pairs:
        """Those of dev or test. Raises DataError if one cannot be read."""

    @abstractmethod
    def name_of(self, split: Split) -> str:
        """What dev or test text is called, to be told beside a score; "" where there is none."""
