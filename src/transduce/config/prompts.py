"""Data settings of prompts with responses."""

from __future__ import annotations

from transduce.config.data import DataConfig
from transduce.config.record import Count, FileName

__all__ = ["PromptsData"]


class PromptsData(DataConfig):
    """Prompts with responses, the best first: tab-separated or .jsonl, with corpus = "files"."""

    files = "prompts"

    train_prompts: FileName | None = None  # with corpus = "files": prompts with their responses
    dev_prompts: FileName | None = None  # likewise, for validation
    test_prompts: FileName | None = None  # likewise, for the final evaluation
    max_length: Count = 256  # tokens of a prompt with its longest response; longer ones are left out
