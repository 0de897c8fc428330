"""Shortlist folders: the likely target tokens of each source token, learned from a prepared folder.

``shortlist.safetensors``, ``shortlist.json``, ``manifest.json``.

Shapes: V vocabulary, R target tokens of each source token, P frequent target tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor

from transduce.data import PairStore
from transduce.data.lexicon import train_lexicon
from transduce.errors import CheckpointError, ConfigError
from transduce.files import Migration, atomic_folder, migrated, read_json, verify_manifest, write_json, write_manifest
from transduce.model.shortlist import Shortlist
from transduce.model.weights_file import read_tensors, write_tensors
from transduce.tasks.preparation import Prepared
from transduce.text import EOS_ID, Tokenizers

__all__ = ["read_shortlist", "write_shortlist"]

MIGRATIONS: tuple[Migration, ...] = (dict,)  # format 1 is the first
DESCRIPTION_FILE, TENSORS_FILE = "shortlist.json", "shortlist.safetensors"


def write_shortlist(
    prepared: Prepared,
    folder: Path,
    *,
    n_candidates: int = 50,
    n_frequent: int = 200,
    max_pairs: int = 100_000,
    log: Callable[[str], None] = lambda line: None,
) -> Shortlist:
    """Learn a shortlist from at most ``max_pairs`` training pairs of a prepared folder, and write it to ``folder``.

    Each source token gets its ``n_candidates`` most probable translations; with a shared vocabulary also itself, for
    words that are copied. ``n_frequent`` target tokens are scored in every sentence.
    Raises ConfigError if the folder was not prepared for translation, DataError if ``folder`` exists and is not empty.
    """
    if prepared.config.task != "translation":
        raise ConfigError(f"{prepared.folder} was prepared for {prepared.config.task}; a shortlist is for translation")
    with atomic_folder(folder) as temporary:  # first, so that a full folder is noticed before the work
        log(f"learning the translations of tokens from {min(len(prepared.train), max_pairs):,} pairs")
        shortlist = _learned(prepared, n_candidates=n_candidates, n_frequent=n_frequent, max_pairs=max_pairs)
        tensors = {"candidates": shortlist.candidates_VR, "frequent": shortlist.frequent_P}
        description = {"format": len(MIGRATIONS), "tokenizer_fingerprint": prepared.tokenizers.fingerprint}
        write_tensors(temporary / TENSORS_FILE, tensors)
        write_json(temporary / DESCRIPTION_FILE, description)
        write_manifest(temporary)
    return shortlist


def _learned(prepared: Prepared, *, n_candidates: int, n_frequent: int, max_pairs: int) -> Shortlist:
    store, tokenizers = cast(PairStore, prepared.train), prepared.tokenizers
    n_rows = min(len(store), max_pairs)
    rows = np.sort(np.random.default_rng(1).choice(len(store), n_rows, replace=False))
    lexicon = train_lexicon(store, rows)
    candidates_VR = lexicon.best(n_candidates, src_vocab_size=tokenizers.src.size, fill_id=EOS_ID)
    if tokenizers.is_shared:
        own_V1 = np.arange(tokenizers.src.size, dtype=np.int32)[:, None]
        candidates_VR = np.concatenate((candidates_VR, own_V1), axis=1)
    counts_V = np.bincount(store.columns["tgt"].gather(rows).values_N, minlength=tokenizers.tgt.size)
    frequent_P = np.argsort(-counts_V, kind="stable")[:n_frequent].astype(np.int32)
    return Shortlist(torch.from_numpy(candidates_VR), torch.from_numpy(frequent_P))


def read_shortlist(folder: Path, tokenizers: Tokenizers) -> Shortlist:
    """Read and check a shortlist folder.

    Raises CheckpointError if a file is missing or corrupt, or if it was made for other tokenizers.
    """
    verify_manifest(folder, error=CheckpointError, required=(DESCRIPTION_FILE, TENSORS_FILE))
    path = folder / DESCRIPTION_FILE
    values = migrated(read_json(path, error=CheckpointError), MIGRATIONS, first=1, where=path, error=CheckpointError)
    if values.get("tokenizer_fingerprint") != tokenizers.fingerprint:
        raise CheckpointError(f"{folder} was made for other tokenizers than the model's; make it from the same store")
    tensors = read_tensors(folder / TENSORS_FILE)
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


def _require_ids(ids: Tensor, folder: Path, *, n_dimensions: int, vocab_size: int) -> None:
    """Raise CheckpointError if a tensor does not hold target ids."""
    is_right = ids.dtype == torch.int32 and ids.ndim == n_dimensions and ids.numel() > 0
    if not is_right or int(ids.min()) < 0 or int(ids.max()) >= vocab_size:
        raise CheckpointError(f"{folder / TENSORS_FILE} does not hold target ids below {vocab_size:,}")
