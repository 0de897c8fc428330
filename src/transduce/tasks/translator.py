"""A trained model as a translator: lines in, one translation out for each, in order.

A line is cut into segments, most often its sentences; what is left as it is in each is masked; the segments of many
lines are searched together; and what was found is put together again as the line was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypedDict, Unpack, overload

import torch

from transduce.config import GreedySearchConfig, InferencePrecision, SearchConfig, config_from_mapping
from transduce.errors import CheckpointError, ConfigError, DataError, quoted
from transduce.files import LONGEST_LINE
from transduce.model import EncoderDecoder
from transduce.tasks.batch_search import BatchSearch, SearchResult, require_several
from transduce.tasks.devices import usable_device
from transduce.tasks.line_statistics import LEAST_TOKENS, LineStatistics
from transduce.tasks.model_folder import read_model_folder
from transduce.tasks.progress import Progress, shown_progress
from transduce.tasks.segmentation import Segmenter
from transduce.tasks.translation_parts import ScoredText, TranslatedSegment, Translation, put_together
from transduce.text import MaskedText, Segment, Tokenizers, is_all_caps, mask, normalise, to_sentence_case, unmask
from transduce.text.chunks import chunks

__all__ = ["CHUNK_LINES", "ScoredText", "Translation", "Translator", "search_with"]

# Lines read before the first is translated: enough to find sentences of equal length, few enough for a stream.
CHUNK_LINES = 2000
CHUNK_LINES_WITH_PROGRESS = 200
# Characters of a segment that are looked at. With more it has more tokens than any model reads, whatever is masked.
LONGEST_SEGMENT = 20_000
FAMILIAR_CAPS = 0.02  # share of lines in capitals from which on a model is taken to have learned them

# For some texts, what was found of each, and the way to search: the n best of each.
Choose = Callable[[Sequence[str], Sequence[TranslatedSegment], SearchConfig], Sequence[TranslatedSegment]]


@dataclass(frozen=True, slots=True)
class _Input:
    """A segment as the model reads it."""

    masked: MaskedText
    is_caps: bool  # it was in capitals, and its translation shall be
    is_truncated: bool  # it was too long to be looked at whole


class _Options(TypedDict, total=False):
    """Of ``Translator.translate``, whatever it returns."""

    beam_size: int | None
    alpha: float | None
    max_tokens_per_batch: int | None
    search: SearchConfig | None
    split: bool
    progress: bool | Progress


class Translator:
    """Translates raw text with a model, its tokenizers and a way to search.

    ``Translator.load(folder).translate(["..."])`` is all that most users need. With ``precision="bf16"`` or ``"int8"``
    (on CPUs) products with weights are in that type: faster where a processor has them, and now and then another word.
    The translator takes the weights as they are when it is made, and several threads may use it. With ``others``,
    models over the same vocabularies, all write each translation together. ``statistics`` tells which lines are like
    the training text; without, every sentence is translated by itself.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        tokenizers: Tokenizers,
        search: SearchConfig,
        *,
        direction: str,
        precision: InferencePrecision = "fp32",
        others: Sequence[EncoderDecoder] = (),
        statistics: LineStatistics | None = None,
    ) -> None:
        self.model, self.tokenizers, self.search, self.statistics = model, tokenizers, search, statistics
        self.precision = precision
        self._search_all = BatchSearch((model, *others), tokenizers.src, precision=precision)
        self._n_models = 1 + len(others)
        self.src_language, self.tgt_language = direction.split("-")
        self._segments = Segmenter(
            self.src_language, statistics, self._n_tokens, max_tokens=self._search_all.max_source_tokens
        )

    def __repr__(self) -> str:
        cost = sum(weight.numel() for weight in self.model.parameters())
        config, device = self.model.config, self.model.output_weight.device
        together = f", {self._n_models} models together" if self._n_models > 1 else ""
        return (
            f"Translator({self.src_language}-{self.tgt_language}, {config.n_encoder_layers} + "
            f"{config.n_decoder_layers} layers of {config.d_model}, {cost / 1e6:.1f} million parameters{together}, "
            f"beam {self.search.beam_size}, {self.precision} on {device})"
        )

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *others: str | Path,
        device: str | torch.device = "cpu",
        precision: InferencePrecision = "fp32",
    ) -> Translator:
        """From a model folder; or several, which write together and search as the first one does.

        Raises CheckpointError if one cannot be used or has other vocabularies than the first, ConfigError if there is
        no such device or it has no products of that precision.
        """
        device = usable_device(device)
        first, *more = (read_model_folder(Path(each), device=device) for each in (folder, *others))
        for place, read in zip((folder, *others), (first, *more), strict=True):
            read.require_task("translation", Path(place))
        for place, read in zip(others, more, strict=True):
            if (read.tokenizers.fingerprint, read.direction) != (first.tokenizers.fingerprint, first.direction):
                raise CheckpointError(
                    f"{place} has other tokenizers or another direction than {folder}; models that write together are "
                    "trained from one prepared folder (train --store)"
                )
        return cls(
            first.model,
            first.tokenizers,
            first.search,
            direction=first.direction,
            precision=precision,
            others=[read.model for read in more],
            statistics=first.statistics,
        )

    @overload
    def translate(self, texts: Sequence[str], *, n_best: None = None, **options: Unpack[_Options]) -> list[str]: ...

    @overload
    def translate(self, texts: Sequence[str], *, n_best: int, **options: Unpack[_Options]) -> list[list[str]]: ...

    def translate(
        self,
        texts: Sequence[str],
        *,
        n_best: int | None = None,
        beam_size: int | None = None,
        alpha: float | None = None,
        max_tokens_per_batch: int | None = None,
        search: SearchConfig | None = None,
        split: bool = True,
        progress: bool | Progress = False,
    ) -> list[str] | list[list[str]]:
        """The best translation of each text, or with ``n_best`` the list of the best of each.

        ``n_best``, ``beam_size``, ``alpha`` and ``max_tokens_per_batch`` change the model's own way to search, or
        ``search``. Texts of several sentences are translated a sentence at a time, and the spacing between them stays;
        with ``split=False`` a text is taken as one sentence. ``progress=True`` shows a bar on stderr; or it is a
        function that is told how many texts are done, and of how many.
        Raises TypeError for what is no list of strings, naming the item, and ConfigError for a search that cannot be.
        """
        require_several(texts, "translate takes a list of texts", "for one text, translate([text])[0]")
        texts = list(texts)
        for _ in _strings(texts):  # before the first is translated
            pass
        way = search_with(
            search or self.search,
            n_best=n_best,
            beam_size=beam_size,
            alpha=alpha,
            max_tokens_per_batch=max_tokens_per_batch,
        )
        chunk_lines = CHUNK_LINES_WITH_PROGRESS if progress else CHUNK_LINES
        found: list[Translation] = []
        with shown_progress(progress, len(texts)) as told:
            for translation in self.translate_lines(texts, search=way, chunk_lines=chunk_lines, split=split):
                found.append(translation)
                told(len(found), len(texts))
        if n_best is None:
            return [translation.text for translation in found]
        return [[each.text for each in translation.n_best] for translation in found]

    def translate_iter(
        self,
        texts: Iterable[str],
        *,
        beam_size: int | None = None,
        alpha: float | None = None,
        max_tokens_per_batch: int | None = None,
        search: SearchConfig | None = None,
        split: bool = True,
        chunk_lines: int = CHUNK_LINES,
    ) -> Iterator[str]:
        """A stream of texts to a stream of their best translations, in order.

        ``chunk_lines`` are read before the first is translated: more is faster, 1 answers each at once. The rest is as
        in ``translate``.
        """
        require_several(texts, "translate_iter takes a stream of texts", "for one text, translate([text])[0]")
        way = search_with(
            search or self.search, beam_size=beam_size, alpha=alpha, max_tokens_per_batch=max_tokens_per_batch
        )
        lines = self.translate_lines(_strings(texts), search=way, chunk_lines=chunk_lines, split=split)
        return (translation.text for translation in lines)

    def translate_unless(self, should_stop: Callable[[], bool], texts: Sequence[str]) -> list[str] | None:
        """Translations of texts as they are; None if ``should_stop``, which is asked before each search, says so."""
        segments = self.translate_segments(texts, self.search, should_stop=should_stop)
        return None if segments is None else [each.n_best[0].text for each in segments]

    def translate_lines(
        self,
        lines: Iterable[str],
        *,
        search: SearchConfig | None = None,
        chunk_lines: int = CHUNK_LINES,
        split: bool = True,
        choose: Choose | None = None,
    ) -> Iterator[Translation]:
        """A stream of lines to a stream of translations, one for each line, in order; blank lines stay blank.

        A chunk is less than ``chunk_lines`` where lines are long; of a line beyond ``LONGEST_LINE`` the end is cut off.
        ``choose`` takes segments with all of their beams, and gives the n best of each.
        """
        if not isinstance(chunk_lines, int) or chunk_lines < 1:
            raise ConfigError(f"chunk_lines should be at least 1, got {quoted(chunk_lines)}")
        way = search or self.search
        own_way = way if choose is None else search_with(way, n_best=way.beam_size)

        def translated(chunk: Sequence[str]) -> Iterator[Translation]:
            read = [line[:LONGEST_LINE] for line in chunk]
            segments_of = self._segments(read) if split else [[Segment(line, "")] for line in read]
            texts = [each.text for each in chain.from_iterable(segments_of)]
            found = self.translate_segments(texts, own_way, lowers_caps=split)
            assert found is not None  # nobody asks to stop
            chosen = iter(found if choose is None else choose(texts, found, way))
            for line, segments in zip(chunk, segments_of, strict=True):
                parts = list(islice(chosen, len(segments)))
                yield put_together(line, segments, parts, way.n_best, is_truncated=len(line) > LONGEST_LINE)

        return chain.from_iterable(map(translated, chunks(lines, chunk_lines, len)))

    @property
    def max_source_tokens(self) -> int:
        """The longest source that is not cut, its end symbol included."""
        return self._search_all.max_source_tokens

    def source_ids(self, text: str) -> list[int]:
        """What the model reads for a text, without the end symbol. Raises DataError if that is nothing."""
        ids = self._search_all.source_ids([text])[0][: self.max_source_tokens - 1]
        if not ids:
            raise DataError("there is no word to translate; give a sentence")
        return ids

    def translate_segments(
        self,
        texts: Sequence[str],
        search: SearchConfig,
        *,
        should_stop: Callable[[], bool] = lambda: False,
        lowers_caps: bool = False,
    ) -> list[TranslatedSegment] | None:
        """One result for each text, which is translated as a whole; None if it was asked to stop.

        ``lowers_caps``: sentences in capitals are read in small letters, and their translations put into capitals,
        where the training text has hardly any.
        """
        lowers_caps = lowers_caps and (self.statistics is None or self.statistics.caps < FAMILIAR_CAPS)
        inputs = [self._input(text, lowers_caps=lowers_caps) for text in texts]
        results: dict[int, TranslatedSegment] = {}
        # Of a text with masks, the translation that has them all is taken; so all of the beam is looked at.
        for has_masks in (False, True):
            places = [place for place, each in enumerate(inputs) if bool(each.masked.originals) == has_masks]
            way = search_with(search, n_best=search.beam_size) if has_masks else search
            found = self._search_all([inputs[place].masked.text for place in places], way, should_stop=should_stop)
            if found is None:
                return None
            for place, each in zip(places, found, strict=True):
                results[place] = self._result(inputs[place], each, n_best=search.n_best)
        return [results[place] for place in range(len(texts))]

    def _input(self, text: str, *, lowers_caps: bool) -> _Input:
        text, is_truncated = _beginning(text)
        masked = mask(text) if self.tokenizers.src.has_masks else MaskedText(text, {})
        is_caps = lowers_caps and is_all_caps(masked.text)
        read = replace(masked, text=to_sentence_case(masked.text, self.src_language)) if is_caps else masked
        return _Input(read, is_caps, is_truncated)

    def _result(self, source: _Input, found: SearchResult, *, n_best: int) -> TranslatedSegment:
        """What a search found for a segment, as text."""
        texts = self.tokenizers.tgt.decode_batch(hypothesis.ids for hypothesis in found.hypotheses)
        candidates = []
        for text, hypothesis in zip(texts, found.hypotheses, strict=True):
            raised = text.upper() if source.is_caps else text
            restored, is_whole = unmask(raised, source.masked) if self.tokenizers.tgt.has_masks else (raised, True)
            # Normalised again: nothing that a model writes may break a line.
            candidates.append((not is_whole, ScoredText(normalise(restored), hypothesis.score)))
        candidates.sort(key=lambda each: each[0])  # the order of the beam stays among those that lack nothing
        n_tokens = len(found.hypotheses[0].ids) + 1 if found.hypotheses else 0
        statistics = self.statistics
        return TranslatedSegment(
            n_best=tuple(each for _, each in candidates[:n_best]) or (ScoredText("", 0.0),),
            is_truncated=source.is_truncated or found.is_truncated,
            is_long=statistics is not None and found.n_src_tokens > statistics.longest,
            is_short=statistics is not None
            and found.n_src_tokens >= LEAST_TOKENS
            and n_tokens < statistics.least_ratio * found.n_src_tokens,
            lacks_masks=bool(candidates) and candidates[0][0],
        )

    def _n_tokens(self, texts: Sequence[str]) -> list[int]:
        """Of each text as the model would read it, the end symbol included; of one that is too long, too many."""
        read = [self._input(text, lowers_caps=False) for text in texts]
        counts = [len(ids) + 1 for ids in self._search_all.source_ids([each.masked.text for each in read])]
        most = self.max_source_tokens
        return [max(count, most + 1) if each.is_truncated else count for each, count in zip(read, counts, strict=True)]


def _beginning(text: str) -> tuple[str, bool]:
    """What is looked at of a segment, and whether that is not all of it; blanks without end count as one."""
    if len(text) <= LONGEST_SEGMENT:
        return text, False
    text = normalise(text)
    return text[:LONGEST_SEGMENT], len(text) > LONGEST_SEGMENT


def search_with(
    search: SearchConfig,
    *,
    n_best: int | None = None,
    beam_size: int | None = None,
    alpha: float | None = None,
    max_tokens_per_batch: int | None = None,
) -> SearchConfig:
    """A way to search with what was asked for. A beam too small for the n best grows. Raises ConfigError.

    Greedy search becomes beam search where more than one output is asked for, or looked at.
    """
    n_best = 1 if n_best is None else n_best
    least_beam = n_best if isinstance(n_best, int) else 1  # else it is refused below
    changes: dict[str, Any] = {
        "n_best": n_best,
        "beam_size": max(search.beam_size, least_beam) if beam_size is None else beam_size,
        "alpha": search.alpha if alpha is None else float(alpha) if isinstance(alpha, int) else alpha,
        "max_tokens_per_batch": search.max_tokens_per_batch if max_tokens_per_batch is None else max_tokens_per_batch,
    }
    if isinstance(search, GreedySearchConfig):
        if changes["n_best"] == changes["beam_size"] == 1:
            del changes["n_best"], changes["beam_size"]
        else:
            changes["kind"] = "beam"
    return config_from_mapping(SearchConfig, search.model_dump() | changes, where="search")


def _strings(texts: Iterable[str]) -> Iterator[str]:
    """``texts``, as they come. Raises TypeError for one that is no string."""
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"texts[{number}] should be a string, got {type(text).__name__}")
        yield text
