"""The span corruption task: text-to-text pre-training of encoder-decoders. Raffel et al. (2020)."""

from __future__ import annotations

from typing import Unpack

from torch import nn

from transduce.config import DataConfig, ModelConfig, RunConfig, SegmentsData, TransformerConfig
from transduce.data import Batch, Store
from transduce.data.batch_source import BatchOptions
from transduce.data.span_batches import SpanBatches
from transduce.model import EncoderDecoder
from transduce.tasks.documents.text_task import TextTask
from transduce.tasks.objective import PairObjective
from transduce.tasks.registry import register
from transduce.tasks.task import CardUsage, Task
from transduce.text import SENTINELS

__all__ = ["SpanCorruption"]


class SpanCorruption(TextTask[Batch]):
    """Encoder-decoders that write the spans missing in their source."""

    name = used_as = "span-corruption"
    progress_verb = "modelling"
    usage = CardUsage("filling gaps", "fill", "LanguageModel.load(folder).fill([...])")
    settings = SegmentsData
    searches = Task.searches
    system = TransformerConfig
    has_one_vocabulary = True
    flop_tokens = None  # the encoder reads several times as many as the decoder writes

    def longest_segment(self, model: ModelConfig, data: DataConfig) -> int:
        """Return the number of tokens of the longest segment."""
        return SegmentsData.of(data).max_length

    def text_batches(
        self, store: Store, model: ModelConfig, data: DataConfig, **options: Unpack[BatchOptions]
    ) -> SpanBatches:
        """Return batches of corrupted segments of ``data.max_length`` tokens, and their missing spans."""
        size = model.vocab_sizes[1]
        sentinels = range(size - len(SENTINELS), size)
        return SpanBatches(store, sentinels=sentinels, max_length=self.longest_segment(model, data), **options)

    def objective(self, model: nn.Module, config: RunConfig) -> PairObjective:
        """Return the cross-entropy of the missing spans."""
        assert isinstance(model, EncoderDecoder)
        return PairObjective(model, config.training)


register(SpanCorruption())
