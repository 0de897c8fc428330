"""What preparation asks of text, whatever the pairs are: sentences and translations, or sentences and trees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from transduce.config import DataConfig, Split
from transduce.corpora.cleaning import CleaningReport

__all__ = ["PairedText", "Pairs", "UncleanedPairs"]

Pairs = Iterator[tuple[str, str]]
UncleanedPairs = Iterator[tuple[str, str] | None]  # None: a line that is no pair


class PairedText(Protocol):
    """Training pairs by corpus; dev and test pairs where there are such."""

    config: DataConfig

    @property
    def corpora(self) -> tuple[str, ...]:
        """The names of those that training reads."""

    def clean_train_pairs(self, corpus: str, report: CleaningReport, /) -> Pairs:
        """Pairs of a corpus that may be trained on, in a fixed order; ``report`` says what was left out, and why."""

    def made_train_pairs(self, corpus: str, /) -> Pairs:
        """More to train on, made of those: nobody wrote them, and no tokenizer learns from them."""

    def has(self, split: Split, /) -> bool:
        """Whether there is such a part."""

    def pairs(self, split: Split, /) -> Pairs:
        """Those of dev or test."""

    def name_of(self, split: Split, /) -> str:
        """What dev or test text is called; "" where there is none."""
