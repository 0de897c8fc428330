"""Recognition of the language of a text, among the languages that are served."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

__all__ = ["Detected", "LanguageDetector"]

MAX_CHARACTERS = 2000
_TAG = re.compile(r"<[^<>]{0,500}>")


@dataclass(frozen=True, slots=True)
class Detected:
    """A language and how certain it is, 0 to 100."""

    language: str
    confidence: float


class LanguageDetector:
    """Identifies languages with py3langid, whose model is loaded at the first use (or by ``load``)."""

    def __init__(self, languages: Collection[str]) -> None:
        self.languages = tuple(sorted(languages))
        self._identifier: Any = None
        self._lock = threading.Lock()

    def load(self) -> None:
        """Load the model, which takes seconds."""
        with self._lock:
            if self._identifier is None:
                from py3langid.langid import MODEL_FILE, LanguageIdentifier

                self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

    def rank(self, text: str, *, among: Collection[str] | None = None) -> list[Detected]:
        """Return the served languages, the most probable first; the confidence is relative to all languages known.

        A language that the identifier does not know comes last, with confidence 0. ``among``: only these.
        """
        self.load()
        sample = _TAG.sub(" ", text[:MAX_CHARACTERS]).strip()
        served = [each for each in self.languages if among is None or each in among]
        probabilities = dict(self._identifier.rank(sample)) if any(map(str.isalpha, sample)) else {}
        found = [Detected(each, round(100 * float(probabilities.get(each, 0.0)), 1)) for each in served]
        return sorted(found, key=lambda each: -each.confidence)
