"""The models that a server has, each with a queue of its own; a new one may take the place of an old.

A model is an attribute that is read once for each batch: between two batches another may take its place.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from transduce.config import InferencePrecision, SearchConfig
from transduce.config.decoding import NO_CHANGES, DecodingOptions, EngineName
from transduce.errors import CheckpointError
from transduce.inference import Continuation, LanguageModel, Parse, Parser, Translator, tagged_words
from transduce.inference.folder import read_model_config
from transduce.inference.threads import n_usable_threads
from transduce.inference.trained_model import ServedAs, TrainedModel
from transduce.inference.translation.parts import TranslatedSegment
from transduce.inference.translation.prefixes import NO_PREFIX, Prefix
from transduce.inference.translation.word_alignment import AlignedSentence, align_words
from transduce.search.sampling import Sampling
from transduce.serving.batching import CAPACITY, MAX_BATCH, MAX_WAIT_S, Batcher, Job
from transduce.serving.compute_threads import ComputeThreads, Urgency, in_new_thread
from transduce.serving.metrics import ModelMetrics
from transduce.serving.term_lists import NO_LISTS, TermTranslators, TranslatorLists
from transduce.terms import Terms

__all__ = [
    "AlignJob", "AlternativesJob", "GenerateJob", "ParseJob", "Served", "ServedLanguageModel", "ServedParser",
    "ServedTranslator", "ServingOptions", "TranslateJob", "compute_on_each_core", "load_served",
]  # fmt: skip

ALIGNED_TOGETHER = 8  # pairs, between which others may have their turn

ModelT = TypeVar("ModelT")
JobT = TypeVar("JobT", bound=Job)
DecoderT = TypeVar("DecoderT", Translator, Parser)


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """How models are run."""

    device: str = "cpu"
    precision: InferencePrecision = "fp32"
    engine: EngineName = "auto"
    decoding: DecodingOptions = NO_CHANGES  # of translators
    lists: TranslatorLists = NO_LISTS  # of translators
    max_batch: int = MAX_BATCH  # sentences
    max_wait_s: float = MAX_WAIT_S
    capacity: int = CAPACITY  # sentences that wait


class Served(Generic[ModelT, JobT]):
    """A model folder, its loaded model, and the queue of its jobs."""

    urgencies: ClassVar[Sequence[Urgency]] = (Urgency.BRIEF, Urgency.LONG)

    def __init__(
        self,
        folder: Path,
        *,
        options: ServingOptions,
        compute: ComputeThreads,
        metrics_of: Callable[[str], ModelMetrics],
    ) -> None:
        self.folder, self.options, self.compute = folder, options, compute
        self._stamp = _stamp(folder)
        self.model = in_new_thread(self.read)
        self.name = self.name_of(self.model)
        self.metrics = metrics = metrics_of(self.name)
        self._reloading = threading.Lock()
        self._batcher = Batcher[JobT](
            lambda jobs: self.run_batch(self.model, jobs),  # the model of this moment
            name=f"model {folder.name}",
            compute=compute,
            observer=metrics,
            max_batch=options.max_batch,
            max_wait_s=options.max_wait_s,
            capacity=options.capacity,
            urgencies=self.urgencies,
        )
        metrics.waiting(lambda: self._batcher.n_waiting)

    def use(self, n_threads: int) -> None:
        """Form batches for so many threads that compute."""
        self._batcher.use(n_threads)

    @property
    def is_reentrant(self) -> bool:
        """Whether several threads may compute with its model, each alone."""
        return getattr(getattr(self.model, "engine", None), "is_reentrant", False)

    def read(self) -> ModelT:
        """Read the model folder."""
        raise NotImplementedError

    def attentive(self, kind: type[DecoderT]) -> DecoderT:
        """Read the model folder; more urgent work passes between the steps of the model."""
        options = self.options
        model = kind.load(self.folder, device=options.device, precision=options.precision, engine=options.engine)
        model.attend(self.compute.give_way)
        return model

    def name_of(self, model: ModelT) -> str:
        """Return the name of a model in measurements and requests: that of its run, or of its folder."""
        folder = self.folder.resolve()
        return folder.parent.name if folder.name == "model" else folder.name

    def run_batch(self, model: ModelT, jobs: Sequence[JobT]) -> Sequence[Any]:
        """Do jobs of one kind, at least one."""
        raise NotImplementedError

    async def submit(self, jobs: Sequence[JobT], *, timeout_s: float = math.inf) -> list[Any]:
        """Queue jobs and return their results, in order; cancelling this cancels those that have not begun.

        Raises QueueFull, TooLong, DeadlineExceeded, Closed, or what the model raised.
        """
        if not jobs:
            return []
        futures = [asyncio.wrap_future(each) for each in self._batcher.submit(jobs, timeout_s=timeout_s)]
        try:
            return list(await asyncio.gather(*futures))
        finally:
            for future in futures:
                future.cancel()

    def has_changed(self) -> bool:
        """Return whether the folder holds another model than the one that was read."""
        return _stamp(self.folder) not in (self._stamp, None)

    def reload(self) -> None:
        """Read the folder anew; the model takes over with the next batch. No job is lost.

        Raises what reading raises, and CheckpointError for a model that does something else; the old model then stays.
        """
        with self._reloading:
            stamp = _stamp(self.folder)
            try:
                model = in_new_thread(self.read)
                self.require_same_use(model)
            except Exception:
                self._stamp = stamp  # not tried again until it changes
                self.metrics.swap("failed")
                raise
            self.model, self._stamp = model, stamp
            self.metrics.swap("done")

    def require_same_use(self, model: ModelT) -> None:
        """Raise CheckpointError if a model cannot take the place of the present one."""

    def close(self, timeout_s: float | None = None) -> None:
        """Finish the waiting jobs and end the thread."""
        self._batcher.close(timeout_s)


def _stamp(folder: Path) -> tuple[int, int] | None:
    """Return what changes when another model is put in place; None while there is none."""
    try:
        status = (folder / "manifest.json").stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino


@dataclass(frozen=True, slots=True)
class TextJob:
    """Work on a text."""

    text: str

    @property
    def kind(self) -> Hashable:
        """What jobs of one batch share."""
        return type(self).__name__

    @property
    def length(self) -> int:
        """Characters."""
        return len(self.text)


@dataclass(frozen=True, slots=True)
class TranslateJob(TextJob):
    """Translate a sentence."""

    n_best: int = 1
    prefix: Prefix = NO_PREFIX
    terms: Terms | None = None  # besides those of the server

    @property
    def kind(self) -> Hashable:
        """What jobs of one batch share."""
        return "translate", self.n_best, bool(self.prefix.text), self.terms


@dataclass(frozen=True, slots=True)
class AlternativesJob(TextJob):
    """Find translations that differ from the end of the prefix on."""

    prefix: str
    n: int


@dataclass(frozen=True, slots=True)
class AlignJob(TextJob):
    """Align a sentence with a translation."""

    translation: str

    @property
    def length(self) -> int:
        """Characters."""
        return max(len(self.text), len(self.translation))


TranslatorJob = TranslateJob | AlternativesJob | AlignJob


class ServedTranslator(Served[Translator, TranslatorJob]):
    """A translator; results are TranslatedSegment, list of ScoredText, and AlignedSentence."""

    def __init__(self, folder: Path, **options: Any) -> None:
        """``options`` are those of ``Served``."""
        self.term_translators = TermTranslators()
        super().__init__(folder, **options)

    def read(self) -> Translator:
        """Read the model folder. Raises ConfigError for options of the server that do not suit its search."""
        model = self.attentive(Translator)
        self._search(model, 1)
        return self.options.lists.given_to(model)

    def reload(self) -> None:
        """Read the folder anew, as ``Served.reload``."""
        super().reload()
        self.term_translators.clear()

    def name_of(self, model: Translator) -> str:
        """Return the direction of a model."""
        return f"{model.src_language}-{model.tgt_language}"

    @property
    def direction(self) -> tuple[str, str]:
        """Source and target language."""
        return self.model.src_language, self.model.tgt_language

    def run_batch(self, model: Translator, jobs: Sequence[TranslatorJob]) -> Sequence[Any]:
        """Do jobs of one kind."""
        match jobs[0]:
            case TranslateJob(n_best=n_best, terms=terms):
                if terms is not None:
                    model = self.term_translators.of(model, terms)
                return self._translate(model, [each for each in jobs if isinstance(each, TranslateJob)], n_best)
            case AlternativesJob():
                search = self._search(model, 1)
                asked = [each for each in jobs if isinstance(each, AlternativesJob)]
                return [model.alternatives(each.text, prefix=each.prefix, n=each.n, search=search) for each in asked]
            case AlignJob():
                return self._align(model, [each for each in jobs if isinstance(each, AlignJob)])

    def _translate(self, model: Translator, jobs: Sequence[TranslateJob], n_best: int) -> list[TranslatedSegment]:
        search = self._search(model, n_best)
        translated = model.translate_segments(
            [job.text for job in jobs], search, lowers_caps=True, prefixes=[job.prefix for job in jobs]
        )  # fmt: skip
        assert translated is not None  # not interrupted
        return translated

    def _align(self, model: Translator, jobs: Sequence[AlignJob]) -> list[AlignedSentence]:
        pairs, aligned = [(job.text, job.translation) for job in jobs], list[AlignedSentence]()
        for start in range(0, len(pairs), ALIGNED_TOGETHER):
            self.compute.give_way()
            aligned += align_words(model, pairs[start : start + ALIGNED_TOGETHER])
        return aligned

    def _search(self, model: Translator, n_best: int) -> SearchConfig:
        """Return the search of the server; its beam grows to ``n_best``."""
        return DecodingOptions(n_best=n_best).applied_to(self.options.decoding.applied_to(model.search))

    def require_same_use(self, model: Translator) -> None:
        """Raise CheckpointError for another direction."""
        if (model.src_language, model.tgt_language) != self.direction:
            raise CheckpointError(
                f"{self.folder} now translates {model.src_language}-{model.tgt_language}, it was served for "
                f"{'-'.join(self.direction)}; start the server again"
            )


class ParseJob(TextJob):
    """Parse a sentence whose words are separated by spaces."""


class ServedParser(Served[Parser, ParseJob]):
    """A parser; results are of the type Parse."""

    def read(self) -> Parser:
        """Read the model folder."""
        return self.attentive(Parser)

    def run_batch(self, model: Parser, jobs: Sequence[ParseJob]) -> Sequence[Parse]:
        """Do jobs of one kind."""
        parses = model.parse_interruptible(lambda: False, [tagged_words(job.text) for job in jobs])
        assert parses is not None  # not interrupted
        return parses


@dataclass(frozen=True, slots=True, eq=False)
class GenerateJob(TextJob):
    """Continue a prompt; new text is passed on in the thread of the model."""

    max_tokens: int
    sampling: Sampling
    seed: int
    on_text: Callable[[str], None]
    should_stop: Callable[[], bool]

    @property
    def kind(self) -> Hashable:
        """No two are done together, since each is streamed."""
        return id(self)


class ServedLanguageModel(Served[LanguageModel, GenerateJob]):
    """A language model that continues text or responds; results are of the type Continuation."""

    urgencies = (Urgency.GENERATION,)

    def read(self) -> LanguageModel:
        """Read the model folder."""
        return LanguageModel.load(self.folder, device=self.options.device, engine=self.options.engine)

    def run_batch(self, model: LanguageModel, jobs: Sequence[GenerateJob]) -> Sequence[Continuation]:
        """Do jobs of one kind: one."""
        [job] = jobs

        def should_stop() -> bool:
            self.compute.give_way()  # before each token, so that sentences of other models need not wait for the end
            return job.should_stop()

        return model.generate(
            [job.text], max_tokens=job.max_tokens, sampling=job.sampling, seed=job.seed, should_stop=should_stop,
            on_text=job.on_text,
        )  # fmt: skip


SERVED: Mapping[ServedAs, type[Served[Any, Any]]] = {
    "translator": ServedTranslator, "parser": ServedParser, "generator": ServedLanguageModel,
}  # fmt: skip


def compute_on_each_core(models: Sequence[Served[Any, Any]], compute: ComputeThreads) -> None:
    """Let a thread for each core compute, if the engines of all models can do that."""
    if all(each.is_reentrant for each in models):
        n = n_usable_threads()
        compute.use(n)
        for each in models:
            each.use(n)


def load_served(
    folder: Path, *, options: ServingOptions, compute: ComputeThreads, metrics_of: Callable[[str], ModelMetrics]
) -> Served[Any, Any]:
    """Load a model folder of any task that can be served.

    Raises CheckpointError if it cannot be used, or holds a model that neither translates, parses nor continues text.
    """
    saved = read_model_config(folder)
    capabilities = TrainedModel.class_for(saved).capabilities
    if capabilities.served_as is None:
        raise CheckpointError(
            f"{folder} holds a model for {saved.task}; serve has a use for translators, parsers and models that"
            " continue text"
        )
    return SERVED[capabilities.served_as](folder, options=options, compute=compute, metrics_of=metrics_of)
