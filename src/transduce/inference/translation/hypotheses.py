"""Which hypothesis of a search becomes the translation: one that keeps what it should, and neither is empty nor loops.

Search knows probabilities of tokens; here texts are compared with their sources.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

from transduce.inference.translation.parts import Flag, ScoredText
from transduce.inference.translation.word_loops import is_repetitive, without_loops
from transduce.patterns import compiled_on_use
from transduce.terms import Terms
from transduce.text import MaskRules, lost_strings, mend
from transduce.text.verbatim import has_verbatim

__all__ = ["Candidate", "Fault", "HypothesisCheck", "best_candidates"]

_DIGIT = compiled_on_use(r"\d")


class Fault(IntEnum):
    """What is wrong with a hypothesis; the worst is the greatest."""

    NONE = 0
    LACKS_TERMS = 1  # or has a phrase that is to be avoided
    LACKS_STRINGS = 2  # numbers, URLs, placeholders ...
    REPEATS = 3
    HAS_NO_WORD = 4


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
    terms: Terms = field(default_factory=Terms)

    def fault(self, source: str, target: str, *, is_cut: bool = False) -> Fault:
        """Return the worst fault of a translation of a source with words; ``is_cut``: its end was not read."""
        if not any(map(str.isalnum, target)):
            return Fault.HAS_NO_WORD
        if is_repetitive(source, target):
            return Fault.REPEATS
        if not is_cut and self._lost(source, target):
            return Fault.LACKS_STRINGS
        return Fault.NONE if self.terms.are_kept(source, target) else Fault.LACKS_TERMS

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
        text = best.text
        if not self.terms.are_kept(source, text):
            flags.add("terms")
        if candidate.fault is Fault.REPEATS:
            flags.add("repeated")
            text = without_loops(source, text)
        if is_cut:
            return ScoredText(text, best.score), flags
        mended = self._mended(source, text)
        if mended != text:
            flags.add("mended")
            text = mended
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
        """Return a translation with the strings that it lacks, apart from each other rather than as a loop."""
        mended = self._with_strings(source, target, in_order=True)
        if not is_repetitive(source, mended):
            return mended
        apart = without_loops(source, self._with_strings(source, target, in_order=False))
        return mended if self._lost(source, apart) else apart

    def _with_strings(self, source: str, target: str, *, in_order: bool) -> str:
        rules = self.rules
        return mend(
            source,
            target,
            src_language=rules.src_language,
            tgt_language=rules.tgt_language,
            may_lack=rules.unmasked,
            in_order=in_order,
        )
