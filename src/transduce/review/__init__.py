"""A page on which a person reviews translations: one self-contained HTML file, whose edits it saves as TMX."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transduce.imports import imported_on_use

if TYPE_CHECKING:
    from transduce.review.page import KeptTerm, ReviewedText, SimilarPair, write_review

__all__ = ["KeptTerm", "ReviewedText", "SimilarPair", "write_review"]

imported_on_use(__name__)
