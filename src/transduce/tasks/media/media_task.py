"""The base of tasks from images or audio to text: preparation, batches, validation and evaluation by error rates.

Shapes: R rows of a store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

import torch
from torch import nn

from transduce.config import DataConfig, RunConfig, Split, TransformerConfig, split_direction
from transduce.corpora.media import MediaItem, MediaReport, MediaText
from transduce.data import Batch, LeftOut, Store, Vectors, write_store
from transduce.data.media import MediaBatches, media_columns, open_media
from transduce.errors import ConfigError, DataError
from transduce.files import write_lines
from transduce.findings import Finding
from transduce.findings.media import examine_media_of
from transduce.inference.media_model import MediaModel
from transduce.media import FeaturesReader, MediaKind, reader_of
from transduce.media.audio import FRAMES_PER_SECOND
from transduce.metrics import ErrorRates, TokenisedBleu, TranslationScores, error_rates, has_spaces, score_translations
from transduce.model import EncoderDecoder, Transformer
from transduce.tasks.objective import PairObjective
from transduce.tasks.preparation import EVALUATION_SPLITS, Prepared, new_prepared
from transduce.tasks.task import Task
from transduce.tasks.tokenizers import tokenizer_trainer, tokenizers_of_model
from transduce.tasks.validation import PairValidation
from transduce.text import Tokenizer, Tokenizers, normalise
from transduce.training import DistributedContext, Score, Validation

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

    user: ClassVar[type[MediaModel]]  # what finds the texts

    def _make_batches(self, store: Store, config: RunConfig, device: torch.device) -> MediaBatches:
        self._features = store.columns["features"]
        return media_batches(store, config, device, max_tokens=config.training.max_tokens_per_batch, seed=0)

    def _decode(self, model: EncoderDecoder, rows: Sequence[int], should_stop: Callable[[], bool]) -> list[str] | None:
        config = self.run_config
        reader = self.user(
            cast(Transformer, model), self.tokenizers, self._search, direction=config.data.direction,
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
    store: Store, config: RunConfig, device: torch.device, *, max_tokens: int, seed: int, n_masks: int = 0
) -> MediaBatches:
    """Return batches of a store for the model of a configuration."""
    model = config.model
    assert isinstance(model, TransformerConfig)
    return MediaBatches(
        store,
        stride=model.source_stride,
        n_positions=model.n_source_positions,
        max_tokens=max_tokens,
        seed=seed,
        device=device,
        weights=config.data.weights,
        n_masks=n_masks,
    )


class MediaTask(Task[Batch]):
    """A task from images or audio to text. The encoder's front end reads features instead of tokens. Section 7."""

    validation: ClassVar[type[MediaValidation]]

    @property
    def user(self) -> type[MediaModel]:
        """What users call: a ``Reader`` or a ``Transcriber``."""
        return self.validation.user

    @property
    def kind(self) -> MediaKind:
        """What the models read."""
        return self.user.kind

    def reader(self, config: DataConfig) -> FeaturesReader:
        """Return the reader of files, with the limits of training."""
        if self.kind == "image":
            return reader_of("image", width=config.image_height, max_columns=config.max_image_width)
        return reader_of("audio", width=config.n_bands, max_columns=int(config.max_seconds * FRAMES_PER_SECOND))

    def examine(self, data: DataConfig, recipe: Path, data_folder: Path | None) -> Iterator[Finding]:
        """Examine the images or recordings."""
        return examine_media_of(data, recipe, self.reader)

    def prepare(
        self,
        config: DataConfig,
        folder: Path,
        *,
        data_folder: Path | None,
        log: Callable[[str], None],
        n_workers: int = 1,
    ) -> None:
        """Train the tokenizer on the training texts, and write the features and ids of all splits."""
        text, reader = MediaText(config, n_workers=n_workers), self.reader(config)
        names = {split: text.name_of(split) for split in EVALUATION_SPLITS if text.name_of(split)}
        reports = {corpus: MediaReport() for corpus in text.corpora}
        with new_prepared(config, folder, names, reports) as temporary:
            tokenizer = _tokenizer(config, text)
            tokenizers = Tokenizers(tokenizer, tokenizer)
            tokenizers.save(temporary)
            log(f"tokenizer: {tokenizer.size:,} tokens")
            columns = media_columns(Vectors(width=reader.width, dtype=reader.dtype), tokenizers)
            write = partial(write_store, columns=columns, tokenizer_fingerprint=tokenizers.fingerprint)
            for split in names:  # first: an error is reported before hours of work
                kept = list[tuple[str, str]]()
                rows = self._rows(text.items(split, reader, log), tokenizer, kept=kept)
                write(temporary / split, {str(split): rows})
                for ending, column in zip(("names", "txt"), zip(*kept, strict=True), strict=True):
                    write_lines(temporary / f"{split}.{ending}", column)
                log(f"{split}: {len(kept):,} {self.rows}")
            left_out, max_length = LeftOut(), config.max_length
            rows_of = {
                corpus: self._rows(
                    text.train(corpus, reader, report), tokenizer, left_out=left_out, max_length=max_length
                )
                for corpus, report in reports.items()
            }
            summary = write(temporary / "train", rows_of, max_length=max_length, left_out=left_out)
            for corpus, report in reports.items():
                for line in (*report.lines(), *report.notes()):
                    log(f"{corpus}: {line}")
            long = f", {left_out.n_too_long:,} left out (text too long)" if left_out.n_too_long else ""
            log(f"train: {summary.n_pairs:,} {self.rows}{long}")

    def _rows(
        self,
        items: Iterator[MediaItem],
        tokenizer: Tokenizer,
        *,
        kept: list[tuple[str, str]] | None = None,
        left_out: LeftOut | None = None,
        max_length: int | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yield the features and ids of each item; ``kept`` receives their names and texts."""
        for item in items:
            ids = tokenizer.encode(normalise(item.text))
            if left_out is not None and max_length is not None and len(ids) >= max_length:
                left_out.n_too_long += 1
                continue
            if kept is not None:
                kept.append((" ".join(item.name.split()), normalise(item.text)))
            yield {"features": item.features, "text": ids}

    def open_store(self, folder: Path, tokenizers: Tokenizers) -> Store:
        """Open a store of a prepared folder. Raises DataError if it cannot be used."""
        return open_media(folder, tokenizers)

    def text_files(self, split: Split) -> tuple[str, str]:
        """Return the files of the names and of the texts of the items, aligned by line."""
        return f"{split}.names", f"{split}.txt"

    def longest_source(self, prepared: Prepared) -> int | None:
        """Return the columns or frames of the longest training source."""
        return int(prepared.train.columns["features"].lengths_R.max())

    def n_flop_tokens(self, src_tokens: int, tgt_tokens: int) -> int | None:
        """Return None: an image or a recording has many more positions than its text has tokens."""
        return None

    def batches(self, store: Store, config: RunConfig, device: torch.device) -> MediaBatches:
        """Return batches of approximately equal length."""
        training = config.training
        return media_batches(
            store, config, device, max_tokens=training.max_tokens_per_batch, seed=training.seed,
            n_masks=training.feature_masks,
        )  # fmt: skip

    def objective(self, model: nn.Module, config: RunConfig) -> PairObjective:
        """Return the label-smoothed cross-entropy of the text given the image or the recording. Section 5.4."""
        return PairObjective(cast(EncoderDecoder, model), config.training)

    def validator(
        self,
        model: Callable[[], nn.Module],
        prepared: Prepared,
        config: RunConfig,
        *,
        device: torch.device,
        distributed: DistributedContext | None = None,
    ) -> MediaValidation | None:
        """Return the validation: perplexity of the dev texts, and the error rate of the texts found."""
        text, get_model = prepared.text("dev"), cast(Callable[[], EncoderDecoder], model)
        if prepared.dev is None or text is None:
            return None
        return self.validation(
            get_model, prepared.tokenizers, prepared.dev, text, config, device=device, distributed=distributed
        )

    def validated_scores(self, config: RunConfig) -> tuple[str, ...]:
        """Return the name of the score of a validation."""
        return (validated_score(self.kind, config.data.direction),) if config.training.validation_bleu else ()

    def evaluate(
        self,
        model_folder: Path,
        prepared: Prepared,
        split: Split,
        *,
        device: str | torch.device = "cpu",
        also: Collection[TokenisedBleu] = (),
    ) -> ErrorRates | TranslationScores:
        """Find the texts of dev or test and return their error rates; BLEU and chrF where speech is translated."""
        text = prepared.text(split)
        if text is None:
            raise DataError(f"{prepared.folder} has no {split} text")
        features = self.open_store(prepared.folder / split, prepared.tokenizers).columns["features"]
        found = self.load(model_folder, device=device).texts_of_features(
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
        entries = ((name, entry) for name, entry in scores.as_json().items() if isinstance(entry, dict))
        return [
            "| metric | score | signature |",
            "| --- | --- | --- |",
            *(f"| {name} | {each['score']:.2f} | `{each['signature'].replace('|', ' ')}` |" for name, each in entries),
        ]


def _tokenizer(config: DataConfig, text: MediaText) -> Tokenizer:
    """Train the tokenizer on the training texts, or take that of ``tokenizer_from``."""
    existing = tokenizers_of_model(config)
    if existing is not None:
        if existing.tgt.is_closed:
            raise ConfigError(f"{config.tokenizer_from} writes trees; texts need a vocabulary of text")
        return existing.tgt
    texts = (normalise(each) for corpus in text.corpora for each in text.train_texts(corpus) if each.strip())
    return tokenizer_trainer(config)(texts)
