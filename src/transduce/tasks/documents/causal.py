"""The causal language modelling task: predict the next token of a document, from the ones before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from transduce.config import DataConfig, ModelConfig, RunConfig, Split
from transduce.data import Store
from transduce.data.batch_source import BatchOptions
from transduce.data.documents import CausalBatches, TextBatch
from transduce.inference.language_models.causal import CausalLanguageModel
from transduce.inference.language_models.language_model import TextScore
from transduce.tasks.documents.text_task import TextTask, texts_of
from transduce.tasks.prepared import Prepared
from transduce.tasks.registry import register
from transduce.tasks.task import CardUsage, EvaluationOptions
from transduce.text import Tokenizers
from transduce.training import Score

__all__ = ["CausalLanguageModelling"]


class CausalLanguageModelling(TextTask[TextBatch]):
    """Decoder-only models: each position sees itself and earlier ones."""

    name = used_as = "causal-lm"
    progress_verb = "modelling"
    usage = CardUsage("continuing text", "generate", "LanguageModel.load(folder).generate([...])")
    is_causal = True
    score_of_validation = "bits_per_byte"

    def text_batches(
        self, store: Store, model: ModelConfig, data: DataConfig, **options: Unpack[BatchOptions]
    ) -> CausalBatches:
        """Return batches of segments as long as the model's window."""
        max_length = self.longest_segment(model, data)
        return CausalBatches(store, max_length=max_length, **options)

    def validation_scores(self, dev: Store, tokenizers: Tokenizers) -> Callable[[float, int], Mapping[str, Score]]:
        """Return the function from the cross-entropy of the dev text to its bits per byte."""
        n_bytes = sum(len(text.encode("utf-8", "surrogateescape")) for text in texts_of(dev, tokenizers))
        return lambda nats, n_targets: {
            "bits_per_byte": Score(TextScore(nats, n_targets, n_bytes).bits_per_byte, lower_is_better=True)
        }

    def evaluate(
        self, model_folder: Path, prepared: Prepared, split: Split, **options: Unpack[EvaluationOptions]
    ) -> TextScore:
        """Return the cross-entropy of dev or test, with a sliding window."""
        texts = texts_of(self.split_store(prepared, split), prepared.tokenizers)
        model: CausalLanguageModel = self.load(model_folder, device=options["device"])
        return model.score(text.removesuffix("\n").split("\n") for text in texts)

    def score_lines(self, scores: Any, config: RunConfig) -> Sequence[str]:
        """Return the scores for the model card."""
        return [
            f"- perplexity per token: {scores.perplexity:.3f}, of {scores.tokens:,} tokens",
            f"- bits per byte: {scores.bits_per_byte:.4f}, of {scores.bytes:,} bytes",
        ]


register(CausalLanguageModelling())
