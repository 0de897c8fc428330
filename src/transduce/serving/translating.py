"""Texts to translations: lines and markup are divided into sentences, which are queued, and put together again.

Shapes: X target words, Y source words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from transduce.serving.models import AlignJob, ServedTranslator, TranslateJob
from transduce.tasks.translation_parts import TranslatedSegment
from transduce.tasks.word_alignment import AlignedSentence
from transduce.text import Segment, Tokenizers, word_spans
from transduce.text.markup import MarkupRules, Span, Unit, divide, plain_unit

__all__ = ["MAX_ALTERNATIVES", "Splitting", "TranslatedText", "translate_texts"]

MAX_ALTERNATIVES = 10
MAX_CELLS = 1 << 21  # of the weights between the words of a unit; a longer one is placed by sentences
MAX_SENTENCES_APART = 1000  # of such a unit; more are taken together
LONG = 2000  # characters, from which on text is divided and put together in another thread

# Where a text is divided: at line ends and sentences, at sentences only, or nowhere.
Splitting = Literal["lines", "sentences", "none"]


@dataclass(frozen=True, slots=True)
class TranslatedText:
    """The best translation of a text, and others that differ from it."""

    text: str
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Divided:
    """A unit and its sentences; none if it is not translated."""

    unit: Unit
    segments: tuple[Segment, ...]
    starts: tuple[int, ...]  # of the segments in the unit's text


async def translate_texts(
    served: ServedTranslator,
    texts: Sequence[str],
    *,
    rules: MarkupRules | None = None,
    splitting: Splitting = "lines",
    n_alternatives: int = 0,
    timeout_s: float,
) -> list[TranslatedText]:
    """Translate texts, with tags if there are ``rules``; spaces at the ends and empty lines stay.

    Raises as ``Served.ask``.
    """
    divided: list[list[str | _Divided]]
    is_long = sum(map(len, texts)) >= LONG
    if is_long:
        divided = await asyncio.to_thread(_divided_texts, served, texts, rules, splitting)
    else:
        divided = _divided_texts(served, texts, rules, splitting)
    units = [part for parts in divided for part in parts if isinstance(part, _Divided)]
    jobs = dict.fromkeys(
        TranslateJob(segment.text, n_best=1 + n_alternatives)
        for each in units
        for segment in each.segments
        if segment.text
    )
    translated: dict[TranslateJob, TranslatedSegment] = dict(
        zip(jobs, await served.ask(list(jobs), timeout_s=timeout_s), strict=True)
    )
    served.metrics.characters(sum(map(len, texts)))

    def candidates(segment: Segment) -> list[str]:
        """Return the different translations of a segment, best first."""
        if not segment.text:
            return [""]
        best = translated[TranslateJob(segment.text, n_best=1 + n_alternatives)].n_best
        return list(dict.fromkeys(each.text for each in best))

    pairs = dict.fromkeys(
        AlignJob(segment.text, target)
        for each in units
        if each.unit.nodes
        for segment in each.segments
        for target in candidates(segment)
        if segment.text and target
    )
    aligned: dict[AlignJob, AlignedSentence] = dict(
        zip(pairs, await served.ask(list(pairs), timeout_s=timeout_s), strict=True)
    )

    def version(parts: Sequence[str | _Divided], rank: int) -> str:
        """Return the translation of a text with the best, second-best, ... of each segment."""
        pieces = []
        for part in parts:
            if isinstance(part, str):
                pieces.append(part)
                continue
            options = [candidates(segment) for segment in part.segments]
            pieces.append(_put_together(part, [each[min(rank, len(each) - 1)] for each in options], aligned))
        return "".join(pieces)

    def put_together() -> list[TranslatedText]:
        results = []
        for parts in divided:
            versions = list(dict.fromkeys(version(parts, rank) for rank in range(1 + n_alternatives)))
            results.append(TranslatedText(versions[0], tuple(versions[1:])))
        return results

    return await asyncio.to_thread(put_together) if is_long else put_together()


def _divided_texts(
    served: ServedTranslator, texts: Sequence[str], rules: MarkupRules | None, splitting: Splitting
) -> list[list[str | _Divided]]:
    return [
        [_with_segments(served, part, splitting) for part in _parts(served, text, rules, splitting)] for text in texts
    ]


def _parts(served: ServedTranslator, text: str, rules: MarkupRules | None, splitting: Splitting) -> list[str | Unit]:
    """Divide a text into units and what stands between them."""
    is_protected = not _has_masks(served.model.tokenizers)
    if rules is not None:
        return divide(text, rules, is_protected=is_protected)
    lines = text.split("\n") if splitting == "lines" else [text]
    parts: list[str | Unit] = []
    for number, line in enumerate(lines):
        parts += ["\n"] * (number > 0)
        parts.append(plain_unit(line, is_protected=is_protected))
    return parts


def _has_masks(tokenizers: Tokenizers) -> bool:
    """Return whether the translator itself copies URLs and placeholders."""
    return tokenizers.src.has_masks and tokenizers.tgt.has_masks


def _with_segments(served: ServedTranslator, part: str | Unit, splitting: Splitting) -> str | _Divided:
    if isinstance(part, str):
        return part
    if not any(map(str.isalpha, part.text)):
        return part.raw
    segments = [Segment(part.text, "")] if splitting == "none" else served.model.split_line(part.text)
    starts, position = [], 0
    for segment in segments:
        position = part.text.find(segment.text, position)
        starts.append(position)
        position += len(segment.text)
    return _Divided(part, tuple(segments), tuple(starts))


def _put_together(part: _Divided, targets: Sequence[str], aligned: dict[AlignJob, AlignedSentence]) -> str:
    """Return the translation of a unit from those of its segments."""
    target, target_starts = "", []
    for segment, text in zip(part.segments, targets, strict=True):
        target_starts.append(len(target))
        target += text + (segment.space if text else "")
    target = target.rstrip()
    if not part.unit.nodes:
        return part.unit.put_back(target, (), np.zeros((0, 0), np.float32))
    blocks = [
        _block(part, number, start, text, aligned)
        for number, (start, text) in enumerate(zip(target_starts, targets, strict=True))
    ]
    n_source, n_target = (sum(len(each) for each in side) for side in zip(*((s, t) for s, t, _ in blocks), strict=True))
    if n_source * n_target > MAX_CELLS:
        return _put_together_by_sentences(part, target, target_starts)
    weights_XY = np.zeros((n_target, n_source), np.float32)
    row = column = 0
    for source_words, target_words, block in blocks:
        weights_XY[row : row + len(target_words), column : column + len(source_words)] = block
        row, column = row + len(target_words), column + len(source_words)
    return part.unit.put_back(
        target, [word for _, words, _ in blocks for word in words], weights_XY,
        source_words=[word for words, _, _ in blocks for word in words],
    )  # fmt: skip


def _block(
    part: _Divided, number: int, target_start: int, target: str, aligned: dict[AlignJob, AlignedSentence]
) -> tuple[list[Span], list[Span], NDArray[np.float32]]:
    """Return the source and target words of a segment, by their places in the unit, and the weights between them."""
    segment, source_start = part.segments[number], part.starts[number]
    source_words = [(start + source_start, end + source_start) for start, end in word_spans(segment.text)]
    target_words = [(start + target_start, end + target_start) for start, end in word_spans(target)]
    found = aligned.get(AlignJob(segment.text, target))
    shape = (len(target_words), len(source_words))
    if found is None or found.weights_XY.shape != shape:
        return source_words, target_words, np.full(shape, 1 / max(1, len(source_words)), np.float32)
    return source_words, target_words, found.weights_XY


def _put_together_by_sentences(part: _Divided, target: str, target_starts: Sequence[int]) -> str:
    """Return a very long unit, whose tags are placed between sentences, or between groups of them."""
    step = -(-len(part.segments) // MAX_SENTENCES_APART)
    source_starts, starts = part.starts[::step], target_starts[::step]
    source_ends = [*source_starts[1:], len(part.unit.text)]
    ends = [min(end, len(target)) for end in (*starts[1:], len(target))]
    source_spans, target_spans = (
        list(zip(source_starts, source_ends, strict=True)),
        list(zip(starts, ends, strict=True)),
    )
    target_spans = [(min(start, end), end) for start, end in target_spans]
    return part.unit.put_back(
        target, target_spans, np.eye(len(target_spans), dtype=np.float32), source_words=source_spans
    )
