"""Data settings of language models: documents of plain text, or of one side of parallel corpora."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import model_validator

from transduce.config.data import DataConfig, Pairs
from transduce.config.directions import LANGUAGE_PATTERN, split_direction
from transduce.config.pairs import ParallelCorpora
from transduce.config.record import Count, FileName, matching

__all__ = ["DocumentsData", "FirstItems", "OneSide", "SegmentsData"]

LanguageName = Annotated[str, matching(f"{LANGUAGE_PATTERN}|both", "a language, as in en or pt-BR, or both")]


class OneSide(DataConfig):
    """The side of parallel corpora that is read."""

    language: LanguageName | None = None  # as in "en"; or "both", each by itself

    @model_validator(mode="after")
    def _language_is_a_side(self) -> Self:
        if self.language is not None and self.language not in (*split_direction(self.direction), "both"):
            raise ValueError(
                f"language should be a side of direction = {self.direction!r}, or 'both', got {self.language!r}"
            )
        return self


class DocumentsData(OneSide, ParallelCorpora):
    """Documents of files or folders, with corpus = "files", or of one side of the corpora."""

    files = "text"

    train_text: FileName | None = None  # with corpus = "files": a file or a folder of plain text
    dev_text: FileName | None = None  # likewise, for validation; default: the first corpus that has dev
    test_text: FileName | None = None  # likewise, for the final evaluation; default: the first corpus that has test

    @model_validator(mode="after")
    def _plain_text_is_named(self) -> Self:
        if self.train_text is not None and self.max_pairs is not None:
            raise ValueError("max_pairs counts pairs or trees, but train_text has documents; give a shorter file")
        return self


class SegmentsData(DocumentsData):
    """Documents that are read in segments of a length of their own, not the model's window."""

    max_length: Count = 256  # tokens of a segment


class FirstItems(DataConfig):
    """A corpus of which only the first items may be read."""

    max_pairs: Pairs | None = None  # read only so many training items
