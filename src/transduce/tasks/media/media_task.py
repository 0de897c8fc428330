"""The base of tasks from images or audio to text: preparation, batches, validation and evaluation by error rates.

Shapes: R rows of a store.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Unpack

import torch
from torch import nn

from transduce.config import DataConfig, MediaData, RunConfig, Split, TransformerConfig, split_direction
from transduce.corpora.media import MediaItem, MediaText
from transduce.data import Batch, ColumnKind, Ids, Store, StoreSummary, Vectors
from transduce.data.batch_source import BatchOptions
from transduce.data.media import FEATURES, TEXT, MediaBatches
from transduce.errors import ConfigError, DataError
from transduce.files import write_lines
from transduce.findings import Finding
from transduce.findings.media import examine_media_of
from transduce.inference.media_model import MediaModel
from transduce.media import FeaturesReader, MediaKind
from transduce.metrics import ErrorRates, TranslationScores, error_rates, has_spaces, score_translations
from transduce.model import EncoderDecoder, Transformer
from transduce.tasks.objective import PairObjective
from transduce.tasks.preparation import Preparation, Row
from transduce.tasks.prepared import Prepared
from transduce.tasks.task import EvaluationOptions, Processes, Task, score_table
from transduce.tasks.validation import PairValidation
from transduce.text import Tokenizers, normalise
from transduce.training import Score, Validation

__all__ = ["MediaTask", "MediaValidation", "media_scores"]

MAX_ERROR_RATE = 90.0  # percent, of a model that has learnt something
PARTS = ("clean", "noisy")  # of the test lines of generated images, by the beginning of their names


def media_scores(
    hypotheses: Sequence[str], references: Sequence[str], *, names: Sequence[str], kind: MediaKind, direction: str
) -> ErrorRates | TranslationScores:
    """Score the texts found in images or audio: error rates, or BLEU and chrF where speech is translated.

    ``names`` are those of the items; generated images are scored in parts, clean and noisy ones. Words that were heard
    are compared without case and punctuation.
    """
    if validated_score(kind, direction) == "bleu":
        return score_translations(hypotheses, references, language=split_direction(direction)[1])
    parts = [name.partition("/")[0] for name in names]
    has_parts = len(set(parts)) > 1 and set(parts) <= set(PARTS)
    return error_rates(hypotheses, references, parts=parts if has_parts else (), plain_words=kind == "audio")


def validated_score(kind: MediaKind, direction: str) -> str:
    """Return the name of the score of a validation: words are counted where spaces separate them.

    >>> [validated_score("image", "en-de"), validated_score("audio", "en-en"), validated_score("audio", "en-de")]
    ['character_error_rate', 'word_error_rate', 'bleu']
    >>> validated_score("audio", "ja-ja")
    'character_error_rate'
    """
    spoken, written = split_direction(direction)
    if kind == "audio" and spoken != written:
        return "bleu"
    return "word_error_rate" if kind == "audio" and has_spaces(written) else "character_error_rate"


class MediaValidation(PairValidation):
    """Perplexity of the dev texts, and the error rate of the texts found (BLEU where speech is translated)."""

    def __init__(self, user: type[MediaModel], *arguments: Any, **on: Any) -> None:
        """``user`` finds the texts; the others are those of ``PairValidation``."""
        self.user = user
        super().__init__(*arguments, **on)

    def _make_batches(self, store: Store, config: RunConfig, device: torch.device) -> MediaBatches:
        self._features = store.columns[FEATURES]
        max_tokens = config.training.max_tokens_per_batch
        return media_batches(store, config, max_tokens=max_tokens, seed=0, device=device)

    def _decode(self, model: EncoderDecoder, rows: Sequence[int], should_stop: Callable[[], bool]) -> list[str] | None:
        config = self.run_config
        assert isinstance(model, Transformer)
        reader = self.user(
            model, self.tokenizers, self._search, direction=config.data.direction,
            precision=config.training.precision,
        )  # fmt: skip
        return reader.texts_of_features(should_stop, [self._features.row(row) for row in rows])

    def _validation(self, nll_nats: float, outputs: list[str]) -> Validation:
        direction, kind = self.run_config.data.direction, self.user.kind
        name = validated_score(kind, direction)
        scores = media_scores(outputs, self._references, names=[], kind=kind, direction=direction)
        if isinstance(scores, TranslationScores):
            return Validation(nll_nats, {name: Score(scores.sacrebleu.score, scores.sacrebleu.signature)})
        rate = getattr(scores, name)
        return Validation(nll_nats, {name: Score(rate.score, rate.signature, lower_is_better=True)})


def media_batches(
    store: Store, config: RunConfig, *, n_masks: int = 0, **options: Unpack[BatchOptions]
) -> MediaBatches:
    """Return batches of a store for the model of a configuration."""
    model = config.model
    assert isinstance(model, TransformerConfig)
    stride, n_positions = model.source_stride, model.n_source_positions
    return MediaBatches(store, stride=stride, n_positions=n_positions, n_masks=n_masks, **options)


class MediaPreparation(Preparation[MediaItem, MediaData]):
    """Preparation of images or audio: features, ids, and the names and texts of dev and test."""

    task: MediaTask

    def make_source(self, config: MediaData) -> MediaText:
        """Return the items that a configuration names."""
        return MediaText(config, self.task.reader(config), n_workers=self.n_workers, log=self.log)

    def training_texts(self) -> Iterator[str]:
        """Yield the texts of the training items, without reading images or audio."""
        assert isinstance(self.source, MediaText)
        return filter(str.strip, chain.from_iterable(map(self.source.train_texts, self.source.corpora)))

    def require_fit(self, existing: Tokenizers) -> None:
        """Raise ConfigError if the other model does not write text."""
        if existing.tgt.is_closed:
            raise ConfigError(f"{self.config.tokenizer_from} writes trees; texts need a vocabulary of text")

    def columns(self) -> dict[str, ColumnKind]:
        """Return the columns of features and ids."""
        reader = self.task.reader(self.config)
        features = Vectors(width=reader.width, dtype=reader.dtype)
        return {FEATURES: features, TEXT: Ids(vocab_size=self.tokenizers.tgt.size)}

    def rows(self, item: MediaItem) -> Iterator[Row]:
        """Yield the features and ids of an item, unless it is to be learnt and its text is too long."""
        ids = self.tokenizers.tgt.encode(normalise(item.text))
        if self.max_length is not None and len(ids) >= self.max_length:
            self.left_out.n_too_long += 1
        else:
            yield {FEATURES: item.features, TEXT: ids}

    @property
    def max_length(self) -> int | None:
        """The bound on the texts of training, EOS included."""
        return self.config.max_length if self.split == "train" else None

    def write_store(self, folder: Path, items_of: Mapping[str, Iterable[MediaItem]]) -> StoreSummary:
        """Write the store, and names and texts of dev and test while it is written."""
        kept = list[tuple[str, str]]()

        def keeping(items: Iterable[MediaItem]) -> Iterator[MediaItem]:
            for item in items:
                kept.append((" ".join(item.name.split()), normalise(item.text)))
                yield item

        is_kept = self.split != "train"
        summary = super().write_store(
            folder, {corpus: keeping(items) if is_kept else items for corpus, items in items_of.items()}
        )
        for name, lines in zip(self.task.text_files(self.split), zip(*kept, strict=True), strict=False):
            write_lines(folder.with_name(name), lines)
        return summary


class MediaTask(Task[Batch]):
    """A task from images or audio to text. The encoder's front end reads features instead of tokens. Section 7."""

    settings: ClassVar[type[MediaData]]
    system = TransformerConfig
    reads = frozenset({"training.r_drop", "training.r_drop_after", "training.feature_masks", "training.ctc_weight"})
    has_one_vocabulary = True
    preparation = MediaPreparation
    flop_tokens = None  # an image or a recording has many more positions than its text has tokens
    user: ClassVar[type[MediaModel]]  # what users call: a ``Reader`` or a ``Transcriber``

    def require_fit(self, config: RunConfig) -> None:
        """Raise ValueError if the settings do not fit: the model reads features of the width of the data."""
        super().require_fit(config)
        setting = self.settings.width_setting
        assert isinstance(config.model, TransformerConfig)
        width, wanted = config.model.source_width, getattr(config.data, setting)
        if width != wanted:
            raise ValueError(f"model.source_width should be data.{setting}, got {width} and {wanted}; set both")

    @property
    def kind(self) -> MediaKind:
        """What the models read."""
        return self.user.kind

    @abstractmethod
    def reader(self, config: Any) -> FeaturesReader:
        """Return the reader of files, with the limits of training."""

    def examine(self, data: DataConfig, recipe: Path, data_folder: Path | None) -> Iterator[Finding]:
        """Examine the images or recordings."""
        return examine_media_of(data, recipe, self.reader)

    def text_files(self, split: Split) -> tuple[str, str]:
        """Return the files of the names and of the texts of the items, aligned by line."""
        return f"{split}.names", f"{split}.txt"

    def longest_source(self, prepared: Prepared) -> int | None:
        """Return the columns or frames of the longest training source."""
        return int(prepared.train.columns[FEATURES].lengths_R.max())

    def batches(self, store: Store, config: RunConfig, device: torch.device) -> MediaBatches:
        """Return batches of approximately equal length."""
        n_masks = config.training.feature_masks
        return media_batches(store, config, n_masks=n_masks, **self.batch_options(config, device))

    def objective(self, model: nn.Module, config: RunConfig) -> PairObjective:
        """Return the label-smoothed cross-entropy of the text given the image or the recording. Section 5.4."""
        assert isinstance(model, EncoderDecoder)
        return PairObjective(model, config.training)

    def validator(
        self, model: Callable[[], nn.Module], prepared: Prepared, config: RunConfig, **on: Unpack[Processes]
    ) -> MediaValidation | None:
        """Return the validation: perplexity of the dev texts, and the error rate of the texts found."""
        text = prepared.text("dev")
        if prepared.dev is None or text is None:
            return None
        return MediaValidation(self.user, model, prepared.tokenizers, prepared.dev, text, config, **on)

    def validated_scores(self, config: RunConfig) -> tuple[str, ...]:
        """Return the name of the score of a validation."""
        return (validated_score(self.kind, config.data.direction),) if config.training.validation_bleu else ()

    def evaluate(
        self, model_folder: Path, prepared: Prepared, split: Split, **options: Unpack[EvaluationOptions]
    ) -> ErrorRates | TranslationScores:
        """Find the texts of dev or test and return their error rates; BLEU and chrF where speech is translated."""
        text = prepared.text(split)
        if text is None:
            raise DataError(f"{prepared.folder} has no {split} text")
        features = self.open_store(prepared.folder / split, prepared.tokenizers).columns[FEATURES]
        found = self.load(model_folder, device=options["device"]).texts_of_features(
            lambda: False, [features.row(row) for row in range(len(text[1]))]
        )
        assert found is not None  # not interrupted
        return media_scores(found, text[1], names=text[0], kind=self.kind, direction=prepared.config.direction)

    def has_learnt(self, scores: ErrorRates | TranslationScores) -> bool:
        """Whether a tenth of the characters is right, or translated speech has some phrases in common."""
        if isinstance(scores, TranslationScores):
            return not scores.is_by_chance
        return scores.character_error_rate.score <= MAX_ERROR_RATE

    def score_lines(self, scores: Any, config: RunConfig) -> list[str]:
        """Return a table of scores with their signatures."""
        return score_table(scores)
