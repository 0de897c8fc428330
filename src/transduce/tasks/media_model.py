"""Using models that read images or listen to audio: ``Reader`` and ``Transcriber``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypedDict, Unpack

import numpy as np
import torch
from numpy.typing import NDArray

from transduce.config import InferencePrecision, SearchConfig
from transduce.errors import DataError
from transduce.media import Features, MediaKind, reader_of
from transduce.model import Transformer
from transduce.tasks.batch_search import require_sequence
from transduce.tasks.devices import usable_device
from transduce.tasks.media_search import MAX_SOURCE_POSITIONS, MediaSearch
from transduce.tasks.model_folder import read_model_folder
from transduce.tasks.translation_parts import ScoredText, distinct_texts
from transduce.tasks.translator import search_with
from transduce.text import Tokenizers, normalise
from transduce.text.chunks import chunks

__all__ = ["FoundText", "MediaModel", "Reader", "Transcriber"]

FILES_AT_ONCE = 64  # decoded before the first is searched: enough to batch those of similar length

Media = str | Path | NDArray[Any]  # a file, or a decoded image or recording


class SearchOptions(TypedDict, total=False):
    """Options that override those of the model's search."""

    beam_size: int | None
    alpha: float | None
    max_tokens_per_batch: int | None
    search: SearchConfig | None


@dataclass(frozen=True, slots=True)
class FoundText:
    """The text found in a file."""

    source: str  # the file as given; "" for an array
    n_best: tuple[ScoredText, ...]  # best first; never empty

    @property
    def text(self) -> str:
        """The best text."""
        return self.n_best[0].text

    @property
    def score(self) -> float:
        """Score of the best text: log-probability over length penalty."""
        return self.n_best[0].score


class MediaModel:
    """A model from images or audio to text. Several threads may share one."""

    task: ClassVar[str]
    kind: ClassVar[MediaKind]

    def __init__(
        self,
        model: Transformer,
        tokenizers: Tokenizers,
        search: SearchConfig,
        *,
        direction: str,
        precision: InferencePrecision = "fp32",
    ) -> None:
        self.model, self.tokenizers, self.search, self.precision = model, tokenizers, search, precision
        self.src_language, self.tgt_language = direction.split("-")
        self.reader = reader_of(self.kind, width=model.config.source_width)
        self._search = MediaSearch(model, tokenizers.tgt, precision=precision)

    def __repr__(self) -> str:
        config, device = self.model.config, self.model.output_weight.device
        return f"{type(self).__name__}({config.layers_in_words()} of {config.d_model}, {self.precision} on {device})"

    @classmethod
    def load(
        cls, folder: str | Path, *, device: str | torch.device = "cpu", precision: InferencePrecision = "fp32"
    ) -> Self:
        """Load a model folder.

        Raises CheckpointError if it cannot be used or is for another task, ConfigError if the device does not exist or
        does not support the precision.
        """
        read = read_model_folder(Path(folder), device=usable_device(device))
        read.require_task(cls.task, Path(folder))
        return cls(read.model, read.tokenizers, read.search, direction=read.direction, precision=precision)

    def find_texts(
        self, sources: Iterable[Media], *, n_best: int | None = None, **options: Unpack[SearchOptions]
    ) -> Iterator[FoundText]:
        """Yield the text of each file, or of each decoded image or recording, in order; some files are read ahead.

        Raises DataError, naming the file, for one that cannot be read, has nothing in it, or is too long.
        """
        search = self._search_with(n_best, options)
        for chunk in chunks(sources, FILES_AT_ONCE, lambda source: 1):
            hypotheses = self._search([self.features(each) for each in chunk], search)
            assert hypotheses is not None  # not interrupted
            for source, found in zip(chunk, hypotheses, strict=True):
                name = "" if isinstance(source, np.ndarray) else str(source)
                scored = distinct_texts(ScoredText(self._text(each.ids), each.score) for each in found)
                yield FoundText(name, scored or (ScoredText("", 0.0),))

    def features(self, source: Media) -> Features:
        """Return what the model reads of a file, or of a decoded image or recording. Raises as ``find_texts``."""
        if isinstance(source, np.ndarray):
            name = "an array"
            try:
                features = self.reader.features(source)
            except DataError as error:
                raise DataError(f"{name} {error}") from error
        else:
            name, features = str(source), self.reader.read(Path(source))
        n_positions = self.model.config.n_source_positions(len(features))
        if n_positions > MAX_SOURCE_POSITIONS:
            raise DataError(
                f"{name} is too long: {n_positions:,} positions, at most {MAX_SOURCE_POSITIONS:,} are read; cut it"
            )
        return features

    def texts_of_features(self, should_stop: Callable[[], bool], features: Sequence[Features]) -> list[str] | None:
        """Return the text of each of several features; None if ``should_stop``, checked before each batch, is true."""
        found = self._search(features, self.search, should_stop=should_stop, is_scored=False)
        return None if found is None else [self._text(each[0].ids) if each else "" for each in found]

    def _texts(self, sources: Sequence[Media], n_best: int | None, options: SearchOptions) -> list[Any]:
        found = list(self.find_texts(sources, n_best=n_best, **options))
        if n_best is None:
            return [each.text for each in found]
        return [[best.text for best in each.n_best] for each in found]

    def _text(self, ids: Iterable[int]) -> str:
        return normalise(self.tokenizers.tgt.decode(ids))

    def _search_with(self, n_best: int | None, options: SearchOptions) -> SearchConfig:
        return search_with(
            options.get("search") or self.search,
            n_best=n_best,
            beam_size=options.get("beam_size"),
            alpha=options.get("alpha"),
            max_tokens_per_batch=options.get("max_tokens_per_batch"),
        )


class Reader(MediaModel):
    """Reads the text of images: ``Reader.load(folder).read(["line.png"])``."""

    task, kind = "image-to-text", "image"

    def read(
        self, images: Sequence[Media], *, n_best: int | None = None, **options: Unpack[SearchOptions]
    ) -> list[Any]:
        """Return the text of each image file, or grey image (rows, columns) of bytes; with ``n_best``, several.

        The other options override those of the model's search. Raises DataError, naming the file, for one that cannot
        be read, TypeError for anything but a list.
        """
        require_sequence(images, "read takes a list of images", "for one image, read([image])[0]")
        return self._texts(images, n_best, options)


class Transcriber(MediaModel):
    """Writes down what is said in audio: ``Transcriber.load(folder).transcribe(["speech.wav"])``."""

    task, kind = "speech-to-text", "audio"

    def transcribe(
        self, recordings: Sequence[Media], *, n_best: int | None = None, **options: Unpack[SearchOptions]
    ) -> list[Any]:
        """Return the text of each audio file, or array of 16,000 samples a second; with ``n_best``, several.

        The other options override those of the model's search. Raises DataError, naming the file, for one that cannot
        be read, TypeError for anything but a list.
        """
        require_sequence(recordings, "transcribe takes a list of recordings", "for one, transcribe([recording])[0]")
        return self._texts(recordings, n_best, options)
