"""Shortlist folders: the likely target tokens of each source token.

``shortlist.safetensors``, ``shortlist.json``, ``manifest.json``.

Shapes: V vocabulary, R target tokens of each source token, P frequent target tokens.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.errors import CheckpointError
from transduce.files import Migration, migrated, read_json, verify_manifest
from transduce.imports import numpy as np
from transduce.model.shortlist import Shortlist
from transduce.text import Tokenizers

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["read_shortlist"]

MIGRATIONS: tuple[Migration, ...] = (dict,)  # format 1 is the first
DESCRIPTION_FILE, TENSORS_FILE = "shortlist.json", "shortlist.safetensors"


def read_shortlist(folder: Path, tokenizers: Tokenizers) -> Shortlist:
    """Read and check a shortlist folder.

    Raises CheckpointError if a file is missing or corrupt, or if it was made for other tokenizers.
    """
    verify_manifest(folder, error=CheckpointError, required=(DESCRIPTION_FILE, TENSORS_FILE))
    path = folder / DESCRIPTION_FILE
    values = migrated(read_json(path, error=CheckpointError), MIGRATIONS, first=1, where=path, error=CheckpointError)
    if values.get("tokenizer_fingerprint") != tokenizers.fingerprint:
        raise CheckpointError(f"{folder} was made for other tokenizers than the model's; make it from the same store")
    tensors = _read_arrays(folder / TENSORS_FILE)
    if set(tensors) != {"candidates", "frequent"}:
        raise CheckpointError(f"{folder / TENSORS_FILE} should have the tensors candidates and frequent")
    candidates_VR, frequent_P = tensors["candidates"], tensors["frequent"]
    _require_ids(candidates_VR, folder, n_dimensions=2, vocab_size=tokenizers.tgt.size)
    _require_ids(frequent_P, folder, n_dimensions=1, vocab_size=tokenizers.tgt.size)
    if len(candidates_VR) != tokenizers.src.size:
        raise CheckpointError(
            f"{folder / TENSORS_FILE} has candidates of {len(candidates_VR):,} source tokens, the tokenizer has "
            f"{tokenizers.src.size:,}"
        )
    return Shortlist(candidates_VR, frequent_P)


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return dict(load(path.read_bytes()))
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error


def _require_ids(ids: NDArray[Any], folder: Path, *, n_dimensions: int, vocab_size: int) -> None:
    """Raise CheckpointError if a tensor does not hold target ids."""
    is_right = ids.dtype == np.int32 and ids.ndim == n_dimensions and ids.size > 0
    if not is_right or int(ids.min()) < 0 or int(ids.max()) >= vocab_size:
        raise CheckpointError(f"{folder / TENSORS_FILE} does not hold target ids below {vocab_size:,}")
