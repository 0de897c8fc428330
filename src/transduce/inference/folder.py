"""Model folders: a trained model with everything needed to use it.

``config.json``, ``model.safetensors``, ``tokenizer.json`` (or one per side), ``manifest.json``, ``README.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.config import (
    DIRECTION_PATTERN,
    LanguageModelConfig,
    ModelConfig,
    SearchConfig,
    TransformerConfig,
    config_from_mapping,
)
from transduce.config.migrations import model_of_format_2, tables_of_format_1
from transduce.errors import CheckpointError, quoted
from transduce.files import (
    UnverifiedFile,
    atomic_folder,
    migrated,
    read_json,
    sha256_of_file,
    verified_except,
    write_json,
    write_manifest,
    write_text,
)
from transduce.inference.ancestry import Ancestor, ancestry_as_json, ancestry_from_json
from transduce.inference.mapped_weights import tensor_shapes
from transduce.inference.stored_model import StoredModel
from transduce.inference.translation.line_statistics import LineStatistics
from transduce.memory import BYTES_PER_WEIGHT, require_free
from transduce.model.cost import cost_of
from transduce.text import Tokenizers

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = [
    "ModelFolder", "SavedModel", "SavedWeights", "read_model_config", "read_model_folder", "read_saved_weights",
    "read_tokenizers", "require_memory_to_search", "write_model_card", "write_model_folder",
]  # fmt: skip

MIGRATIONS = (tables_of_format_1, model_of_format_2)  # from format 1
FORMAT = 1 + len(MIGRATIONS)
CONFIG_FILE, WEIGHTS_FILE, CARD_FILE = "config.json", "model.safetensors", "README.md"


@dataclass(frozen=True, slots=True)
class SavedModel:
    """What a model folder holds, without weights."""

    folder: Path
    config: ModelConfig
    task: str  # name of the task
    used_as: str  # the task whose class uses the model: the same, unless it has no class of its own


@dataclass(frozen=True, slots=True)
class ModelFolder(SavedModel):
    """A model with its tokenizers, search configuration and task."""

    stored: StoredModel
    tokenizers: Tokenizers
    search: SearchConfig
    direction: str  # "en-de"; a parser uses only the first language
    statistics: LineStatistics | None = None  # of the training text; None in folders of earlier versions
    longest_source: int | None = None  # columns or frames of images or audio in training; None in earlier versions

    @property
    def model(self) -> Any:
        """The model in PyTorch, from ``make_model``; its weights are read when it is asked for first."""
        return self.stored.module

    def stored_as(self, kind: type[ModelConfig], **settings: object) -> StoredModel:
        """Return the model. Raises CheckpointError if its configuration is of another kind, or has other settings."""
        if not isinstance(self.config, kind) or any(getattr(self.config, each) != settings[each] for each in settings):
            raise CheckpointError(
                f"{self.folder} holds a model of the kind {type(self.config).__name__}, no model for {self.task}"
            )
        return self.stored

    def require_language_model_tokens(self) -> None:
        """Raise CheckpointError if the vocabulary has no mask token and no sentinels."""
        if not self.tokenizers.src.mask_and_sentinel_ids:
            raise CheckpointError(
                f"the vocabulary of the model for {self.task} has no mask token and no sentinels; train it again"
            )


def write_model_folder(
    folder: Path,
    *,
    config: ModelConfig,
    weights: Mapping[str, Tensor],
    tokenizers: Tokenizers,
    search: SearchConfig,
    direction: str,
    task: str,
    used_as: str | None = None,
    card: str,
    statistics: LineStatistics | None = None,
    longest_source: int | None = None,
    ancestry: Sequence[Ancestor] = (),
) -> None:
    """Write a model folder atomically, replacing an older model. Raises DataError if ``folder`` holds anything else.

    ``used_as``: the task whose class uses the model, by default its own.
    """
    from transduce.model.weights_file import write_tensors

    is_older_model = (folder / CONFIG_FILE).is_file() and (folder / WEIGHTS_FILE).is_file()
    with atomic_folder(folder, replace=is_older_model) as temporary:
        write_tensors(temporary / WEIGHTS_FILE, weights)
        tokenizers.save(temporary)
        tables: dict[str, Any] = {"model": config.model_dump(), "search": search.model_dump()}
        if statistics is not None:
            tables["lines"] = statistics.as_json()
        if longest_source is not None:
            tables["longest_source"] = longest_source
        values = {"format": FORMAT, "task": task, "direction": direction, **tables}
        if used_as not in (None, task):
            values["used_as"] = used_as
        if ancestry:
            values["ancestry"] = ancestry_as_json(ancestry)
        write_json(temporary / CONFIG_FILE, values)
        write_text(temporary / CARD_FILE, card)
        write_manifest(temporary, exempt=(CARD_FILE,))


def write_model_card(folder: Path, card: str) -> None:
    """Replace the card of a model folder, which the manifest does not cover."""
    write_text(folder / CARD_FILE, card)


def read_model_folder(folder: Path, *, device: str | torch.device) -> ModelFolder:
    """Read and check a model folder; the weights are read when they are needed.

    Raises CheckpointError if a file is missing, corrupt or from another version, if files do not fit together, or if
    there is too little memory. Reading the weights raises it if they are corrupt, or if one is NaN or Inf.
    """
    weights = _verified_except_weights(folder)
    path, (saved, values) = folder / CONFIG_FILE, _read_config(folder)
    config = saved.config
    direction = values.get("direction")
    if not isinstance(direction, str) or not re.fullmatch(DIRECTION_PATTERN, direction):
        raise CheckpointError(f"{path}: direction should be like 'en-de' or 'en-pt-BR', got {quoted(direction)}")
    search = config_from_mapping(SearchConfig, _table(values, "search"), where=path, error=CheckpointError)
    statistics = LineStatistics.from_json(values.get("lines"), where=path)
    longest_source = values.get("longest_source")
    if longest_source is not None and (type(longest_source) is not int or longest_source < 1):
        raise CheckpointError(f"{path}: longest_source should be a number from 1 on, got {quoted(longest_source)}")
    tokenizers = Tokenizers.load(folder)
    sizes = tokenizers.sizes
    if sizes != config.vocab_sizes:
        raise CheckpointError(
            f"{folder}: the tokenizers have {sizes[0]} and {sizes[1]} tokens, "
            f"the model {config.vocab_sizes[0]} and {config.vocab_sizes[1]}"
        )
    require_memory_to_search(config, device, where=folder)
    stored = StoredModel(config, tokenizers, weights, device=str(device))
    return ModelFolder(
        folder, config, saved.task, saved.used_as, stored, tokenizers, search, direction, statistics, longest_source
    )


@dataclass(frozen=True, slots=True)
class SavedWeights:
    """The weights of a model folder, without a model."""

    config: ModelConfig
    task: str
    tokenizers: Tokenizers
    weights: dict[str, Tensor]  # by their names on disk
    ancestry: tuple[Ancestor, ...]  # the models that it started from, and itself


def read_saved_weights(folder: Path) -> SavedWeights:
    """Read and check the weights of a model folder. Raises CheckpointError as ``read_model_folder`` does."""
    from transduce.model.weights_file import finite_tensors

    with _verified_except_weights(folder).verified_while_read():
        saved, values = _read_config(folder)
        weights = finite_tensors(folder / WEIGHTS_FILE, may_be_link=True)
        before = ancestry_from_json(values, where=folder / CONFIG_FILE)
        where = folder.resolve()
        itself = Ancestor(f"{where.parent.name}/{where.name}", saved.task, sha256_of_file(folder / WEIGHTS_FILE))
        return SavedWeights(saved.config, saved.task, Tokenizers.load(folder), weights, (*before, itself))


def read_tokenizers(folder: Path) -> Tokenizers:
    """Read and check the tokenizers of a model folder. Raises CheckpointError as ``read_model_folder`` does."""
    with _verified_except_weights(folder).verified_while_read():
        return Tokenizers.load(folder)


def read_model_config(folder: Path) -> SavedModel:
    """Return the architecture of a model folder, and its task.

    Raises CheckpointError if a file is missing or the weights do not fit the architecture.
    """
    with _verified_except_weights(folder).verified_while_read():
        return _read_config(folder)[0]


def require_memory_to_search(model: ModelConfig, device: str | torch.device, *, where: Path) -> None:
    """Raise CheckpointError if the free memory is too small for a model and its copy for inference."""
    n = cost_of(model).parameters
    n_weight_bytes = BYTES_PER_WEIGHT * n
    via_cpu = [] if str(device) == "cpu" else [(n_weight_bytes, "cpu")]  # read there first
    for n_bytes, target in [*via_cpu, (2 * n_weight_bytes, device)]:
        require_free(
            n_bytes,
            target,
            what=f"{where}: a model of {n:,} parameters",
            help="close other programs, or use a machine with more memory",
            error=CheckpointError,
        )


def _verified_except_weights(folder: Path) -> UnverifiedFile:
    """Check the files of a folder except its weights, which are returned."""
    if (folder / "run.json").is_file() and not (folder / CONFIG_FILE).exists():
        raise CheckpointError(f"{folder} is a run folder; use its model, {folder / 'model'}")
    required = (CONFIG_FILE, *Tokenizers.files(folder))
    return verified_except(folder, large=WEIGHTS_FILE, required=required, error=CheckpointError, may_be_links=True)


def _read_config(folder: Path) -> tuple[SavedModel, dict[str, Any]]:
    """Return the architecture, checked against the weights file, and all values of ``config.json``."""
    path = folder / CONFIG_FILE
    values = read_json(path, error=CheckpointError, may_be_link=True)
    values = migrated(values, MIGRATIONS, first=1, where=path, error=CheckpointError)
    config = config_from_mapping(ModelConfig, _table(values, "model"), where=path, error=CheckpointError)
    task = _task(values, "task", path)
    used_as = _task(values, "used_as", path) if "used_as" in values else task
    _require_matching_weights(config, folder, cost_of(config).parameters)
    return SavedModel(folder, config, task, used_as), values


def _task(values: Mapping[str, Any], key: str, path: Path) -> str:
    name = values.get(key)
    if not isinstance(name, str):
        raise CheckpointError(f"{path}: {key} should be the name of a task, got {quoted(name)}")
    return name


def _require_matching_weights(config: ModelConfig, folder: Path, n_expected: int) -> None:
    """Raise CheckpointError if the number of weights does not fit ``config``. Reads only the file header."""
    shapes = tensor_shapes(folder / WEIGHTS_FILE)
    n_weights = sum(map(prod, shapes.values()))
    if n_expected != n_weights:
        raise CheckpointError(
            f"{folder}: {CONFIG_FILE} describes a model of {n_expected:,} weights, but {WEIGHTS_FILE} has {n_weights:,}"
        )
    n_layers = sum(config.layer_counts)
    n_experts = config.n_experts if isinstance(config, TransformerConfig | LanguageModelConfig) else 1
    if n_layers * n_experts > len(shapes):  # every expert of every layer has at least one tensor
        experts = f" of {n_experts:,} experts" if n_experts > 1 else ""
        raise CheckpointError(
            f"{folder}: the model has {n_layers:,} layers{experts}, but {WEIGHTS_FILE} has {len(shapes):,} tensors"
        )


def _table(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = values.get(name)
    if not isinstance(table, dict):
        raise CheckpointError(f"{CONFIG_FILE}: the table {name!r} is missing")
    return table
