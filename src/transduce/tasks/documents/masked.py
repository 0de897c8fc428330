"""The masked language modelling task: predict hidden tokens from both sides. Devlin et al. (2019)."""

from __future__ import annotations

from typing import Unpack

from transduce.config import DataConfig, ModelConfig
from transduce.data import Store
from transduce.data.batch_source import BatchOptions
from transduce.data.documents import TextBatch
from transduce.data.masking import MaskedBatches
from transduce.errors import ConfigError
from transduce.tasks.documents.text_task import TextTask
from transduce.tasks.registry import register
from transduce.tasks.task import CardUsage
from transduce.text import LANGUAGE_MODEL_TOKENS

__all__ = ["MaskedLanguageModelling"]


class MaskedLanguageModelling(TextTask[TextBatch]):
    """Encoder-only models: each position sees all others."""

    name = used_as = "masked-lm"
    progress_verb = "modelling"
    usage = CardUsage("filling gaps", "fill", "LanguageModel.load(folder).fill([...])")
    is_causal = False
    flop_tokens = "source"  # only some of them are targets

    def text_batches(
        self, store: Store, model: ModelConfig, data: DataConfig, **options: Unpack[BatchOptions]
    ) -> MaskedBatches:
        """Return batches of masked segments as long as the model's window.

        Raises ConfigError if that has no room for a token.
        """
        max_length = self.longest_segment(model, data)
        if max_length < 2:
            raise ConfigError(f"model.n_positions should be at least 2, BOS and a token, got {max_length}")
        mask_id = model.vocab_sizes[1] - len(LANGUAGE_MODEL_TOKENS)
        return MaskedBatches(store, mask_id=mask_id, max_length=max_length, **options)


register(MaskedLanguageModelling())
