"""Model folders: the unit that people pass around.

``config.json``, ``model.safetensors``, ``tokenizer.json`` (or one for each side), ``manifest.json``, ``README.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from transduce.config import ModelConfig, SearchConfig, config_from_mapping
from transduce.errors import CheckpointError, ConfigError
from transduce.files import atomic_folder, read_json, verify_manifest, write_json, write_manifest, write_text
from transduce.model import Transformer
from transduce.text import Tokenizers
from transduce.training import load_weights, read_tensors

__all__ = ["ModelFolder", "read_model_folder", "write_model_card", "write_model_folder"]

FORMAT = 1
CONFIG_FILE, WEIGHTS_FILE, CARD_FILE = "config.json", "model.safetensors", "README.md"


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model, what it reads and writes with, and how it searches."""

    model: Transformer
    tokenizers: Tokenizers
    search: SearchConfig
    direction: str  # "en-de"


def write_model_folder(
    folder: Path,
    *,
    config: ModelConfig,
    weights: Mapping[str, Tensor],
    tokenizers: Tokenizers,
    search: SearchConfig,
    direction: str,
    card: str,
) -> None:
    """Write a model folder, whole or not at all; an older one of that name is replaced.

    Raises DataError if there is something else in ``folder``.
    """
    is_older_model = (folder / CONFIG_FILE).is_file() and (folder / WEIGHTS_FILE).is_file()
    with atomic_folder(folder, replace=is_older_model) as temporary:
        save_file({name: weight.contiguous() for name, weight in weights.items()}, temporary / WEIGHTS_FILE)
        tokenizers.save(temporary)
        write_json(
            temporary / CONFIG_FILE,
            {
                "format": FORMAT,
                "task": "translation",
                "direction": direction,
                "model": config.model_dump(),
                "search": search.model_dump(),
            },
        )
        write_text(temporary / CARD_FILE, card)
        write_manifest(temporary, exempt=(CARD_FILE,))


def write_model_card(folder: Path, card: str) -> None:
    """Replace the card of a model folder; the manifest does not cover it."""
    write_text(folder / CARD_FILE, card)


def read_model_folder(folder: Path, *, device: torch.device) -> ModelFolder:
    """Read and check a model folder.

    Raises CheckpointError if there is none, a file is missing, corrupt or from another version, or they do not fit.
    """
    verify_manifest(folder, error=CheckpointError, required=(CONFIG_FILE, WEIGHTS_FILE))
    values = read_json(folder / CONFIG_FILE, error=CheckpointError)
    if values.get("format") != FORMAT:
        raise CheckpointError(f"{folder / CONFIG_FILE}: format {values.get('format')!r}, this version reads {FORMAT}")
    try:
        config = config_from_mapping(ModelConfig, _table(values, "model"), where=str(folder / CONFIG_FILE))
        search = config_from_mapping(SearchConfig, _table(values, "search"), where=str(folder / CONFIG_FILE))
    except ConfigError as error:
        raise CheckpointError(str(error)) from error
    tokenizers = Tokenizers.load(folder)
    sizes = (tokenizers.src.size, tokenizers.tgt.size)
    if sizes != (config.src_vocab_size, config.tgt_vocab_size):
        raise CheckpointError(
            f"{folder}: the tokenizers have {sizes[0]} and {sizes[1]} symbols, "
            f"the model {config.src_vocab_size} and {config.tgt_vocab_size}"
        )
    model = Transformer(config)
    load_weights(model, read_tensors(folder / WEIGHTS_FILE), where=folder / WEIGHTS_FILE)
    direction = values.get("direction")
    if not isinstance(direction, str) or direction.count("-") != 1:
        raise CheckpointError(f"{folder / CONFIG_FILE}: direction should be as in 'en-de', got {direction!r}")
    return ModelFolder(model.to(device).eval(), tokenizers, search, direction)


def _table(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = values.get(name)
    if not isinstance(table, dict):
        raise ConfigError(f"{CONFIG_FILE}: the table {name!r} is missing")
    return table
