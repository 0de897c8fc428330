"""Translation with a trained model: a stream of lines to a stream of translations, in order.

A line is divided into segments, usually sentences (``text_division.py``); verbatim spans are masked; the segments of
many lines are searched in batches; hypotheses are compared with their sources (``hypotheses.py``); and the translations
of a line are put together (``text_translation.py``).
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, repeat
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypedDict, Unpack, overload

import torch

from transduce.config import (
    MIN_DRAFT_PROBABILITY,
    N_DRAFTED,
    BeamSearchConfig,
    GreedySearchConfig,
    InferencePrecision,
    SampledSearchConfig,
    SearchConfig,
    config_from_mapping,
    split_direction,
)
from transduce.errors import CheckpointError, ConfigError, DataError, quoted
from transduce.files import MAX_LINE_BYTES
from transduce.inference.batch_search import BatchSearch, SearchResult, require_sequence
from transduce.inference.devices import usable_device
from transduce.inference.folder import read_model_folder
from transduce.inference.process_bound import ProcessBound
from transduce.inference.translation.hypotheses import Candidate
from transduce.inference.translation.line_statistics import LineStatistics
from transduce.inference.translation.mask_statistics import MaskStatistics, mask_rules
from transduce.inference.translation.parts import ScoredText, TranslatedSegment, Translation
from transduce.inference.translation.prefixes import Prefix
from transduce.inference.translation.progress import Progress, progress_callback
from transduce.inference.translation.segment_text import ForcedIds, ReadSegment, SegmentText
from transduce.inference.translation.segmentation import Segmenter
from transduce.inference.translation.shortlists import read_shortlist
from transduce.inference.translation.text_division import Splitting, TextDivider
from transduce.inference.translation.text_translation import TextTranslation
from transduce.inference.translation.word_alignment import align_words
from transduce.model import EncoderDecoder
from transduce.model.shortlist import Shortlist
from transduce.search import DraftLength, ForcedPrefix, PassCounts
from transduce.text import BOS_ID, EOS_ID, PAD_ID, Segment, Tokenizers, n_masks
from transduce.text.chunks import chunks
from transduce.text.markup import MarkupRules

__all__ = [
    "CHUNK_LINES",
    "Prefix",
    "ScoredText",
    "Translation",
    "Translator",
    "greedy_unless_sampled",
    "search_with",
]

# Lines read before the first is translated: enough to batch sentences of equal length, few enough for a stream.
CHUNK_LINES = 2000
CHUNK_LINES_WITH_PROGRESS = 200
# Reranks candidates: (texts, their candidates, search configuration) to the n-best of each text.
Rerank = Callable[[Sequence[str], Sequence[TranslatedSegment], SearchConfig], Sequence[TranslatedSegment]]


class _Options(TypedDict, total=False):
    """Options of ``Translator.translate`` except ``n_best``."""

    beam_size: int | None
    alpha: float | None
    max_tokens_per_batch: int | None
    search: SearchConfig | None
    split: bool
    prefix: str | Sequence[str]
    draft: Translator | None
    progress: bool | Progress


class Translator(ProcessBound):
    """Translate raw text with a model or an ensemble.

    ``Translator.load(folder).translate(["..."])`` is all that most users need. ``precision="bf16"`` or ``"int8"`` (on
    CPUs) computes matrix products in that type: faster on processors that support it, with slightly different outputs.
    After changing weights, make a new translator. Several threads may share one. ``others`` are further models with the
    same vocabularies, for an ensemble; with a ``shortlist``, only its tokens are scored. ``statistics`` are those of
    the training lines; without them, every sentence is translated separately. ``masks`` say what is not masked, by
    default those of ``statistics``.
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
        shortlist: Shortlist | None = None,
        masks: MaskStatistics | None = None,
    ) -> None:
        self.model, self.tokenizers, self.search, self.statistics = model, tokenizers, search, statistics
        self.precision = precision
        self._batch_search = BatchSearch(
            (model, *others),
            tokenizers.src,
            precision=precision,
            shortlist=shortlist,
            suppressed_ids=tokenizers.tgt.suppressed_ids,
        )
        self._n_models = 1 + len(others)
        self.src_language, self.tgt_language = split_direction(direction)
        masks = statistics.masks if masks is None and statistics is not None else masks
        self.mask_rules = mask_rules(self.src_language, self.tgt_language, masks)
        self._segment_text = SegmentText(tokenizers, self.mask_rules, statistics)
        self._segmenter = Segmenter(
            self.src_language,
            statistics,
            self._n_tokens,
            max_tokens=self._batch_search.max_source_tokens,
            n_masks=lambda text: n_masks(text, self.mask_rules) if tokenizers.src.has_masks else 0,
        )
        self._divider = TextDivider(self._segmenter, tokenizers, self.tgt_language)

    def __repr__(self) -> str:
        n_parameters = sum(weight.numel() for weight in self.model.parameters())
        config, device = self.model.config, self.model.output_weight.device
        ensemble = f", ensemble of {self._n_models} models" if self._n_models > 1 else ""
        return (
            f"Translator({self.src_language}-{self.tgt_language}, {config.layers_in_words()} of {config.d_model}, "
            f"{n_parameters / 1e6:.1f} million parameters"
            f"{ensemble}, beam {self.search.beam_size}, {self.precision} on {device})"
        )

    def with_draft(
        self,
        draft: Translator,
        *,
        n_drafted: int = N_DRAFTED,
        min_probability: float = MIN_DRAFT_PROBABILITY,
    ) -> Translator:
        """Return the translator for which a smaller one drafts tokens: speculative decoding.

        A draft has at most ``n_drafted`` tokens for each pass, and ends after one that the smaller model gives less
        than ``min_probability``.

        Its search is greedy, or samples. The texts are those of this translator alone, or have their distribution; they
        come faster the more often the two agree. ``passes`` counts. Both share the vocabularies; a shortlist makes a
        draft faster and changes no text.
        Raises ConfigError for other vocabularies or another direction, for a shortlist of this translator, or for less
        than one token or a number that is no probability.
        """
        languages, of_draft = ((each.src_language, each.tgt_language) for each in (self, draft))
        if (draft.tokenizers.fingerprint, of_draft) != (self.tokenizers.fingerprint, languages):
            raise ConfigError(
                "a draft needs the tokenizers and the direction of the translator; train it on the same prepared folder"
                " (train --store), or from the translator (train --from)"
            )
        other = copy.copy(self)
        try:
            length = DraftLength(n_drafted, min_probability)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        other._batch_search = self._batch_search.with_draft(draft._batch_search, length)
        other.search = greedy_unless_sampled(self.search)
        return other

    def attend(self, on_step: Callable[[], object]) -> None:
        """Call ``on_step`` before each step of decoding, for instance to let more urgent work pass."""
        self._batch_search.on_step = on_step

    @property
    def passes(self) -> PassCounts:
        """The passes of the model so far, where drafts or draws were made."""
        return self._batch_search.counts

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *others: str | Path,
        device: str | torch.device = "cpu",
        precision: InferencePrecision = "fp32",
        shortlist: str | Path | None = None,
    ) -> Translator:
        """Load a model folder, or several as an ensemble with the search configuration of the first.

        ``shortlist``: a folder of ``transduce shortlist``, for one model.
        Raises CheckpointError if one cannot be used or has other vocabularies than the first, ConfigError if the device
        does not exist or does not support the precision.
        """
        device = usable_device(device)
        first, *more = (read_model_folder(Path(each), device=device) for each in (folder, *others))
        models = [
            each.model_for(each.task if each.task == "mask-predict" else "translation", EncoderDecoder)
            for each in (first, *more)
        ]
        for path, loaded in zip(others, more, strict=True):
            if (loaded.tokenizers.fingerprint, loaded.direction) != (first.tokenizers.fingerprint, first.direction):
                raise CheckpointError(
                    f"{path} has other tokenizers or another direction than {folder}; train the models of an ensemble "
                    "from one prepared folder (train --store)"
                )
        return cls(
            models[0],
            first.tokenizers,
            first.search,
            direction=first.direction,
            precision=precision,
            others=models[1:],
            statistics=first.statistics,
            shortlist=None if shortlist is None else read_shortlist(Path(shortlist), first.tokenizers),
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
        prefix: str | Sequence[str] = "",
        draft: Translator | None = None,
        progress: bool | Progress = False,
    ) -> list[str] | list[list[str]]:
        """Translate a list of texts; with ``n_best``, return up to so many different translations of each, best first.

        ``n_best``, ``beam_size``, ``alpha`` and ``max_tokens_per_batch`` override those of ``search``, by default the
        model's search configuration. Texts of several sentences are translated sentence by sentence, with their
        spacing; with ``split=False`` as a whole. ``prefix``: how the translations begin, one for all texts or one for
        each (see ``translate_lines``). ``draft`` is a smaller translator for speculative decoding (see ``with_draft``),
        which is greedy, or samples, without a prefix. ``progress=True`` shows a bar on stderr; a function is called
        with the number of texts done and their total. Warns of texts that are cut; ``translate_lines`` tells more.
        Raises TypeError, naming the item, for anything but a list of strings, ConfigError for an invalid search or
        another number of prefixes than texts, DataError for a prefix that is longer than the model reads.
        """
        if draft is not None:
            if prefix:
                raise ConfigError("a prefix cannot be used with a draft; leave one of them out")
            search = greedy_unless_sampled(search or self.search)
            return self.with_draft(draft).translate(
                texts, n_best=n_best, beam_size=beam_size, alpha=alpha, max_tokens_per_batch=max_tokens_per_batch,
                search=search, split=split, progress=progress,
            )  # fmt: skip
        require_sequence(texts, "translate takes a list of texts", "for one text, translate([text])[0]")
        texts = list(texts)
        for _ in _strings(texts):  # check all before the first is translated
            pass
        overridden = search_with(
            search or self.search,
            n_best=n_best,
            beam_size=beam_size,
            alpha=alpha,
            max_tokens_per_batch=max_tokens_per_batch,
        )
        prefixes = repeat(prefix, len(texts)) if isinstance(prefix, str) else list(_strings(prefix, name="prefix"))
        if isinstance(prefixes, list) and len(prefixes) != len(texts):
            raise ConfigError(f"there are {len(prefixes):,} prefixes for {len(texts):,} texts; give one for each")
        chunk_lines = CHUNK_LINES_WITH_PROGRESS if progress else CHUNK_LINES
        translations: list[Translation] = []
        with progress_callback(progress, len(texts)) as report:
            for translation in self.translate_lines(
                texts, search=overridden, chunk_lines=chunk_lines, split=split, is_scored=False, prefixes=prefixes
            ):
                translations.append(translation)
                report(len(translations), len(texts))
        _warn_of_cut(translations, self.max_source_tokens)
        if n_best is None:
            return [translation.text for translation in translations]
        return [[each.text for each in translation.n_best] for translation in translations]

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
        """Translate a stream of texts, in order.

        ``chunk_lines`` texts are read before the first is translated: more is faster, 1 translates each immediately.
        The other options are those of ``translate``.
        """
        require_sequence(texts, "translate_iter takes a stream of texts", "for one text, translate([text])[0]")
        overridden = search_with(
            search or self.search, beam_size=beam_size, alpha=alpha, max_tokens_per_batch=max_tokens_per_batch
        )
        lines = self.translate_lines(
            _strings(texts), search=overridden, chunk_lines=chunk_lines, split=split, is_scored=False
        )
        return (translation.text for translation in lines)

    def translate_interruptible(self, should_stop: Callable[[], bool], texts: Sequence[str]) -> list[str] | None:
        """Translate texts, unsplit and unchecked; None if ``should_stop``, checked before each batch, is true."""
        segments = self.translate_segments(
            texts, self.search, should_stop=should_stop, is_scored=False, is_checked=False
        )
        return None if segments is None else [each.n_best[0].text for each in segments]

    def translate_lines(
        self,
        lines: Iterable[str],
        *,
        search: SearchConfig | None = None,
        chunk_lines: int = CHUNK_LINES,
        split: bool = True,
        rerank: Rerank | None = None,
        is_scored: bool = True,
        prefixes: Iterable[str] = repeat(""),
        rules: MarkupRules | None = None,
        is_linked: bool = False,
        report: Callable[[int], object] = lambda n_lines: None,
    ) -> Iterator[Translation]:
        """Translate a stream of lines, in order; what has no words stays as it is.

        A chunk has fewer than ``chunk_lines`` if lines are long; lines are truncated at ``MAX_LINE_BYTES``.
        Without ``split``, a line is one sentence. ``rules``: lines have tags, which the translations have, too.
        ``rerank`` gets each sentence with its whole beam and returns its n-best. Without ``is_scored``, the scores of
        greedy search are NaN, which is faster. ``is_linked``: translations have the links between words. ``report``
        gets the number of lines done, also within a chunk, of whose sentences that share is done.

        ``prefixes``: how the translation of each line begins. The last word of a prefix may be continued, unless a
        space follows it. If a line is split, the sentences of the prefix belong to its segments in order, and only the
        last one is continued. Raises ConfigError for a prefix with a shortlist, or with ``rerank``.
        """
        if not isinstance(chunk_lines, int) or chunk_lines < 1:
            raise ConfigError(f"chunk_lines should be at least 1, got {quoted(chunk_lines)}")
        config = search or self.search
        beam_config = config if rerank is None else search_with(config, n_best=config.beam_size)

        n_done = 0

        def translated(chunk: Sequence[tuple[str, str]]) -> list[Translation]:
            nonlocal n_done
            texts, beginnings = zip(*chunk, strict=True)
            splitting: Splitting = "lines" if split else "none"
            work = self.divided(texts, rules=rules, splitting=splitting, prefixes=beginnings, is_linked=is_linked)
            sources = [each.text for each in work.sentences]
            begun = [each.prefix for each in work.sentences]
            if rerank is not None and any(each.text for each in begun):
                raise ConfigError("a prefix cannot be used with a model for reranking; leave one of them out")
            candidates = self.translate_segments(
                sources, beam_config, lowers_caps=True, is_scored=is_scored, prefixes=begun,
                report=lambda n_sentences: report(n_done + len(chunk) * n_sentences // len(sources)),
            )  # fmt: skip
            assert candidates is not None  # not interrupted
            segments = candidates if rerank is None else rerank(sources, candidates, config)
            n_done += len(chunk)
            report(n_done)
            return work.put_together(segments, align_words(self, work.pairs(segments)), n_best=config.n_best)

        pairs = zip(lines, prefixes, strict=False)
        return chain.from_iterable(map(translated, chunks(pairs, chunk_lines, lambda pair: len(pair[0]))))

    def divided(
        self,
        texts: Sequence[str],
        *,
        rules: MarkupRules | None = None,
        splitting: Splitting = "lines",
        prefixes: Sequence[str] = (),
        is_linked: bool = False,
    ) -> TextTranslation:
        """Divide texts into the sentences that are to be translated."""
        divided = self._divider(texts, rules=rules, splitting=splitting, prefixes=prefixes)
        return TextTranslation(divided, tgt_language=self.tgt_language, is_linked=is_linked)

    def split_line(self, line: str) -> list[Segment]:
        """Return the segments of a line that are translated separately, at least one."""
        code, rest = self.tokenizers.src.split_language_code(line[:MAX_LINE_BYTES])
        segments = self._segmenter([rest])[0]
        return [Segment(f"{code} {each.text}", each.space) for each in segments] if code else segments

    @torch.no_grad()
    def alternatives(
        self, text: str, *, prefix: str = "", n: int = 5, search: SearchConfig | None = None
    ) -> list[ScoredText]:
        """Translate one sentence in up to ``n`` ways that differ from the first token after ``prefix`` on.

        Each of the ``n`` most probable next tokens is continued by the search; best score first, equal texts once.
        Raises as ``translate_lines`` does for a prefix.
        """
        source = self._segment_text.read(text, lowers_caps=True)
        ids, is_complete = self._prefix_ids(Prefix(prefix), source)
        encoded = self._batch_search.source_ids([source.masked.text])[0][: self.max_source_tokens - 1]
        if not encoded:
            return []
        device = self.model.output_weight.device
        src_BS = torch.tensor([[*encoded, EOS_ID]], device=device)
        states_ND = self.model(src_BS, torch.tensor([[BOS_ID, *ids]], device=device))
        logits_V = self.model.logits(states_ND[-1:])[0].float()
        logits_V[[PAD_ID, BOS_ID, *self.tokenizers.tgt.suppressed_ids]] = -torch.inf
        if is_complete:
            logits_V.masked_fill_(self._is_inside_word_V.to(device), -torch.inf)
        best_ids = logits_V.topk(min(n, len(logits_V))).indices.tolist()
        forced = [([*ids, id], False) for id in best_ids]
        config = search_with(search or self.search, n_best=None)
        results = self._batch_search(
            [source.masked.text] * len(forced), config, processor=self._forcing(forced),
            min_tokens=self._min_tokens(forced, config),
        )  # fmt: skip
        assert results is not None  # not interrupted
        candidates = self._segment_text.candidates([source] * len(results), results, is_checked=False)
        found = [each.best for of_result in candidates for each in of_result[:1]]
        found.sort(key=lambda each: -each.score)
        best_of = {each.text: each for each in reversed(found) if each.text}
        return list(best_of.values())[::-1]

    @property
    def max_source_tokens(self) -> int:
        """Maximum source length, EOS included; longer sources are truncated."""
        return self._batch_search.max_source_tokens

    def source_ids(self, text: str) -> list[int]:
        """Encode a text as the model reads it, without EOS. Raises DataError if it has no token."""
        ids = self._batch_search.source_ids([text])[0][: self.max_source_tokens - 1]
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
        is_scored: bool = True,
        prefixes: Sequence[Prefix] | None = None,
        is_checked: bool = True,
        report: Callable[[int], object] = lambda n_done: None,
    ) -> list[TranslatedSegment] | None:
        """Translate each text as a whole; None if interrupted.

        ``lowers_caps``: lowercase texts in capitals and uppercase their translations, if hardly any training line was
        in capitals. ``prefixes``: how each translation begins. Unless ``is_checked`` is false, a hypothesis that loops,
        has no word or lacks what should be kept is replaced by the next best, or mended; an empty text says that no
        hypothesis has a word. ``report`` gets the number of texts done, after each batch.
        """
        inputs = [self._segment_text.read(text, lowers_caps=lowers_caps) for text in texts]
        forced: list[ForcedIds] | None = None
        if prefixes is not None and any(each.text for each in prefixes):
            forced = [self._prefix_ids(*each) for each in zip(prefixes, inputs, strict=True)]

        def found(
            indices: Sequence[int], config: SearchConfig, *, has_loops: bool = True
        ) -> Iterator[tuple[int, SearchResult, list[Candidate]]]:
            sources = [inputs[index] for index in indices]
            begun = None if forced is None else [forced[index] for index in indices]
            results = self._batch_search(
                [each.masked.text for each in sources], config, should_stop=should_stop, is_scored=is_scored,
                processor=None if begun is None else self._forcing(begun),
                min_tokens=None if begun is None else self._min_tokens(begun, config),
                has_loops=has_loops,
                report=report if len(indices) == len(texts) else lambda n_done: None,
            )  # fmt: skip
            if results is None:
                return iter(())
            candidates = self._segment_text.candidates(sources, results, is_checked=is_checked)
            return zip(indices, results, candidates, strict=True)

        segments: dict[int, TranslatedSegment] = {}
        faulty = list[int]()
        for index, result, candidates in found(range(len(texts)), search):
            segments[index] = self._segment_text.chosen(inputs[index], result, candidates, n_best=search.n_best)
            if any(each.fault for each in candidates):
                faulty.append(index)
        if len(segments) < len(texts):
            return None
        # Only now, since they take longer: a search for the whole beam, and one that writes no loops.
        beam = search_with(search, n_best=search.beam_size)
        if faulty and search.n_best < search.beam_size:
            for index, result, candidates in found(faulty, beam):
                segments[index] = self._segment_text.chosen(inputs[index], result, candidates, n_best=search.n_best)
        looping = [index for index in faulty if "repeated" in segments[index].warnings]
        if looping and isinstance(search, BeamSearchConfig | GreedySearchConfig):
            for index, result, candidates in found(looping, beam, has_loops=False):
                segments[index] = self._segment_text.chosen(inputs[index], result, candidates, n_best=search.n_best)
        return [segments[index] for index in range(len(texts))]

    @cached_property
    def _is_inside_word_V(self) -> torch.Tensor:
        """Which target tokens continue a word."""
        is_inside_V = torch.ones(self.tokenizers.tgt.size, dtype=torch.bool)
        is_inside_V[[EOS_ID, *self.tokenizers.tgt.word_start_ids]] = False
        return is_inside_V

    def _prefix_ids(self, prefix: Prefix, source: ReadSegment) -> ForcedIds:
        return self._segment_text.prefix_ids(prefix, source, max_tokens=self.max_source_tokens - 1)

    def _forcing(self, forced: Sequence[ForcedIds]) -> Callable[[Sequence[int], Sequence[int]], ForcedPrefix]:
        """Return what makes the processor of a batch."""

        def processor(indices: Sequence[int], _max_lengths: Sequence[int]) -> ForcedPrefix:
            ids, are_complete = zip(*(forced[index] for index in indices), strict=True)
            return ForcedPrefix(ids, self._is_inside_word_V, are_complete)

        return processor

    def _min_tokens(self, forced: Sequence[ForcedIds], search: SearchConfig) -> list[int]:
        """Return how long each output may at least be: its prefix, some more tokens, EOS."""
        limit = self._batch_search.max_output_tokens
        return [min(len(ids) + search.max_extra_tokens + 1, limit) if ids else 1 for ids, _ in forced]

    def _n_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens that the model reads, EOS included; a truncated text counts as longer than the maximum."""
        inputs = [self._segment_text.read(text, lowers_caps=True) for text in texts]
        counts = [len(ids) + 1 for ids in self._batch_search.source_ids([each.masked.text for each in inputs])]
        minimum = self.max_source_tokens + 1
        return [max(n, minimum) if each.is_truncated else n for each, n in zip(inputs, counts, strict=True)]


def _warn_of_cut(translations: Sequence[Translation], max_source_tokens: int) -> None:
    """Warn of texts whose end was not translated."""
    cut = [index for index, each in enumerate(translations) if each.is_truncated]
    if cut:
        warnings.warn(
            f"{len(cut):,} of {len(translations):,} texts have a sentence of more than {max_source_tokens:,} tokens, "
            f"whose end was cut off; the first is texts[{cut[0]}]",
            stacklevel=3,
        )


def search_with(
    search: SearchConfig,
    *,
    n_best: int | None = None,
    beam_size: int | None = None,
    alpha: float | None = None,
    max_tokens_per_batch: int | None = None,
    limits: Mapping[str, int] = MappingProxyType({}),
) -> SearchConfig:
    """Override fields of a search configuration; the beam grows to ``n_best`` if needed. Raises ConfigError.

    ``limits``: of outputs, such as ``max_length`` and ``no_repeat_ngram``.
    Greedy search becomes beam search if ``n_best`` or ``beam_size`` is above 1; no other search does.
    """
    n_best = 1 if n_best is None else n_best
    min_beam = n_best if isinstance(n_best, int) else 1  # another type raises below
    changes: dict[str, Any] = {
        "n_best": n_best,
        "beam_size": max(search.beam_size, min_beam) if beam_size is None else beam_size,
        "alpha": search.alpha if alpha is None else float(alpha) if isinstance(alpha, int) else alpha,
        "max_tokens_per_batch": search.max_tokens_per_batch if max_tokens_per_batch is None else max_tokens_per_batch,
        **limits,
    }
    if not isinstance(search, BeamSearchConfig):
        if changes["n_best"] == changes["beam_size"] == 1:
            del changes["n_best"], changes["beam_size"]
        elif isinstance(search, GreedySearchConfig):
            changes["kind"] = "beam"
        else:
            raise ConfigError(
                f"search.kind = {search.kind!r} writes one translation of each sentence without a beam, got beam_size"
                f" {changes['beam_size']} and n_best {changes['n_best']}"
            )
    return config_from_mapping(SearchConfig, search.carried_over(changes) | changes, where="search")


def greedy_unless_sampled(search: SearchConfig) -> SearchConfig:
    """Return greedy search in place of beam search, with the same limits; another search is returned as it is."""
    if not isinstance(search, BeamSearchConfig):
        return search
    shared = search.model_dump(include=set(GreedySearchConfig.model_fields) - {"kind"})
    return GreedySearchConfig(**shared)


def sampling_like(search: SearchConfig, *, seed: int, temperature: float | None = None) -> SampledSearchConfig:
    """Return a search that samples from the model's distribution, with the limits of another search.

    ``temperature``: divides the logits. Default: that of the other search if it samples, else 1.
    """
    fields = set(SampledSearchConfig.model_fields) - {"kind", "seed"}
    changes = {} if temperature is None else {"temperature": temperature}
    return SampledSearchConfig(**search.model_dump(include=fields) | changes, seed=seed)


def _strings(texts: Iterable[str], *, name: str = "texts") -> Iterator[str]:
    """Iterate over ``texts``. Raises TypeError for anything but a string."""
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{number}] should be a string, got {type(text).__name__}")
        yield text
