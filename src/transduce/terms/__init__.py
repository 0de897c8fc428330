"""Terms: how words of the source are to be translated, and what a translation may not say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transduce.imports import imported_on_use

if TYPE_CHECKING:
    from transduce.terms.accuracy import TermAccuracy
    from transduce.terms.reading import read_avoided, read_terms
    from transduce.terms.terms import Term, Terms

__all__ = ["Term", "TermAccuracy", "Terms", "read_avoided", "read_terms"]

imported_on_use(__name__)
