"""A segment as the model reads it, and what the model writes as text.

Before translation, strings that are copied become masks and capitals small letters; after it, they come back. Of the
hypotheses, the best without a fault is the translation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from transduce.errors import DataError, quoted
from transduce.inference.text_search import SearchResult
from transduce.inference.translation.hypotheses import Candidate, Fault, HypothesisCheck, best_candidates
from transduce.inference.translation.line_statistics import MIN_RATIO_TOKENS, LineStatistics
from transduce.inference.translation.parts import Flag, ScoredText, TranslatedSegment, distinct_texts, in_order
from transduce.inference.translation.prefixes import Prefix
from transduce.patterns import compiled_on_use
from transduce.search import Hypothesis
from transduce.terms import Terms
from transduce.text import (
    EOS_ID,
    MaskedText,
    MaskRules,
    Tokenizers,
    is_all_caps,
    mask,
    normalise,
    to_capitals,
    to_sentence_case,
    unmask,
)
from transduce.text.normalise import visible
from transduce.text.quotes import QuoteStyle
from transduce.text.term_marks import strip_term_marks
from transduce.text.tokenizer import REPLACEMENT

__all__ = ["ForcedIds", "ReadSegment", "SegmentText"]

# Longer segments are truncated: even when masked, they have more tokens than any model reads.
MAX_SEGMENT_CHARACTERS = 20_000
MIN_CAPS_FRACTION = 0.02  # input in capitals is lowercased if a smaller fraction of the training lines is in capitals

MAX_SPACES = 100  # no-break and other special spaces of a segment that come back
_SPECIAL_SPACE = compiled_on_use(r"[^\S \t\n\r\x0b\x0c\x1c-\x1f\x85\u2028\u2029]+")

ForcedIds = tuple[list[int], bool]  # the ids of a prefix; whether it ends with a complete word


@dataclass(frozen=True, slots=True)
class ReadSegment:
    """A segment, and how the model reads it."""

    text: str
    masked: MaskedText
    asked: str  # what the model reads: the masked text, with the terms that it is told
    is_caps: bool  # it was in capitals: the translation is uppercased
    is_truncated: bool  # it was longer than MAX_SEGMENT_CHARACTERS


class SegmentText:
    """Converts between the text of segments and that of a model with the given vocabularies and training text."""

    def __init__(
        self,
        tokenizers: Tokenizers,
        rules: MaskRules,
        statistics: LineStatistics | None,
        terms: Terms | None = None,
        *,
        told: Terms | None = None,
    ) -> None:
        """``rules`` name the languages, and what is not masked; ``terms``: hypotheses that keep them come first.

        ``told``: terms that a model with term marks reads beside the words.
        """
        self._told = told
        self.tokenizers, self.rules, self.statistics = tokenizers, rules, statistics
        self._check = HypothesisCheck(rules, terms or Terms())

    def with_terms(self, terms: Terms, *, are_required: bool) -> SegmentText:
        """Return the same with terms: a model with term marks is told them, and hypotheses need not have them."""
        is_told = self.tokenizers.src.has_term_marks
        checked = Terms(avoided=terms.avoided) if is_told and not are_required else terms
        return SegmentText(self.tokenizers, self.rules, self.statistics, checked, told=terms if is_told else None)

    @property
    def lowers_caps(self) -> bool:
        """Whether hardly any training line was in capitals."""
        return self.statistics is None or self.statistics.caps < MIN_CAPS_FRACTION

    @cached_property
    def _quotes(self) -> QuoteStyle:
        """The apostrophes and quotation marks that the model knows."""
        known = None if self.statistics is None else self.statistics.quotes
        return QuoteStyle.of_vocabulary(self.tokenizers.src.vocabulary) if known is None else QuoteStyle(*known)

    def read(self, text: str, *, lowers_caps: bool) -> ReadSegment:
        """Return a segment as the model reads it."""
        text, is_truncated = _truncate(visible(text))
        if self.tokenizers.src.has_term_marks:
            text = strip_term_marks(text)
        masked = mask(text, self.rules) if self.tokenizers.src.has_masks else MaskedText(text, {})
        masked = replace(masked, text=self._quotes.apply(masked.text))
        is_caps = lowers_caps and self.lowers_caps and is_all_caps(masked.text)
        if is_caps:
            masked = replace(masked, text=to_sentence_case(masked.text, self.rules.src_language))
        asked = masked.text if self._told is None else self._told.hinted(normalise(masked.text))
        return ReadSegment(text, masked, asked, is_caps, is_truncated)

    def as_read(self, source: str, target: str) -> tuple[str, str]:
        """Return a source and its translation, both masked, as the model reads and writes them; their lengths stay."""
        source = self._quotes.apply(source)
        if not self.lowers_caps or not is_all_caps(source):
            return source, target
        source = _lowered(source, self.rules.src_language)
        is_caps = target == to_capitals(target, self.rules.tgt_language)
        return source, _lowered(target, self.rules.tgt_language) if is_caps else target

    def prefix_ids(self, prefix: Prefix, source: ReadSegment, *, max_tokens: int) -> ForcedIds:
        """Return the ids of a prefix as the model writes it, and whether it ends with a complete word.

        Raises DataError for a longer one.
        """
        given, tokenizer = self._masked(prefix.text, source), self.tokenizers.tgt
        if source.is_caps and is_all_caps(given):
            given = to_sentence_case(given, self.rules.tgt_language)
        text = normalise(given)
        ids = tokenizer.encode(text, max_tokens=max_tokens) if text else []
        is_complete = text != "" and given[-1].isspace() and not prefix.is_whole
        if is_complete and tokenizer.space_id is not None:  # a space is a token of its own
            ids, is_complete = [*ids, tokenizer.space_id], False
        if len(ids) > max_tokens:
            raise DataError(f"a prefix has more than {max_tokens:,} tokens; shorten it: {quoted(text[:50])}")
        return [*ids, EOS_ID] if text and prefix.is_whole else ids, is_complete

    def phrase_ids(self, phrase: str, source: ReadSegment) -> tuple[int, ...]:
        """Return the ids of a phrase inside a translation, as the model writes it."""
        return tuple(self.tokenizers.tgt.encode(normalise(self._masked(phrase, source))))

    @staticmethod
    def _masked(text: str, source: ReadSegment) -> str:
        """Return a text of the target with masks in place of what is masked in the source."""
        for mask_token in source.masked.originals:
            text = text.replace(source.masked.in_target(mask_token), mask_token)
        return text

    def candidates(
        self, sources: Sequence[ReadSegment], results: Sequence[SearchResult], *, is_checked: bool
    ) -> list[list[Candidate]]:
        """Return the hypotheses of each segment as text, with their faults if they are checked."""
        texts = iter(self.tokenizers.tgt.decode_batch(each.ids for result in results for each in result.hypotheses))
        return [
            [
                self._candidate(source, next(texts), each, is_checked=is_checked, is_cut=_is_cut(source, result))
                for each in result.hypotheses
            ]
            for source, result in zip(sources, results, strict=True)
        ]

    def _candidate(
        self, source: ReadSegment, text: str, hypothesis: Hypothesis, *, is_checked: bool, is_cut: bool
    ) -> Candidate:
        written = text.replace(REPLACEMENT, "")
        written = normalise(to_capitals(written, self.rules.tgt_language) if source.is_caps else written)
        text, has_all_masks = unmask(written, source.masked) if self.tokenizers.tgt.has_masks else (written, True)
        text = _with_spaces_of(source.text, text)
        fault = Fault.NONE if has_all_masks else Fault.LACKS_STRINGS
        if is_checked:
            has_word = any(map(str.isalnum, written)) or not any(map(str.isalpha, source.masked.text))
            found = self._check.fault(source.text, text, is_cut=is_cut) if has_word else Fault.HAS_NO_WORD
            fault = max(fault, found)
        return Candidate(
            ScoredText(text, hypothesis.score), fault, is_repaired=not has_all_masks, is_finished=hypothesis.is_finished
        )

    def chosen(
        self, source: ReadSegment, result: SearchResult, candidates: Iterable[Candidate], *, n_best: int
    ) -> TranslatedSegment:
        """Return the best translations of a segment, mended if need be."""
        is_cut = _is_cut(source, result)
        best = [self._check.mended(each, source.text, is_cut=is_cut) for each in best_candidates(candidates)[:n_best]]
        if not best:
            return TranslatedSegment((ScoredText("", 0.0),))
        n_tgt = len(result.hypotheses[0].ids) + 1
        mean_log_prob = result.hypotheses[0].log_prob / n_tgt
        flags = best[0][1] | self._flags_by_statistics(source, result.n_src_tokens, n_tgt, mean_log_prob)
        if is_cut:
            flags.add("source-cut")
        return TranslatedSegment(distinct_texts(text for text, _ in best), in_order(flags), mean_log_prob)

    def _flags_by_statistics(self, source: ReadSegment, n_src: int, n_tgt: int, mean_log_prob: float) -> set[Flag]:
        """Return what is unusual: the numbers of tokens, EOS included, the words, or how sure the model is."""
        flags, statistics = set[Flag](), self.statistics
        if statistics is None:
            return flags
        if n_src > statistics.longest:
            flags.add("long")
        if n_src >= MIN_RATIO_TOKENS and n_tgt < statistics.least_ratio * n_src:
            flags.add("short")
        if statistics.is_unlike(source.asked, n_src - 1, mean_log_prob):
            flags.add("unlike")
        return flags


def _lowered(text: str, language: str) -> str:
    """Return a text in capitals as a sentence, unless that is longer."""
    lowered = to_sentence_case(text, language)
    return lowered if len(lowered) == len(text) else text


def _is_cut(source: ReadSegment, result: SearchResult) -> bool:
    """Whether the model did not read the end of a segment."""
    return source.is_truncated or result.is_truncated


def _with_spaces_of(source: str, target: str) -> str:
    """Return ``target`` with the no-break and other special spaces of ``source`` between strings that both have.

    >>> _with_spaces_of("about 10\u00a0000 dogs", "etwa 10 000 Hunde") == "etwa 10\u00a0000 Hunde"
    True
    """
    for match in islice(_SPECIAL_SPACE.finditer(source), MAX_SPACES):
        before, after = source[: match.start()].rsplit(maxsplit=1)[-1:], source[match.end() :].split(maxsplit=1)[:1]
        target = target.replace(" ".join((*before, *after)), match[0].join((*before, *after)))
    return target


def _truncate(text: str) -> tuple[str, bool]:
    """Truncate a segment; return whether it was. A long one is normalised first, so that runs of spaces count once."""
    if len(text) <= MAX_SEGMENT_CHARACTERS:
        return text, False
    text = normalise(text)
    return text[:MAX_SEGMENT_CHARACTERS], len(text) > MAX_SEGMENT_CHARACTERS
