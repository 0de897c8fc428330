"""Recognition of the language of a text."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from transduce.config import base_language
from transduce.serving.languages import served_codes

__all__ = ["Detected", "LanguageDetector", "UnservedLanguage"]

MAX_CHARACTERS = 2000
MAX_RANKED = 5  # languages of an answer
MIN_SHARE = 0.01  # of the probability; a language with less is not named
# Of 6,000 English lines of three corpora none was taken for German or another language by these limits, and 97.7 % of
# 6,000 German ones for German, where English is translated into German.
TARGET_FACTOR = 3.0  # times the probability of a source language: a text that is in the target language
CLEAR, UNSERVED_FACTOR = 0.5, 50.0  # at least, and times that of all others: a text in a language that is not served
_TAG = re.compile(r"<[^<>]{0,500}>")
# What the identifier tells apart and translators do not.
_PARTS = {
    "arz": "ar", "ary": "ar", "wuu": "zh", "yue": "zh", "nn": "no", "grc": "el", "hbo": "he", "pcm": "en", "sdh": "ku",
    "uzs": "uz", "gug": "gn",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Detected:
    """A language and how certain it is, 0 to 100."""

    language: str
    confidence: float


class UnservedLanguage(Exception):
    """A text is in a language that is not translated into the one that is asked for."""

    def __init__(self, language: str) -> None:
        super().__init__(f"the text looks like {language}")
        self.language = language


class LanguageDetector:
    """Identifies languages with py3langid, whose model is loaded at the first use (or by ``load``).

    ``served``: the codes of the models' languages, by which those are called.
    """

    def __init__(self, served: Collection[str]) -> None:
        self._served = tuple(sorted(served))
        self._codes: dict[str, str] = {}  # of the identifier's labels
        self._identifier: Any = None
        self._lock = threading.Lock()

    def load(self) -> None:
        """Load the model, which takes seconds."""
        with self._lock:
            if self._identifier is None:
                from py3langid.langid import MODEL_FILE, LanguageIdentifier

                self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

    def rank(self, text: str) -> list[Detected]:
        """Return the most probable of all languages known, best first; none for a text without letters."""
        shares = self._shares(text)
        best = sorted(shares, key=lambda code: -shares[code])[:MAX_RANKED]
        return [_detected(code, shares) for code in best if code == best[0] or shares[code] >= MIN_SHARE]

    def source_of(self, text: str, sources: Iterable[str], target: str) -> Detected:
        """Return the language of a text that is to be translated: one of ``sources``, or the target.

        Raises UnservedLanguage for a text that is clearly in another.
        """
        sources = sorted(sources)
        shares = self._shares(text)
        source = max(sources, key=lambda code: shares.get(code, 0.0))
        of_source, of_target = shares.get(source, 0.0), shares.get(target, 0.0)
        best = max(shares, key=lambda code: shares[code], default=source)
        if best not in (source, target) and shares[best] >= max(CLEAR, UNSERVED_FACTOR * max(of_source, of_target)):
            raise UnservedLanguage(best)
        return _detected(target if of_target > TARGET_FACTOR * of_source else source, shares)

    def _shares(self, text: str) -> dict[str, float]:
        """Return the probability of each language; none for a text without letters."""
        sample = _TAG.sub(" ", text[:MAX_CHARACTERS]).strip()
        if not any(map(str.isalpha, sample)):
            return {}
        self.load()
        shares = defaultdict[str, float](float)
        for label, probability in self._identifier.rank(sample):
            is_chinese = probability >= MIN_SHARE and _PARTS.get(label, label) == "zh"
            name = f"zh-{_script_of_chinese(sample)}" if is_chinese else label
            shares[self._code_of(name)] += float(probability)
        return shares

    def _code_of(self, name: str) -> str:
        """Return the code by which a language of the identifier is served; its own code if it is not."""
        if name not in self._codes:
            found = served_codes(name, self._served) or served_codes(_PARTS.get(name, name), self._served)
            self._codes[name] = found[0] if found else base_language(name)
        return self._codes[name]


def _detected(code: str, shares: dict[str, float]) -> Detected:
    return Detected(code, round(100 * shares.get(code, 0.0), 1))


def _script_of_chinese(text: str) -> str:
    """Return "Hans" or "Hant", by the characters that only one of the two national standards has.

    >>> _script_of_chinese("这个国家"), _script_of_chinese("這個國家")
    ('Hans', 'Hant')
    """
    n_simplified, n_traditional = (
        sum(_has(each, one) and not _has(each, other) for each in text)
        for one, other in (("gb2312", "big5"), ("big5", "gb2312"))
    )
    return "Hant" if n_traditional > n_simplified else "Hans"


def _has(character: str, encoding: str) -> bool:
    return bool(character.encode(encoding, "ignore"))
