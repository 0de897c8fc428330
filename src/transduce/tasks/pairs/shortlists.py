"""Learning a shortlist from a prepared folder: the likely target tokens of each source token.

Shapes: V vocabulary, R target tokens of each source token, P frequent target tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from transduce.data import PairStore
from transduce.data.lexicon import train_lexicon
from transduce.errors import ConfigError
from transduce.files import atomic_folder, write_json, write_manifest
from transduce.inference.translation.shortlists import DESCRIPTION_FILE, MIGRATIONS, TENSORS_FILE
from transduce.model.shortlist import Shortlist
from transduce.model.weights_file import write_tensors
from transduce.tasks.prepared import Prepared
from transduce.text import EOS_ID

__all__ = ["write_shortlist"]


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
        tensors = {
            "candidates": torch.from_numpy(shortlist.candidates_VR),
            "frequent": torch.from_numpy(shortlist.frequent_P),
        }
        description = {"format": len(MIGRATIONS), "tokenizer_fingerprint": prepared.tokenizers.fingerprint}
        write_tensors(temporary / TENSORS_FILE, tensors)
        write_json(temporary / DESCRIPTION_FILE, description)
        write_manifest(temporary)
    return shortlist


def _learned(prepared: Prepared, *, n_candidates: int, n_frequent: int, max_pairs: int) -> Shortlist:
    store, tokenizers = prepared.train, prepared.tokenizers
    assert isinstance(store, PairStore)
    n_rows = min(len(store), max_pairs)
    rows = np.sort(np.random.default_rng(1).choice(len(store), n_rows, replace=False))
    lexicon = train_lexicon(store.columns["src"], store.columns["tgt"], rows)
    candidates_VR = lexicon.best(n_candidates, src_vocab_size=tokenizers.src.size, fill_id=EOS_ID)
    if tokenizers.is_shared:
        own_V1 = np.arange(tokenizers.src.size, dtype=np.int32)[:, None]
        candidates_VR = np.concatenate((candidates_VR, own_V1), axis=1)
    counts_V = np.bincount(store.columns["tgt"].gather(rows).values_N, minlength=tokenizers.tgt.size)
    frequent_P = np.argsort(-counts_V, kind="stable")[:n_frequent].astype(np.int32)
    return Shortlist(candidates_VR, frequent_P)
