"""Which hypothesis of a search becomes the translation: one that keeps what it should, and neither is empty nor loops.

Search knows probabilities of tokens; here texts are compared with their sources.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from transduce.tasks.translation_parts import Flag, ScoredText
from transduce.text import MaskRules, lost_strings, mend
from transduce.text.characters import SPACELESS
from transduce.text.verbatim import has_verbatim

__all__ = ["Candidate", "Fault", "HypothesisCheck", "best_candidates", "is_repetitive"]

MAX_TIMES = 2  # that the same words may stand side by side, unless they do so in the source; of a single word once
MAX_PERIOD = 8  # words that are repeated together
MIN_LOOP_LETTERS = 6
_WORD = re.compile(rf"[{SPACELESS}]|[^\W_{SPACELESS}]+")
_DIGIT = re.compile(r"\d")
_IS_SIGN = re.compile(f"[{SPACELESS}]")
_LOOP_IN_WORD = re.compile(r"([^\W\d_]{2,8}?)\1{3,}|([^\W\d_])\2{5,}")  # four times, a single letter six times


class Fault(IntEnum):
    """What is wrong with a hypothesis; the worst is the greatest."""

    NONE = 0
    LACKS_STRINGS = 1  # numbers, URLs, placeholders ...
    REPEATS = 2
    HAS_NO_WORD = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    """A hypothesis as text."""

    best: ScoredText
    fault: Fault
    is_repaired: bool  # masks that it lacks were put in
    is_finished: bool  # False: it reached the maximum length


def best_candidates(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates with the least fault, in their order, equal texts once."""
    by_text = dict[str, Candidate]()
    for each in candidates:
        by_text.setdefault(each.best.text, each)
    least = min((each.fault for each in by_text.values()), default=Fault.NONE)
    return [each for each in by_text.values() if each.fault == least]


@dataclass(frozen=True, slots=True)
class HypothesisCheck:
    """Finds faults of translations, and mends them; ``rules`` name the languages, and what a translation may lack."""

    rules: MaskRules

    def fault(self, source: str, target: str, *, is_cut: bool = False) -> Fault:
        """Return the worst fault of a translation of a source with words; ``is_cut``: its end was not read."""
        if not any(map(str.isalnum, target)):
            return Fault.HAS_NO_WORD
        if is_repetitive(source, target):
            return Fault.REPEATS
        return Fault.LACKS_STRINGS if not is_cut and self._lost(source, target) else Fault.NONE

    def mended(self, candidate: Candidate, source: str, *, is_cut: bool = False) -> tuple[ScoredText, set[Flag]]:
        """Return a candidate with the strings that it lacks, and what is to be said about it."""
        best, flags = candidate.best, set[Flag]()
        if candidate.is_repaired:
            flags.add("mended")
        if not candidate.is_finished:
            flags.add("output-cut")
        if candidate.fault is Fault.NONE:
            return best, flags
        if candidate.fault is Fault.HAS_NO_WORD:
            return ScoredText("", best.score), flags | {"untranslated"}
        if candidate.fault is Fault.REPEATS:
            flags.add("repeated")
        if is_cut:
            return best, flags
        text = self._mended(source, best.text)
        if text != best.text:
            flags.add("mended")
        if self._lost(source, text):
            flags.add("lost")
        return ScoredText(text, best.score), flags

    def _lost(self, source: str, target: str) -> tuple[str, ...]:
        if not _DIGIT.search(source) and not has_verbatim(source):
            return ()  # most sentences, in a tenth of the time
        rules = self.rules
        return lost_strings(
            source, target, src_language=rules.src_language, tgt_language=rules.tgt_language, may_lack=rules.unmasked
        )

    def _mended(self, source: str, target: str) -> str:
        rules = self.rules
        return mend(
            source, target, src_language=rules.src_language, tgt_language=rules.tgt_language, may_lack=rules.unmasked
        )


def is_repetitive(source: str, target: str) -> bool:
    """Whether a translation repeats words, or parts of one, side by side more often than its source: a model's loop.

    >>> is_repetitive("behind", "derrière " * 4), is_repetitive("No, no, no, no!", "Nein, nein, nein, nein!")
    (True, False)
    """
    words = _WORD.findall(target.lower())
    n_times = _repeats(words)
    if n_times > 1:
        source_words = _WORD.findall(source.lower())
        if n_times > max(min(MAX_TIMES, len(source_words)), _repeats(source_words)):
            return True
    return any(map(_has_loop, words)) and not any(map(_has_loop, _WORD.findall(source.lower())))


def _repeats(words: Sequence[str]) -> int:
    """Return how many times the same two to ``MAX_PERIOD`` words stand side by side; of one word, one time less.

    Signs of scripts without spaces, such as Chinese, may stand more often.
    """
    if max(Counter(words).values(), default=0) <= MAX_TIMES:
        return 1
    most = 1
    for period in range(1, min(MAX_PERIOD, len(words) // MAX_TIMES) + 1):
        n_equal = 0
        for word, later in zip(words, words[period:], strict=False):
            n_equal = n_equal + 1 if word == later else 0
            n_times = n_equal // period + 1
            most = max(most, n_times if period > 1 else n_times // 2 if _IS_SIGN.fullmatch(word) else n_times - 1)
    return most


def _has_loop(word: str) -> bool:
    """Whether letters of a word are repeated.

    >>> _has_loop("lalalalala"), _has_loop("mississippi")
    (True, False)
    """
    may_have = len(word) >= MIN_LOOP_LETTERS and 2 * len(set(word)) <= len(word)
    return may_have and _LOOP_IN_WORD.search(word) is not None
