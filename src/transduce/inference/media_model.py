"""Using models that read images or listen to audio: ``Reader`` and ``Transcriber``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from transduce.config import (
    ImagesData,
    InferencePrecision,
    SearchConfig,
    SpeechData,
    TransformerConfig,
    split_direction,
)
from transduce.config.decoding import DecodingOptions, EngineName
from transduce.config.search import SearchKeywords
from transduce.errors import DataError
from transduce.inference.arguments import require_sequence
from transduce.inference.devices import usable_device
from transduce.inference.engine import PLAIN_RUN, EngineSettings, Request, Run
from transduce.inference.engines import make_engine
from transduce.inference.folder import ModelFolder, read_model_folder
from transduce.inference.stored_model import StoredModel
from transduce.inference.trained_model import Capabilities, TrainedModel
from transduce.inference.translation.parts import ScoredText, distinct_texts
from transduce.media import Features, MediaKind, reader_of
from transduce.media.audio import FRAMES_PER_SECOND
from transduce.media.features import Warn
from transduce.text import Tokenizers, normalise
from transduce.text.chunks import chunks

if TYPE_CHECKING:
    import torch

    from transduce.model import Transformer
    from transduce.search import Hypothesis

__all__ = ["FoundText", "MediaModel", "Reader", "Transcriber"]

MAX_SOURCE_POSITIONS = 4096  # attention is quadratic in them
FILES_AT_ONCE = 64  # decoded before the first is searched: enough to batch those of similar length

Media = str | Path | NDArray[Any]  # a file, or a decoded image or recording

# Columns or frames of the longest training source of recipes, for model folders that do not say theirs.
_LONGEST: Mapping[MediaKind, int] = {
    "image": ImagesData().max_image_width, "audio": int(SpeechData().max_seconds * FRAMES_PER_SECOND),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FoundText:
    """The text found in a file."""

    source: str  # the file as given; "" for an array
    n_best: tuple[ScoredText, ...]  # best first; empty if there is an error
    warnings: tuple[str, ...] = ()  # why the text may be incomplete or poor; each names the file
    error: str | None = None  # why there is no text

    @property
    def text(self) -> str:
        """The best text; "" if there is an error."""
        return self.n_best[0].text if self.n_best else ""

    @property
    def score(self) -> float:
        """Score of the best text: log-probability over length penalty; NaN if there is an error."""
        return self.n_best[0].score if self.n_best else math.nan


@dataclass(slots=True)
class _Source:
    """A file or an array as the model reads it."""

    name: str  # "" for an array
    features: Features | None = None
    warnings: list[str] = field(default_factory=list)
    error: str | None = None


class MediaModel(TrainedModel):
    """A model from images or audio to text. Several threads may share one."""

    capabilities = Capabilities((), "a model of images or audio", "read")
    kind: ClassVar[MediaKind]

    def __init__(
        self,
        model: Transformer | StoredModel,
        tokenizers: Tokenizers,
        search: SearchConfig,
        *,
        direction: str,
        precision: InferencePrecision = "fp32",
        engine: EngineName = "auto",
        longest_source: int | None = None,
    ) -> None:
        """``longest_source``: columns or frames of the longest training source, by default the limit of recipes."""
        super().__init__(model)
        assert isinstance(model.config, TransformerConfig)
        self.config = model.config
        self.tokenizers, self.search, self.precision = tokenizers, search, precision
        self.src_language, self.tgt_language = split_direction(direction)
        self.reader = reader_of(self.kind, width=self.config.source_width)
        self.longest_source = longest_source or _LONGEST[self.kind]
        self._engine = make_engine(
            model, settings=EngineSettings(precision, tokenizers.tgt.suppressed_ids, engine=engine)
        )

    def __repr__(self) -> str:
        size = f"{self.config.layers_in_words()} of {self.config.d_model}"
        return f"{type(self).__name__}({size}, {self.precision} on {self.device})"

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        device: str | torch.device = "cpu",
        precision: InferencePrecision = "fp32",
        engine: EngineName = "auto",
    ) -> Self:
        """Load a model folder; ``MediaModel.load`` gives a ``Reader`` or a ``Transcriber``.

        Raises CheckpointError if it cannot be used or is for another task, ConfigError if the device does not exist or
        does not support the precision.
        """
        read = read_model_folder(Path(folder), device=usable_device(device))
        return cls.class_for(read).from_folder(read, precision=precision, engine=engine)

    @classmethod
    def from_folder(
        cls, loaded: ModelFolder, *, precision: InferencePrecision = "fp32", engine: EngineName = "auto"
    ) -> Self:
        """Return the model of a folder that has been read."""
        return cls(
            loaded.stored_as(TransformerConfig), loaded.tokenizers, loaded.search, direction=loaded.direction,
            precision=precision, engine=engine, longest_source=loaded.longest_source,
        )  # fmt: skip

    def find_texts(
        self,
        sources: Iterable[Media],
        *,
        n_best: int | None = None,
        search: SearchConfig | None = None,
        keep_going: bool = False,
        **options: Unpack[SearchKeywords],
    ) -> Iterator[FoundText]:
        """Yield the text of each file, or of each decoded image or recording, in order; some files are read ahead.

        ``n_best`` and ``options`` override fields of ``search``, by default the model's.

        Raises DataError, naming the file, for one that cannot be read, has nothing in it, or is too long; with
        ``keep_going``, such a file yields an error in place of a text.
        """
        search = DecodingOptions(n_best=n_best, **options).applied_to(search or self.search)
        for chunk in chunks(sources, FILES_AT_ONCE, lambda source: 1):
            read = [self._read(each, keep_going=keep_going) for each in chunk]
            hypotheses = self._hypotheses([each.features for each in read if each.features is not None], search)
            assert hypotheses is not None  # not interrupted
            remaining = iter(hypotheses)
            for source in read:
                found = () if source.features is None else next(remaining)
                yield self._found(source, found)

    def _hypotheses(
        self, features: Sequence[Features], search: SearchConfig, run: Run = PLAIN_RUN
    ) -> list[tuple[Hypothesis, ...]] | None:
        """Return the n-best outputs of each features (Z, X)."""
        limit = self._engine.max_positions
        lengths = [self.config.n_source_positions(len(each)) for each in features]
        requests = [
            Request(min(search.max_output_tokens(n), limit), source)
            for n, source in zip(lengths, features, strict=True)
        ]
        return self._engine.hypotheses(requests, search, run)

    def _read(self, source: Media, *, keep_going: bool) -> _Source:
        read = _Source("" if isinstance(source, np.ndarray) else str(source))
        try:
            read.features = self.features(source, read.warnings.append)
        except DataError as error:
            if not keep_going:
                raise
            read.error = str(error)
        return read

    def _found(self, source: _Source, hypotheses: Sequence[Hypothesis]) -> FoundText:
        if source.features is None:
            return FoundText(source.name, (), tuple(source.warnings), source.error)
        scored = distinct_texts(ScoredText(self._text(each.ids), each.score) for each in hypotheses)
        name, warnings = source.name or "an array", list(source.warnings)
        if len(source.features) > self.longest_source:
            longest = self.reader.length_in_words(self.longest_source)
            length = self.reader.length_in_words(len(source.features))
            warnings.append(
                f"{name} is {length}, in training none was more than {longest}; expect a poor text, or cut it"
            )
        if hypotheses and not hypotheses[0].is_finished:
            warnings.append(f"the text of {name} was cut off after {len(hypotheses[0].ids):,} tokens, its maximum")
        return FoundText(source.name, scored or (ScoredText("", 0.0),), tuple(warnings))

    def features(self, source: Media, warn: Warn = lambda message: None) -> Features:
        """Return what the model reads of a file, or of a decoded image or recording.

        ``warn`` is told if only a part of it is read. Raises as ``find_texts``.
        """
        if isinstance(source, np.ndarray):
            name = "an array"
            try:
                features = self.reader.features(source)
            except DataError as error:
                raise DataError(f"{name} {error}") from error
        else:
            name, features = str(source), self.reader.read(Path(source), warn)
        n_positions = self.config.n_source_positions(len(features))
        if n_positions > MAX_SOURCE_POSITIONS:
            raise DataError(
                f"{name} is too long: {n_positions:,} positions, at most {MAX_SOURCE_POSITIONS:,} are read; cut it"
            )
        return features

    def texts_of_features(self, should_stop: Callable[[], bool], features: Sequence[Features]) -> list[str] | None:
        """Return the text of each of several features; None if ``should_stop``, checked before each batch, is true."""
        found = self._hypotheses(features, self.search, Run(is_scored=False, should_stop=should_stop))
        return None if found is None else [self._text(each[0].ids) if each else "" for each in found]

    def _texts(
        self,
        sources: Sequence[Media],
        n_best: int | None,
        search: SearchConfig | None,
        options: SearchKeywords,
    ) -> list[Any]:
        found = list(self.find_texts(sources, n_best=n_best, search=search, **options))
        if n_best is None:
            return [each.text for each in found]
        return [[best.text for best in each.n_best] for each in found]

    def _text(self, ids: Iterable[int]) -> str:
        return normalise(self.tokenizers.tgt.decode(ids))


class Reader(MediaModel):
    """Reads the text of images: ``Reader.load(folder).read(["line.png"])``."""

    capabilities = Capabilities(("image-to-text",), "a model that reads images", "read")
    kind = "image"

    def read(
        self,
        images: Sequence[Media],
        *,
        n_best: int | None = None,
        search: SearchConfig | None = None,
        **options: Unpack[SearchKeywords],
    ) -> list[Any]:
        """Return the text of each image file, or grey image (rows, columns) of bytes; with ``n_best``, several.

        ``options`` override fields of ``search``, by default the model's; ``find_texts`` also tells what was left out.
        Raises DataError, naming the file, for one that cannot be read, TypeError for anything but a list.
        """
        require_sequence(images, "read takes a list of images", "for one image, read([image])[0]")
        return self._texts(images, n_best, search, options)


class Transcriber(MediaModel):
    """Writes down what is said in audio: ``Transcriber.load(folder).transcribe(["speech.wav"])``."""

    capabilities = Capabilities(("speech-to-text",), "a model that writes down speech", "transcribe")
    kind = "audio"

    def transcribe(
        self,
        recordings: Sequence[Media],
        *,
        n_best: int | None = None,
        search: SearchConfig | None = None,
        **options: Unpack[SearchKeywords],
    ) -> list[Any]:
        """Return the text of each audio file, or array of 16,000 samples a second; with ``n_best``, several.

        ``options`` override fields of ``search``, by default the model's; ``find_texts`` also tells what was left out.
        Raises DataError, naming the file, for one that cannot be read, TypeError for anything but a list.
        """
        require_sequence(recordings, "transcribe takes a list of recordings", "for one, transcribe([recording])[0]")
        return self._texts(recordings, n_best, search, options)
