"""Texts to translations, the same for the command line, Python, bulk translation and the server.

``TextTranslation`` divides texts into sentences and puts the translations of the sentences together. It knows no model:
its caller passes the results from step to step.

    work = TextTranslation(divider(["One. <b>Two</b>."], rules=html_rules()), tgt_language="de")
    translated = [...]  # of each of work.sentences
    aligned = [...]  # of each of work.pairs(translated), mostly none
    [translation] = work.put_together(translated, aligned)

Shapes: X target words, Y source words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from transduce.imports import numpy as np
from transduce.inference.translation.parts import (
    Flag,
    ScoredText,
    TranslatedSegment,
    Translation,
    best_combinations,
    distinct_texts,
    in_order,
)
from transduce.inference.translation.text_division import DividedText, DividedUnit, Sentence
from transduce.inference.translation.word_links import Link, word_links
from transduce.text import spaces_between, word_spans
from transduce.text.markup import Span
from transduce.text.pieces import Piece, marked, pieces_of_marked

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Pair", "TextTranslation", "WordWeights"]

MAX_CELLS = 1 << 21  # of the weights between the words of a unit; a longer one is placed by sentences
MAX_SENTENCES_APART = 1000  # of such a unit; more are taken together

Pair = tuple[str, str]  # a sentence and its translation


class WordWeights(Protocol):
    """How much each word of a translation belongs to each word of its source, and how probable it is."""

    @property
    def weights_XY(self) -> NDArray[np.float32]:
        """Rows sum to 1."""

    @property
    def word_log_probs(self) -> Sequence[tuple[str, float]]:
        """The words of the translation, and their log-probabilities in nats."""


_Weights = Mapping[Pair, WordWeights]


class TextTranslation:
    """What a model has to do for some texts, and the result."""

    def __init__(self, texts: Sequence[DividedText], *, tgt_language: str, is_linked: bool = False) -> None:
        """``is_linked``: the result has the links between words, their probabilities, and tags apart from words."""
        self._texts, self._tgt_language, self._is_linked = texts, tgt_language, is_linked
        sentences = chain.from_iterable(text.sentences for text in texts)
        self.sentences: list[Sentence] = list(dict.fromkeys(sentences))  # each once

    def pairs(self, translated: Sequence[TranslatedSegment]) -> list[Pair]:
        """Return the sentences and translations whose words are to be aligned, given those of ``sentences``."""
        results = dict(zip(self.sentences, translated, strict=True))
        pairs = (
            (segment.text, best.text)
            for text in self._texts
            for unit in text.units
            if unit.unit.nodes or self._is_linked
            for segment, sentence in zip(unit.segments, unit.sentences, strict=True)
            if sentence is not None
            for best in results[sentence].n_best
        )
        return list(dict.fromkeys((source, target) for source, target in pairs if source != target))

    def put_together(
        self, translated: Sequence[TranslatedSegment], aligned: Sequence[WordWeights], *, n_best: int = 1
    ) -> list[Translation]:
        """Return the translations of the texts, given those of ``sentences`` and the alignments of ``pairs``."""
        results = dict(zip(self.sentences, translated, strict=True))
        weights = dict(zip(self.pairs(translated), aligned, strict=True))
        return [self._translation(text, results, weights, n_best) for text in self._texts]

    def _translation(
        self, text: DividedText, results: Mapping[Sentence, TranslatedSegment], weights: _Weights, n_best: int
    ) -> Translation:
        translated = [results[each] for each in text.sentences]
        flags: list[Flag] = [*chain.from_iterable(each.warnings for each in translated)]
        if text.is_cut:
            flags.append("source-cut")
        choices = best_combinations([each.n_best for each in translated], n_best)
        written = [self._version(text, choice, weights) for choice in choices]
        if written[0][1]:
            flags.append("guessed")
        versions = distinct_texts(
            ScoredText(version, sum((each.score for each in choice), start=0.0))
            for (version, _), choice in zip(written, choices, strict=True)
        )
        n_segments = sum(len(unit.segments) for unit in text.units)
        translation = Translation(text.source, versions, in_order(flags), max(1, n_segments))
        if not self._is_linked:
            return translation
        pairs = self._chosen_pairs(text, choices[0])
        return replace(
            translation,
            links=self._links(text, versions[0].text, pairs, weights),
            words=tuple(chain.from_iterable(weights[pair].word_log_probs for pair in pairs if pair in weights)),
            pieces=self._pieces(text, choices[0], weights),
        )

    def _chosen_pairs(self, text: DividedText, choice: Sequence[ScoredText]) -> list[Pair]:
        """Return the segments of a text with their translations."""
        chosen = iter(choice)
        return [
            (segment.text, written)
            for unit in text.units
            for segment, written in zip(unit.segments, _targets(unit, chosen), strict=True)
        ]

    def _links(self, text: DividedText, target: str, pairs: Sequence[Pair], weights: _Weights) -> tuple[Link, ...]:
        """Return the links of a text and one of its translations; none where tags stand within a sentence."""
        sources, targets = [source for source, _ in pairs], [written for _, written in pairs]
        places = zip(pairs, _places(text.source, sources), _places(target, targets), strict=True)
        blocks = []
        for pair, in_source, in_target in places:
            if min(in_source[0], in_target[0]) >= 0:
                words = (_shifted(word_spans(pair[0]), in_source), _shifted(word_spans(pair[1]), in_target))
                blocks.append((*words, _block(pair, (len(words[1]), len(words[0])), weights)))
        return word_links(text.source, target, blocks)

    def _pieces(self, text: DividedText, choice: Sequence[ScoredText], weights: _Weights) -> tuple[Piece, ...]:
        """Return a version of a text that is a unit of a document, its words and tags apart; () for others."""
        part = text.parts[0] if len(text.parts) == 1 else ""
        if isinstance(part, str):
            return ()
        unit = replace(part.unit, escape=marked, before="", after="")
        rendered, _ = self._unit(replace(part, unit=unit), _targets(part, iter(choice)), weights)
        return pieces_of_marked(unit, rendered)

    def _version(self, text: DividedText, choice: Sequence[ScoredText], weights: _Weights) -> tuple[str, int]:
        """Return one of the translations of a text, from those of its sentences; and how many tags are guessed."""
        chosen = iter(choice)
        written = [
            (part, 0) if isinstance(part, str) else self._unit(part, _targets(part, chosen), weights)
            for part in text.parts
        ]
        return "".join(part for part, _ in written), sum(n for _, n in written)

    def _unit(self, part: DividedUnit, targets: Sequence[str], weights: _Weights) -> tuple[str, int]:
        """Return the translation of a unit from those of its segments, and how many places of tags are guessed."""
        spaces = spaces_between(targets, part.segments, self._tgt_language)
        target = "".join(chain.from_iterable(zip(targets, spaces, strict=True)))
        if not part.unit.nodes:
            return part.unit.placed(target)
        sources = [segment.text for segment in part.segments]
        source_spans = _places(part.unit.text, sources)
        target_spans = _places(target, targets)
        source_words = [_shifted(word_spans(each), span) for each, span in zip(sources, source_spans, strict=True)]
        target_words = [_shifted(word_spans(each), span) for each, span in zip(targets, target_spans, strict=True)]
        n_source, n_target = (sum(map(len, words)) for words in (source_words, target_words))
        if n_source * n_target > MAX_CELLS:
            source_spans, target_spans = _grouped(source_spans), _grouped(target_spans)
            weights_XY = np.eye(len(target_spans), dtype=np.float32)
            return part.unit.placed(target, target_spans, weights_XY, source_words=source_spans)
        weights_XY = np.zeros((n_target, n_source), np.float32)
        row = column = 0
        for pair, of_source, of_target in zip(
            zip(sources, targets, strict=True), source_words, target_words, strict=True
        ):
            block_XY = weights_XY[row : row + len(of_target), column : column + len(of_source)]
            block_XY[:] = _block(pair, block_XY.shape, weights)
            row, column = row + len(of_target), column + len(of_source)
        return part.unit.placed(
            target, [*chain.from_iterable(target_words)], weights_XY, source_words=[*chain.from_iterable(source_words)]
        )


def _targets(part: DividedUnit, chosen: Iterator[ScoredText]) -> list[str]:
    """Return the translation of each segment; what is not translated, or has no translation, stays."""
    return [
        segment.text if sentence is None else next(chosen).text or segment.text
        for segment, sentence in zip(part.segments, part.sentences, strict=True)
    ]


def _places(text: str, pieces: Sequence[str]) -> list[Span]:
    """Return the (start, end) of pieces that follow each other in a text; (-1, -1) for one that is not there."""
    spans, position = list[Span](), 0
    for piece in pieces:
        start = text.find(piece, position)
        position = max(position, start + len(piece))
        spans.append((start, position) if start >= 0 else (-1, -1))
    return spans


def _shifted(words: Sequence[Span], span: Span) -> list[Span]:
    """Return the places of the words of a piece in the whole."""
    return [(start + span[0], end + span[0]) for start, end in words]


def _block(pair: Pair, shape: tuple[int, ...], weights: _Weights) -> NDArray[np.float32]:
    """Return the weights between the words of a sentence and of its translation."""
    if pair[0] == pair[1]:
        return np.eye(shape[0], dtype=np.float32)
    found = weights.get(pair)
    if found is None or found.weights_XY.shape != shape:
        return np.full(shape, 1 / max(1, shape[1]), np.float32)
    return found.weights_XY


def _grouped(spans: Sequence[Span]) -> list[Span]:
    """Return the places of groups of segments: at most ``MAX_SENTENCES_APART``, each up to the start of the next."""
    step = -(-len(spans) // MAX_SENTENCES_APART)
    starts = [start for start, _ in spans[::step]]
    return list(zip(starts, [*starts[1:], spans[-1][1]], strict=True))
