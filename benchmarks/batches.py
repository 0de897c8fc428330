"""Synthetic token data with text-like statistics, generated from a seed; the same batches for every system.

Shapes: B sentences, S source positions, T target positions, N rows (pairs), V vocabulary.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from transduce.data import Batch, PairBatches, open_pairs, write_pairs
from transduce.text import UNK_ID, Tokenizer, Tokenizers
from transduce.text.encoded_texts import IdBytes, pack_ids

__all__ = ["IGNORED", "MAX_LENGTH_WITH_EOS", "PaddedBatch", "open_batches", "padded", "write_token_store"]

SEED = 1
FIRST_ID = UNK_ID + 1  # no special tokens

# Lengths as in German-English news and parliament after byte-pair encoding: about 25 tokens on average.
MEDIAN_LENGTH, LENGTH_SPREAD = 22.0, 0.5  # of a log-normal distribution
RATIO_SPREAD = 0.15  # of the target to source length ratio, also log-normal
MAX_LENGTH = 120
MAX_LENGTH_WITH_EOS = MAX_LENGTH + 1  # with EOS

CPU = torch.device("cpu")
IGNORED = -100  # the label of padding; the default ignore_index of torch's cross-entropy


class Numbers:
    """A tokenizer stub for texts of numbers: "17 4 250" becomes the ids 17, 4 and 250."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.fingerprint = hashlib.sha256(f"numbers below {size}".encode()).hexdigest()

    def encode_packed(self, texts: Sequence[str], *, max_tokens: int | None = None) -> list[IdBytes]:
        """Return the numbers of each text; ``max_tokens`` is ignored."""
        return [pack_ids([int(number) for number in text.split()]) for text in texts]


def write_token_store(folder: Path, *, vocab_size: int, n_tgt_tokens: int) -> None:
    """Write random pairs with about ``n_tgt_tokens`` target tokens: log-normal lengths, Zipf-distributed ids."""
    random = np.random.default_rng(SEED)
    n_pairs = max(8, round(n_tgt_tokens / MEDIAN_LENGTH))
    src_lengths_N = random.lognormal(np.log(MEDIAN_LENGTH), LENGTH_SPREAD, n_pairs)
    tgt_lengths_N = src_lengths_N * random.lognormal(0.0, RATIO_SPREAD, n_pairs)
    texts = zip(*(_texts(random, lengths_N, vocab_size) for lengths_N in (src_lengths_N, tgt_lengths_N)), strict=True)
    numbers = cast(Tokenizer, Numbers(vocab_size))
    write_pairs(folder, {"synthetic": texts}, Tokenizers(numbers, numbers), max_length=MAX_LENGTH_WITH_EOS)


def _texts(random: np.random.Generator, lengths_N: NDArray[np.float64], vocab_size: int) -> Iterator[str]:
    """Yield lines of the given numbers of ids; the n-th most frequent id is 1 / n as frequent as the first."""
    frequency_V = 1 / np.arange(1, vocab_size - FIRST_ID + 1)
    cumulative_V = np.cumsum(frequency_V / frequency_V.sum())[:-1]
    for length in np.clip(lengths_N.round().astype(int), 1, MAX_LENGTH):
        yield " ".join(map(str, FIRST_ID + np.searchsorted(cumulative_V, random.random(length))))


def open_batches(folder: Path, *, max_tokens: int, device: torch.device = CPU) -> PairBatches:
    """Return the batch source of our trainer; every process plans the same batches."""
    return PairBatches(open_pairs(folder), max_tokens=max_tokens, seed=SEED, device=device)


@dataclass(frozen=True, slots=True, eq=False)
class PaddedBatch:
    """A batch padded on the right, as the other systems take it."""

    src_BS: torch.Tensor
    tgt_in_BT: torch.Tensor
    labels_BT: torch.Tensor  # ``IGNORED`` at padding
    n_tgt_tokens: int


def padded(batch: Batch) -> PaddedBatch:
    """Convert one of our batches: the same sentences with the same padding."""
    labels_BT: Any = torch.full_like(batch.tgt_in_BT, IGNORED)
    labels_BT[batch.tgt_in_BT != 0] = batch.tgt_out_N
    return PaddedBatch(batch.src_BS, batch.tgt_in_BT, labels_BT, batch.n_tgt_tokens)
