"""The masked language modelling task: predict hidden tokens from both sides. Devlin et al. (2019)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import torch
from torch import nn

from transduce.config import DataConfig, LanguageModelConfig, ModelConfig, RunConfig
from transduce.data import Store
from transduce.data.documents import TextBatch
from transduce.data.masking import MaskedBatches
from transduce.errors import ConfigError
from transduce.model import TransformerLM
from transduce.tasks.masked_language_model import MaskedLanguageModel
from transduce.tasks.registry import register
from transduce.tasks.task import Use
from transduce.tasks.text_task import TextObjective, TextTask
from transduce.text import LANGUAGE_MODEL_TOKENS, Tokenizers

__all__ = ["MaskedLanguageModelling"]


class MaskedLanguageModelling(TextTask[TextBatch]):
    """Encoder-only models: each position sees all others."""

    name = "masked-lm"
    doing = "modelling"

    def build_model(self, config: ModelConfig, tokenizers: Tokenizers | None) -> TransformerLM:
        """Build a model. Raises ConfigError unless it is a bidirectional language model."""
        return TransformerLM.from_config(_bidirectional(config))

    def n_counted_tokens(self, src_tokens: int, tgt_tokens: int) -> int:
        """Return the tokens read; only some of them are targets."""
        return src_tokens

    def text_batches(
        self,
        store: Store,
        model: ModelConfig,
        data: DataConfig,
        *,
        max_tokens: int,
        seed: int,
        device: torch.device,
        weights: Mapping[str, float] | None = None,
    ) -> MaskedBatches:
        """Return batches of masked segments as long as the model's window."""
        config = _bidirectional(model)
        return MaskedBatches(
            store,
            mask_id=config.vocab_size - len(LANGUAGE_MODEL_TOKENS),
            max_length=config.n_positions,
            max_tokens=max_tokens,
            seed=seed,
            device=device,
            weights=weights,
        )

    def objective(self, model: nn.Module, config: RunConfig) -> TextObjective:
        """Return the cross-entropy of the chosen tokens."""
        return TextObjective(cast(TransformerLM, model), config.training)

    def load(self, model_folder: Path, *, device: str | torch.device = "cpu") -> MaskedLanguageModel:
        """Load a language model."""
        return MaskedLanguageModel.load(model_folder, device=device)

    def use(self, data: DataConfig) -> Use:
        """Describe the use of a masked language model."""
        return Use("filling gaps", "fill", "LanguageModel.load(folder).fill([...])")


def _bidirectional(config: ModelConfig) -> LanguageModelConfig:
    """Return the configuration of a bidirectional language model. Raises ConfigError for any other."""
    if not isinstance(config, LanguageModelConfig) or config.is_causal:
        raise ConfigError("task = 'masked-lm' needs model.system = 'language-model' and model.is_causal = false")
    if config.n_positions < 2:
        raise ConfigError(f"model.n_positions should be at least 2, BOS and a token, got {config.n_positions}")
    return config


register(MaskedLanguageModelling())
