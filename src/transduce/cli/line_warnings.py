"""Warnings about translations: each kind is logged once, when first seen, and counted at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transduce.inference import Translation
    from transduce.inference.translation.document_translation import DocumentReport
    from transduce.terms import Terms

__all__ = ["LineWarnings"]

# For each flag of a translation, and each reason to keep a text of a document: what is said of a line that has it.
_MESSAGES = {
    "source-cut": "has a sentence longer than {limit} tokens; its end was cut off",
    "output-cut": "has a translation that was cut off at the greatest length; search.max_extra_tokens of the model "
    "allows more",
    "untranslated": "has a sentence for which the model found no words; it stands as in the source",
    "repeated": "has a translation that repeated words more often than the source; what was too much is left out",
    "lost": "has a translation that lacks a number, URL, placeholder or tag of the source",
    "terms": "has a translation that lacks a term, or has a phrase that was to be avoided",
    "mended": "has a number, URL, placeholder or tag that the model did not keep; it was put in afterwards",
    "guessed": "has a tag whose words were not found in the translation; its place is a guess",
    "long": "has a sentence longer than any source of the training text; expect a poor translation",
    "placeholders": "stays as it was, since its translation has other placeholders",
    "tags": "stays as it was, since its translation lacks tags",
    "refused": "stays as it was, since the document cannot hold its translation",
    "short": "has a translation far shorter than those of the training text; part of it may be missing",
    "unlike": "is unlike the training text of the model; its translation may be wrong",
}
# And of the number of such lines at the end, where that is not "with" in place of "has".
_OF_SEVERAL = {
    "source-cut": "with a sentence longer than {limit} tokens, whose end was cut off",
    "untranslated": "with a sentence for which the model found no words",
    "mended": "where a number, URL, placeholder or tag was put in afterwards",
    "long": "with a sentence longer than any source of the training text",
    "placeholders": "that stay as they were, since their translations have other placeholders",
    "tags": "that stay as they were, since their translations lack tags",
    "refused": "that stay as they were, since the document cannot hold their translations",
    "short": "with a translation far shorter than those of the training text",
    "unlike": "unlike the training text of the model",
}


class LineWarnings:
    """Logs warnings about a stream of translations, and writes all of them as LINE TAB FLAG TAB MESSAGE."""

    def __init__(
        self,
        log: Callable[[str], object],
        *,
        max_source_tokens: int,
        write: Callable[[str], object] = lambda line: None,
        terms: Terms | None = None,
    ) -> None:
        """``terms`` are those that translations were to have; what is told names them."""
        self._log, self._write, self._limit = log, write, f"{max_source_tokens:,}"
        self._terms = terms
        self._n_lines = 0
        self._counts: Counter[str] = Counter()

    def observe(self, translation: Translation) -> None:
        """Check the translation of the next line. What was cut off is logged for every line."""
        self._n_lines += 1
        for flag in translation.warnings:
            terms = self._terms if flag == "terms" else None
            detail = "" if terms is None else terms.faults(translation.source, translation.text)
            self._tell(str(self._n_lines), f"line {self._n_lines}", flag, detail)

    def observe_document(self, report: DocumentReport) -> None:
        """Check the translation of a document; the place of a text takes that of the number of a line."""
        self._n_lines = report.segments
        for each in report.remarks:
            self._tell(each.place, each.place, each.kind, each.detail)

    def _tell(self, number: str, subject: str, kind: str, detail: str = "") -> None:
        message = _MESSAGES[kind].format(limit=self._limit) + f": {detail}" * bool(detail)
        self._write(f"{number}\t{kind}\t{message}")
        self._counts[kind] += 1
        if self._counts[kind] == 1 or kind == "source-cut":
            self._log(f"warning: {subject} {message}")

    def log_counts(self, what: str = "lines") -> None:
        """Log the count of each warning that occurred more than once."""
        for kind, of_one in _MESSAGES.items():
            if self._counts[kind] > 1:
                message = _OF_SEVERAL.get(kind, of_one.replace("has", "with", 1))
                counted = f"{self._counts[kind]:,} of {self._n_lines:,} {what}"
                self._log(f"warning: {counted} {message.format(limit=self._limit)}")
