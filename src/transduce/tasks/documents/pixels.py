"""The task of images as sequences of pixels, by class. Parmar et al. (2018), without their restricted attention.

A causal language model reads the class, then predicts one pixel after the other, row by row; only pixels are targets.

Shapes: B images of a batch, T positions, N real positions that have targets: the pixels of all images.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch
from numpy.typing import NDArray

from transduce.config import DataConfig, FirstItems, ModelConfig, RunConfig, Split
from transduce.corpora.digits import DIGIT_PIXELS, DigitText
from transduce.data import Store
from transduce.data.batch_source import BatchOptions
from transduce.data.documents import CausalBatches, TextBatch
from transduce.errors import ConfigError
from transduce.findings import Finding
from transduce.findings.documents import examine_digits_of
from transduce.tasks.documents.text_task import DocumentPreparation, TextTask
from transduce.tasks.prepared import Prepared
from transduce.tasks.registry import register
from transduce.tasks.task import CardUsage, EvaluationOptions
from transduce.text import Tokenizers
from transduce.training import Score

__all__ = ["PixelBatches", "PixelScore", "PixelTask"]

FIRST = 2  # position that predicts the first pixel: after BOS and the space before a line, that of the class
N_POSITIONS = FIRST + DIGIT_PIXELS  # that are read


@dataclass(frozen=True, slots=True)
class PixelScore:
    """Cross-entropy of images, given their classes."""

    bits_per_dimension: float  # bits per pixel; 17 equally probable levels have log2(17) = 4.09
    images: int

    def as_json(self) -> dict[str, Any]:
        """Return the JSON values that the command line prints."""
        return asdict(self)


class PixelBatches(CausalBatches):
    """Batches of whole images, whose pixels are the targets."""

    def _collate_rows(self, epoch: int, rows_B: NDArray[np.int64]) -> TextBatch:
        whole = super()._collate_rows(epoch, rows_B)
        n_B = self._lengths(epoch)[0][rows_B].astype(np.int64)
        starts_B = np.cumsum(n_B) - n_B
        positions_N = torch.from_numpy((starts_B[:, None] + np.arange(FIRST, N_POSITIONS)).reshape(-1))
        positions_N = positions_N.to(whole.targets_N.device)
        return TextBatch(whole.ids_BT, whole.targets_N[positions_N], positions_N)

    def n_tokens(self, epoch: int, index: int) -> tuple[int, int]:
        """Number of tokens read, and of pixels, in a batch."""
        n_read, _ = super().n_tokens(epoch, index)
        return n_read, DIGIT_PIXELS * self.n_rows(epoch, index)


class DigitPreparation(DocumentPreparation[FirstItems]):
    """Preparation of digits."""

    def make_source(self, config: FirstItems) -> DigitText:
        """Return the digits. Raises ConfigError for another corpus, or for tokens that are no pixels."""
        if config.tokenizer not in ("characters", "bytes"):
            raise ConfigError(
                f"task = {config.task!r} needs data.tokenizer = 'characters', a token for each grey level, got"
                f" {config.tokenizer!r}"
            )
        return DigitText(config)


class PixelTask(TextTask[TextBatch]):
    """Images by class."""

    name = used_as = "pixels"
    example_noun = "images"
    progress_verb = "drawing"
    usage = CardUsage("drawing digits", "generate", "PixelModel.load(folder).draw([3, 7])")
    settings = FirstItems
    is_causal = True
    preparation = DigitPreparation
    score_of_validation = "bits_per_dimension"

    def examine(self, data: DataConfig, recipe: Path, data_folder: Path | None) -> Iterator[Finding]:
        """Examine the images."""
        return examine_digits_of(data, recipe, data_folder)

    def longest_segment(self, model: ModelConfig, data: DataConfig) -> int:
        """Return the number of positions of an image. Raises ConfigError if the model's window is smaller."""
        window = super().longest_segment(model, data)
        needed = N_POSITIONS + 2  # the line end and EOS are read, too
        if window < needed:
            raise ConfigError(f"an image has {needed} positions; model.n_positions = {window} is too small")
        return needed

    def text_batches(
        self, store: Store, model: ModelConfig, data: DataConfig, **options: Unpack[BatchOptions]
    ) -> PixelBatches:
        """Return batches of whole images."""
        max_length = self.longest_segment(model, data)
        return PixelBatches(store, max_length=max_length, **options)

    def validation_scores(self, dev: Store, tokenizers: Tokenizers) -> Callable[[float, int], Mapping[str, Score]]:
        """Return the function from the cross-entropy of the dev pixels to bits per dimension."""
        return lambda nats, n_pixels: {"bits_per_dimension": Score(nats / math.log(2) / n_pixels, lower_is_better=True)}

    def evaluate(
        self, model_folder: Path, prepared: Prepared, split: Split, **options: Unpack[EvaluationOptions]
    ) -> PixelScore:
        """Return the bits per dimension of dev or test."""
        score = super().evaluate(model_folder, prepared, split, **options)
        return PixelScore(score.nats / math.log(2) / score.tokens, score.tokens // DIGIT_PIXELS)

    def score_lines(self, scores: Any, config: RunConfig) -> Sequence[str]:
        """Return the score for the model card."""
        return [f"- bits per dimension: {scores.bits_per_dimension:.4f}, of {scores.images:,} images"]


register(PixelTask())
