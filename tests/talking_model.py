"""A translator whose outputs are never empty, whatever it was trained on: for tests that compare outputs."""

from __future__ import annotations

from pathlib import Path

import torch

from transduce.inference.folder import read_model_folder, write_model_folder

__all__ = ["write_talking_model"]


def write_talking_model(model: Path, out: Path, *, max_extra_tokens: int | None = None) -> Path:
    """Write a copy of a translator with great random output weights, so that no token dominates; return its folder."""
    read = read_model_folder(model, device=torch.device("cpu"))
    torch.manual_seed(3)
    with torch.no_grad():
        read.model.output_weight.normal_(std=3.0)
    extra = read.search.max_extra_tokens if max_extra_tokens is None else max_extra_tokens
    write_model_folder(
        out,
        config=read.model.config,
        weights={name: weight.detach() for name, weight in read.model.canonical().items()},
        tokenizers=read.tokenizers,
        search=read.search.model_copy(update={"max_extra_tokens": extra}),
        direction=read.direction,
        task="translation",
        card="",
    )
    return out
