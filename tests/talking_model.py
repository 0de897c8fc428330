"""A translator whose outputs are never empty, whatever it was trained on: for tests that compare outputs."""

from __future__ import annotations

from pathlib import Path

import torch

from small_models import write_model
from transduce.inference.folder import read_model_folder

__all__ = ["write_talking_model"]


def write_talking_model(model: Path, out: Path, *, max_extra_tokens: int | None = None) -> Path:
    """Write a copy of a translator with great random output weights, so that no token dominates; return its folder."""
    read = read_model_folder(model, device=torch.device("cpu"))
    torch.manual_seed(3)
    with torch.no_grad():
        read.model.output_weight.normal_(std=3.0)
    extra = read.search.max_extra_tokens if max_extra_tokens is None else max_extra_tokens
    search = read.search.model_copy(update={"max_extra_tokens": extra})
    return write_model(out, read.model, read.tokenizers, search=search, direction=read.direction)
