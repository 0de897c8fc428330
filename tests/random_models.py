"""Models with random weights, in files that are written without torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from transduce.config import LanguageModelConfig, TransformerConfig
from transduce.errors import CheckpointError
from transduce.files import UnverifiedFile, sha256_of_file
from transduce.inference.stored_model import StoredModel
from transduce.model.weight_shapes import weight_shapes
from transduce.text import Tokenizers, byte_tokenizer

__all__ = ["stored_model"]


def stored_model(
    config: TransformerConfig | LanguageModelConfig, folder: Path, *, seed: int = 1, dtype: str = "float32"
) -> StoredModel:
    """A model whose weights are in a new file of the folder."""
    random, path = np.random.default_rng(seed), folder / f"{len(list(folder.iterdir()))}.safetensors"
    shapes = weight_shapes(config)
    save_file({name: drawn(random, name, shape).astype(dtype) for name, shape in shapes.items()}, path)
    entry = {"bytes": path.stat().st_size, "sha256": sha256_of_file(path)}
    file = UnverifiedFile(path, entry, CheckpointError, may_be_link=False)
    return StoredModel(config, Tokenizers(byte_tokenizer(), byte_tokenizer()), file, device="cpu")


def drawn(random: np.random.Generator, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """The values of a weight: of the output such that no token dominates."""
    values = random.normal(size=shape)
    if len(shape) == 1:
        values = values * 0.1 + ("norm.weight" in name)
    else:
        values *= 0.6 if name == "output.weight" else 2 * shape[1] ** -0.5
    return values.astype(np.float32)
