"""Translation of single sentences with a trained model: masks, search in batches, the choice among hypotheses."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from transduce.config import (
    MIN_DRAFT_PROBABILITY,
    N_DRAFTED,
    BeamSearchConfig,
    EncoderDecoderConfig,
    GreedySearchConfig,
    InferencePrecision,
    SearchConfig,
    split_direction,
)
from transduce.config.decoding import DecodingOptions, EngineName, greedy_unless_sampled
from transduce.errors import CheckpointError, ConfigError, DataError, quoted
from transduce.inference.devices import usable_device
from transduce.inference.engine import NO_CONSTRAINTS, Constraints, Engine, EngineSettings, Request, never
from transduce.inference.engines import make_engine
from transduce.inference.folder import ModelFolder, read_model_folder
from transduce.inference.stored_model import StoredModel
from transduce.inference.text_search import TextSearch
from transduce.inference.trained_model import TrainedModel
from transduce.inference.translation.line_statistics import LineStatistics
from transduce.inference.translation.mask_statistics import MaskStatistics, mask_rules
from transduce.inference.translation.parts import ScoredText, TranslatedSegment, distinct_texts
from transduce.inference.translation.prefixes import Prefix
from transduce.inference.translation.segment_text import ForcedIds, ReadSegment, SegmentText
from transduce.inference.translation.term_search import TermSearch, word_inside_ids
from transduce.model.cost import cost_of
from transduce.search import PassCounts
from transduce.terms import Terms
from transduce.text import EOS_ID, Tokenizers

if TYPE_CHECKING:
    import torch

    from transduce.model import EncoderDecoder
    from transduce.model.shortlist import Shortlist

__all__ = ["SegmentTranslator"]


class SegmentTranslator(TrainedModel):
    """Translates single sentences: ``Translator`` without what divides lines and puts them together."""

    terms = Terms()  # what translations should have, and what not

    def __init__(
        self,
        model: EncoderDecoder | StoredModel,
        tokenizers: Tokenizers,
        search: SearchConfig,
        *,
        direction: str,
        precision: InferencePrecision = "fp32",
        engine: EngineName = "auto",
        others: Sequence[EncoderDecoder | StoredModel] = (),
        statistics: LineStatistics | None = None,
        shortlist: Shortlist | None = None,
        masks: MaskStatistics | None = None,
    ) -> None:
        super().__init__(model)
        self.tokenizers, self.search, self.statistics = tokenizers, search, statistics
        self.precision = precision
        self._models = (model, *others)
        self._settings = EngineSettings(
            precision,
            tokenizers.tgt.suppressed_ids,
            lambda: (EOS_ID, *tokenizers.tgt.word_start_ids),
            lambda: word_inside_ids(tokenizers.tgt),
            shortlist=shortlist,
            engine=engine,
        )
        self._text_search = TextSearch(make_engine(*self._models, settings=self._settings), tokenizers.src)
        self.src_language, self.tgt_language = split_direction(direction)
        masks = statistics.masks if masks is None and statistics is not None else masks
        self.mask_rules = mask_rules(self.src_language, self.tgt_language, masks)
        self._segment_text = SegmentText(tokenizers, self.mask_rules, statistics)
        self.terms = Terms()
        self._terms: TermSearch | None = None

    def __repr__(self) -> str:
        config = self._model.config
        ensemble = f", ensemble of {len(self._models)} models" if len(self._models) > 1 else ""
        return (
            f"Translator({self.src_language}-{self.tgt_language}, {config.layers_in_words()} of {config.d_model}, "
            f"{cost_of(config).parameters / 1e6:.1f} million parameters"
            f"{ensemble}, beam {self.search.beam_size}, {self.precision} on {self.device})"
        )

    def with_draft(
        self, draft: Self, *, n_drafted: int = N_DRAFTED, min_probability: float = MIN_DRAFT_PROBABILITY
    ) -> Self:
        """Return the translator for which a smaller one drafts tokens: speculative decoding.

        A draft has at most ``n_drafted`` tokens for each pass, and ends after one of less than ``min_probability``. The
        search is greedy, or samples; the texts are those of this translator alone, or have their distribution, and
        come faster the more often the two agree (``passes``). A shortlist makes a draft faster and changes no text.
        Raises ConfigError for other vocabularies or another direction, for a shortlist of this translator, or for less
        than one token or a number that is no probability.
        """
        other = copy.copy(self)
        engine = _drafting(self, draft, n_drafted, min_probability)
        other._text_search = TextSearch(engine, self.tokenizers.src)
        other.search = greedy_unless_sampled(self.search)
        return other

    def with_terms(self, terms: Terms, *, are_required: bool = False) -> Self:
        """Return the translator that keeps terms, and writes nothing that is to be avoided.

        A model with term marks (``data.terms``) is told them. Of the hypotheses of another one, it takes one that has
        them. ``are_required``: it searches for a translation with them if there is none among these (Post and Vilar,
        2018).
        Raises ConfigError if that, or avoiding, cannot be done: with a shortlist, or a model for mask-predict.
        """
        other = copy.copy(self)
        other.terms = terms
        other._segment_text = self._segment_text.with_terms(terms, are_required=are_required)
        if are_required or terms.avoided:
            if self._settings.shortlist is not None or not self.engine.is_left_to_right:
                raise ConfigError("terms need a model that writes from left to right, without a shortlist")
            other._terms = TermSearch(terms, other._segment_text, are_required=are_required)
        return other

    def attend(self, on_step: Callable[[], object]) -> None:
        """Call ``on_step`` before each step of decoding, for instance to let more urgent work pass."""
        self.engine.on_step = on_step

    @property
    def engine(self) -> Engine:
        """What computes."""
        return self._text_search.engine

    @property
    def passes(self) -> PassCounts:
        """The passes of the model so far, where drafts or draws were made."""
        return self.engine.counts

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *others: str | Path,
        device: str | torch.device = "cpu",
        precision: InferencePrecision = "fp32",
        engine: EngineName = "auto",
        shortlist: str | Path | None = None,
    ) -> Self:
        """Load a model folder, or several as an ensemble with the search configuration of the first.

        ``shortlist``: a folder of ``transduce shortlist``, for one model.
        Raises CheckpointError if one cannot be used or has other vocabularies than the first, ConfigError if the device
        does not exist or does not support the precision.
        """
        device = usable_device(device)
        first, *more = (read_model_folder(Path(each), device=device) for each in (folder, *others))
        for path, loaded in zip(others, more, strict=True):
            if (loaded.tokenizers.fingerprint, loaded.direction) != (first.tokenizers.fingerprint, first.direction):
                raise CheckpointError(
                    f"{path} has other tokenizers or another direction than {folder}; train the models of an ensemble "
                    "from one prepared folder (train --store)"
                )
        kind, *_ = [cls.class_for(each) for each in (first, *more)]
        listed: Shortlist | None = None
        if shortlist is not None:
            from transduce.inference.translation.shortlists import read_shortlist

            listed = read_shortlist(Path(shortlist), first.tokenizers)
        return kind.from_folder(
            first,
            precision=precision,
            engine=engine,
            others=[each.stored_as(EncoderDecoderConfig) for each in more],
            shortlist=listed,
        )

    @classmethod
    def from_folder(
        cls,
        loaded: ModelFolder,
        *,
        precision: InferencePrecision = "fp32",
        engine: EngineName = "auto",
        others: Sequence[EncoderDecoder | StoredModel] = (),
        shortlist: Shortlist | None = None,
    ) -> Self:
        """Return the translator of a model folder that has been read; ``others`` are further models of an ensemble."""
        return cls(
            loaded.stored_as(EncoderDecoderConfig), loaded.tokenizers, loaded.search, direction=loaded.direction,
            precision=precision, engine=engine, others=others, statistics=loaded.statistics, shortlist=shortlist,
        )  # fmt: skip

    @property
    def max_source_tokens(self) -> int:
        """Maximum source length, EOS included; longer sources are truncated."""
        return self._text_search.max_source_tokens

    def source_ids(self, text: str) -> list[int]:
        """Encode a text as the model reads it, without EOS. Raises DataError if it has no token."""
        ids = self._text_search.source_ids([text])[0][: self.max_source_tokens - 1]
        if not ids:
            raise DataError("there is no word to translate; give a sentence")
        return ids

    def translate_segments(
        self,
        texts: Sequence[str],
        search: SearchConfig,
        *,
        should_stop: Callable[[], bool] = never,
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
        if self._terms is not None and not isinstance(search, BeamSearchConfig | GreedySearchConfig):
            raise ConfigError("terms are searched for by beam search or greedy search; a sample has none")
        inputs = [self._segment_text.read(text, lowers_caps=lowers_caps) for text in texts]
        forced: list[ForcedIds] = []
        if prefixes is not None and any(each.text for each in prefixes):
            forced = [self._prefix_ids(*each, search) for each in zip(prefixes, inputs, strict=True)]
        begun = dict(enumerate(_beginnings(forced)))
        segments: dict[int, TranslatedSegment] = {}

        def search_for(
            indices: Sequence[int],
            config: SearchConfig,
            *,
            has_loops: bool = True,
            constraints: Mapping[int, Constraints] = begun,
        ) -> list[int]:
            """Fill in the segments with these indices, none if interrupted; return which have a faulty hypothesis."""
            sources = [inputs[index] for index in indices]
            results = self._text_search(
                [each.asked for each in sources], config, should_stop=should_stop, is_scored=is_scored,
                constrain=(lambda index, _max_length: constraints[indices[index]]) if constraints else None,
                min_tokens=self._min_tokens([forced[index] for index in indices], config) if forced else None,
                has_loops=has_loops,
                report=report if len(indices) == len(texts) else lambda n_done: None,
            )  # fmt: skip
            if results is None:
                return []
            found = self._segment_text.candidates(sources, results, is_checked=is_checked)
            for index, result, candidates in zip(indices, results, found, strict=True):
                segments[index] = self._segment_text.chosen(inputs[index], result, candidates, n_best=search.n_best)
            return [index for index, each in zip(indices, found, strict=True) if any(one.fault for one in each)]

        beam = DecodingOptions(n_best=search.beam_size).applied_to(search)
        first = search if self._terms is None else beam  # takes longer, but one of these may have the terms
        faulty = search_for(range(len(texts)), first)
        if len(segments) < len(texts):
            return None
        # Only now, since they take longer: a search for the whole beam, and one that writes no loops.
        if faulty and first.n_best < search.beam_size:
            search_for(faulty, beam)
        looping = [index for index in faulty if "repeated" in segments[index].warnings]
        if looping and isinstance(search, BeamSearchConfig | GreedySearchConfig):
            search_for(looping, beam, has_loops=False)
        if (terms := self._terms) is not None:
            from transduce.inference.translation.word_alignment import align_words

            best = {index: (inputs[index].text, segments[index].n_best[0].text) for index in faulty}
            lacking = [index for index, pair in best.items() if terms.is_needed(*pair)]
            aligned = zip(lacking, align_words(self, [best[index] for index in lacking]), strict=True)
            wanted = {
                index: terms.constrained(begun.get(index, NO_CONSTRAINTS), inputs[index], terms.replaced(each))
                for index, each in aligned
            }
            search_for(lacking, search, constraints=wanted)
        return [segments[index] for index in range(len(texts))]

    def translate_interruptible(self, should_stop: Callable[[], bool], texts: Sequence[str]) -> list[str] | None:
        """Translate texts, unsplit and unchecked; None if ``should_stop``, checked before each batch, is true.

        It is for validation: at the beginning of a run every output loops, and a check would search all of them again.
        """
        segments = self.translate_segments(
            texts, self.search, should_stop=should_stop, is_scored=False, is_checked=False
        )
        return None if segments is None else [each.n_best[0].text for each in segments]

    def alternatives(
        self, text: str, *, prefix: str = "", n: int = 5, search: SearchConfig | None = None
    ) -> list[ScoredText]:
        """Translate one sentence in up to ``n`` ways that differ from the first token after ``prefix`` on.

        Each of the ``n`` most probable next tokens is continued by the search; best score first, equal texts once.
        Raises as ``translate_lines`` does for a prefix.
        """
        source = self._segment_text.read(text, lowers_caps=True)
        ids, is_complete = self._prefix_ids(Prefix(prefix), source, search or self.search)
        encoded = self._text_search.source_ids([source.asked])[0][: self.max_source_tokens - 1]
        if not encoded:
            return []
        asked = Request(1, [*encoded, EOS_ID], constraints=Constraints(ids, starts_word=is_complete))
        [[best]] = self.engine.next_tokens([asked], n)
        forced = [([*ids, id], False) for id, _ in best]
        config, begun = DecodingOptions().applied_to(search or self.search), _beginnings(forced)
        results = self._text_search(
            [source.asked] * len(forced), config, constrain=lambda index, _max_length: begun[index],
            min_tokens=self._min_tokens(forced, config),
        )  # fmt: skip
        assert results is not None  # not interrupted
        candidates = self._segment_text.candidates([source] * len(results), results, is_checked=False)
        found = [each.best for of_result in candidates for each in of_result[:1]]
        found.sort(key=lambda each: -each.score)
        return [each for each in distinct_texts(found) if each.text]

    def as_read(self, source: str, target: str) -> tuple[str, str]:
        """Return the sides of a pair, both masked, as the model reads and writes them; their lengths stay."""
        return self._segment_text.as_read(source, target)

    def _prefix_ids(self, prefix: Prefix, source: ReadSegment, search: SearchConfig) -> ForcedIds:
        ids, is_complete = self._segment_text.prefix_ids(prefix, source, max_tokens=self.max_source_tokens - 1)
        n_needed = len(ids) + (ids[-1:] != [EOS_ID])
        if ids and search.max_length is not None and n_needed > search.max_length:
            raise DataError(
                f"max_length is {search.max_length:,}, but the prefix {quoted(prefix.text[:50])} has {n_needed:,}"
                f" tokens, its end included; shorten it, or set max_length to {n_needed:,} or more"
            )
        return ids, is_complete

    def _min_tokens(self, forced: Sequence[ForcedIds], search: SearchConfig) -> list[int]:
        """Return how long each output may at least be: its prefix, some more tokens, EOS."""
        limit = min(self.engine.max_positions, search.max_length or self.engine.max_positions)
        return [min(len(ids) + search.max_extra_tokens + 1, limit) if ids else 1 for ids, _ in forced]

    def _n_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens that the model reads, EOS included; a truncated text counts as longer than the maximum."""
        inputs = [self._segment_text.read(text, lowers_caps=True) for text in texts]
        counts = [len(ids) + 1 for ids in self._text_search.source_ids([each.asked for each in inputs])]
        minimum = self.max_source_tokens + 1
        return [max(n, minimum) if each.is_truncated else n for each, n in zip(inputs, counts, strict=True)]


def _drafting(
    translator: SegmentTranslator, draft: SegmentTranslator, n_drafted: int, min_probability: float
) -> Engine:
    """Return the engine of a translator for which that of another drafts; both are PyTorch's if they differ in kind."""
    from transduce.search import DraftLength

    languages, of_draft = ((each.src_language, each.tgt_language) for each in (translator, draft))
    if (draft.tokenizers.fingerprint, of_draft) != (translator.tokenizers.fingerprint, languages):
        raise ConfigError(
            "a draft needs the tokenizers and the direction of the translator; train it on the same prepared folder"
            " (train --store), or from the translator (train --from)"
        )
    try:
        length = DraftLength(n_drafted, min_probability)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    engine, drafter = translator.engine, draft.engine
    if type(engine) is not type(drafter):
        engine, drafter = (
            make_engine(*each._models, settings=replace(each._settings, engine="torch")) for each in (translator, draft)
        )
        engine.on_step = translator.engine.on_step
    return engine.with_draft(drafter, length)


def _beginnings(forced: Sequence[ForcedIds]) -> list[Constraints]:
    """Return the constraints of outputs that begin with a prefix."""
    return [Constraints(ids, starts_word=is_complete) for ids, is_complete in forced]
