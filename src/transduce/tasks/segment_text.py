"""A segment as the model reads it, and what the model writes as text.

Before translation, strings that are copied become masks and capitals small letters; after it, they come back. Of the
hypotheses, the best without a fault is the translation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from transduce.errors import DataError, quoted
from transduce.search import Hypothesis
from transduce.tasks.batch_search import SearchResult
from transduce.tasks.hypotheses import Candidate, Fault, HypothesisCheck, best_candidates
from transduce.tasks.line_statistics import MIN_RATIO_TOKENS, LineStatistics
from transduce.tasks.prefixes import Prefix
from transduce.tasks.translation_parts import Flag, ScoredText, TranslatedSegment, different, in_order
from transduce.text import EOS_ID, MaskedText, Tokenizers, is_all_caps, mask, normalise, to_sentence_case, unmask
from transduce.text.tokenizer import REPLACEMENT

__all__ = ["ForcedIds", "ReadSegment", "SegmentText"]

# Longer segments are truncated: even when masked, they have more tokens than any model reads.
MAX_SEGMENT_CHARACTERS = 20_000
MIN_CAPS_FRACTION = 0.02  # input in capitals is lowercased if a smaller fraction of the training lines is in capitals

ForcedIds = tuple[list[int], bool]  # the ids of a prefix; whether it ends with a complete word


@dataclass(frozen=True, slots=True)
class ReadSegment:
    """A segment, and how the model reads it."""

    text: str
    masked: MaskedText
    is_caps: bool  # it was in capitals: the translation is uppercased
    is_truncated: bool  # it was longer than MAX_SEGMENT_CHARACTERS


class SegmentText:
    """Converts between the text of segments and that of a model with the given vocabularies and training text."""

    def __init__(
        self, tokenizers: Tokenizers, *, src_language: str, tgt_language: str, statistics: LineStatistics | None
    ) -> None:
        self.tokenizers, self.statistics = tokenizers, statistics
        self.src_language, self.tgt_language = src_language, tgt_language
        self._check = HypothesisCheck(src_language, tgt_language)

    @property
    def lowers_caps(self) -> bool:
        """Whether hardly any training line was in capitals."""
        return self.statistics is None or self.statistics.caps < MIN_CAPS_FRACTION

    def read(self, text: str, *, lowers_caps: bool) -> ReadSegment:
        """Return a segment as the model reads it."""
        text, is_truncated = _truncate(text)
        masked = mask(text) if self.tokenizers.src.has_masks else MaskedText(text, {})
        is_caps = lowers_caps and self.lowers_caps and is_all_caps(masked.text)
        if is_caps:
            masked = replace(masked, text=to_sentence_case(masked.text, self.src_language))
        return ReadSegment(text, masked, is_caps, is_truncated)

    def prefix_ids(self, prefix: Prefix, source: ReadSegment, *, max_tokens: int) -> ForcedIds:
        """Return the ids of a prefix as the model writes it, and whether it ends with a complete word.

        Raises DataError for a longer one.
        """
        given = prefix.text
        for mask_token, original in source.masked.originals.items():
            given = given.replace(original, mask_token)
        if source.is_caps and is_all_caps(given):
            given = to_sentence_case(given, self.tgt_language)
        text, tokenizer = normalise(given), self.tokenizers.tgt
        ids = tokenizer.encode(text, max_tokens=max_tokens) if text else []
        is_complete = text != "" and given[-1].isspace() and not prefix.is_whole
        if is_complete and tokenizer.space_id is not None:  # a space is a token of its own
            ids, is_complete = [*ids, tokenizer.space_id], False
        if len(ids) > max_tokens:
            raise DataError(f"a prefix has more than {max_tokens:,} tokens; shorten it: {quoted(text[:50])}")
        return [*ids, EOS_ID] if text and prefix.is_whole else ids, is_complete

    def candidates(
        self, sources: Sequence[ReadSegment], results: Sequence[SearchResult], *, is_checked: bool
    ) -> list[list[Candidate]]:
        """Return the hypotheses of each segment as text, with their faults if they are checked."""
        texts = iter(self.tokenizers.tgt.decode_batch(each.ids for result in results for each in result.hypotheses))
        return [
            [
                self._candidate(source, next(texts), each, is_checked=is_checked and not _is_cut(source, result))
                for each in result.hypotheses
            ]
            for source, result in zip(sources, results, strict=True)
        ]

    def _candidate(self, source: ReadSegment, text: str, hypothesis: Hypothesis, *, is_checked: bool) -> Candidate:
        text = normalise((text.upper() if source.is_caps else text).replace(REPLACEMENT, ""))
        text, has_all_masks = unmask(text, source.masked) if self.tokenizers.tgt.has_masks else (text, True)
        fault = self._check.fault(source.text, text) if is_checked else Fault.NONE
        return Candidate(
            ScoredText(text, hypothesis.score),
            fault if has_all_masks else max(fault, Fault.LACKS_STRINGS),
            is_repaired=not has_all_masks,
            is_finished=hypothesis.is_finished,
        )

    def chosen(
        self, source: ReadSegment, result: SearchResult, candidates: Iterable[Candidate], *, n_best: int
    ) -> TranslatedSegment:
        """Return the best translations of a segment, mended if need be."""
        best = [self._check.mended(each, source.text) for each in best_candidates(candidates)[:n_best]]
        if not best:
            return TranslatedSegment((ScoredText("", 0.0),))
        flags = best[0][1] | self._flags_of_lengths(result)
        if _is_cut(source, result):
            flags.add("source-cut")
        return TranslatedSegment(different(text for text, _ in best), in_order(flags))

    def _flags_of_lengths(self, result: SearchResult) -> set[Flag]:
        flags, statistics = set[Flag](), self.statistics
        if statistics is None:
            return flags
        n_src, n_tgt = result.n_src_tokens, len(result.hypotheses[0].ids) + 1
        if n_src > statistics.longest:
            flags.add("long")
        if n_src >= MIN_RATIO_TOKENS and n_tgt < statistics.least_ratio * n_src:
            flags.add("short")
        return flags


def _is_cut(source: ReadSegment, result: SearchResult) -> bool:
    """Whether the model did not read the end of a segment."""
    return source.is_truncated or result.is_truncated


def _truncate(text: str) -> tuple[str, bool]:
    """Truncate a segment; return whether it was. A long one is normalised first, so that runs of spaces count once."""
    if len(text) <= MAX_SEGMENT_CHARACTERS:
        return text, False
    text = normalise(text)
    return text[:MAX_SEGMENT_CHARACTERS], len(text) > MAX_SEGMENT_CHARACTERS
