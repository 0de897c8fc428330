"""Collation: rows of the store as padded tensors.

Shapes: B sentences, S source positions, T target positions, X positions of either side, N real positions of all rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.data.columns import Ragged
from transduce.data.store import Store
from transduce.text import BOS_ID, EOS_ID, PAD_ID

__all__ = ["Batch", "collate", "collate_pairs", "pad_rows"]

Row = Sequence[int] | NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """A training batch of sentence pairs. All ids are int64.

    The decoder input is BOS and the target, the expected output is the target and EOS: "shifted right", Figure 1.
    A target position is real where ``tgt_in_BT != PAD_ID``; ``tgt_out_N`` has one id for each.
    """

    src_BS: Tensor  # source and EOS, padded on the right
    tgt_in_BT: Tensor  # BOS and target, padded on the right
    tgt_out_N: Tensor  # target and EOS of each row, concatenated without padding
    n_src_tokens: int  # real source positions, EOS included
    n_tgt_tokens: int  # N
    rows: tuple[int, ...]  # row numbers in the store, for messages
    # Real positions of each source and target row; with them, the host need not wait for a GPU to count them.
    lengths: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    def tensors(self) -> dict[str, Tensor]:
        """Return all tensors by their names in files; ``tgt_out_M`` is an older name."""
        return {"src_BS": self.src_BS, "tgt_in_BT": self.tgt_in_BT, "tgt_out_M": self.tgt_out_N}

    def to(self, device: torch.device | str) -> Batch:
        """Copy the batch to ``device``."""
        return dataclasses.replace(
            self,
            src_BS=self.src_BS.to(device, non_blocking=True),
            tgt_in_BT=self.tgt_in_BT.to(device, non_blocking=True),
            tgt_out_N=self.tgt_out_N.to(device, non_blocking=True),
        )


def collate(
    store: Store, rows: Sequence[int] | NDArray[np.int64], *, reversed_B: NDArray[np.bool_] | None = None
) -> Batch:
    """Make the batch of ``rows`` (at least one) of ``store``. Source and target are swapped where ``reversed_B``."""
    rows_B = np.asarray(rows, dtype=np.int64)
    src, tgt = (store.columns[side].gather(rows_B) for side in ("src", "tgt"))
    if reversed_B is not None:
        src, tgt = _select(src, tgt, reversed_B), _select(tgt, src, reversed_B)
    return _batch(src, tgt, rows=tuple(rows_B.tolist()))


def collate_pairs(sources: Sequence[Row], targets: Sequence[Row], *, rows: tuple[int, ...]) -> Batch:
    """Make the batch of pairs of sequences of ids, without BOS and EOS; ``rows`` are their rows in the store.

    >>> collate_pairs([[7]], [[8, 9]], rows=(0,)).tgt_in_BT.tolist()
    [[1, 8, 9]]
    """
    return _batch(_ragged(sources), _ragged(targets), rows=rows)


def _ragged(rows: Sequence[Row]) -> Ragged:
    values_N = np.concatenate([np.asarray(row, dtype=np.int64) for row in rows])
    return Ragged(values_N, np.array([len(row) for row in rows]))


def _batch(src: Ragged, tgt: Ragged, *, rows: tuple[int, ...]) -> Batch:
    src_ends_B, tgt_ends_B = np.cumsum(src.lengths_B), np.cumsum(tgt.lengths_B)
    src_N = np.insert(src.values_N, src_ends_B, EOS_ID)
    tgt_in_N = np.insert(tgt.values_N, tgt_ends_B - tgt.lengths_B, BOS_ID)
    tgt_out_N = np.insert(tgt.values_N, tgt_ends_B, EOS_ID)
    return Batch(
        src_BS=_padded(src_N, src.lengths_B + 1),
        tgt_in_BT=_padded(tgt_in_N, tgt.lengths_B + 1),
        tgt_out_N=torch.from_numpy(tgt_out_N.astype(np.int64)),
        n_src_tokens=len(src_N),
        n_tgt_tokens=len(tgt_out_N),
        rows=rows,
        lengths=(src.lengths_B + 1, tgt.lengths_B + 1),
    )


def pad_rows(rows: Sequence[Row]) -> Tensor:
    """Pad at least one row of ids on the right with ``PAD_ID``: an int64 tensor (B, longest).

    >>> pad_rows([[7, 8, 9], [5]])
    tensor([[7, 8, 9],
            [5, 0, 0]])
    """
    ragged = _ragged(rows)
    return _padded(ragged.values_N, ragged.lengths_B)


def _select(rows: Ragged, others: Ragged, is_other_B: NDArray[np.bool_]) -> Ragged:
    """Take each row from ``others`` where ``is_other_B``, else from ``rows``."""
    pairs = zip(_split(rows), _split(others), strict=True)
    selected = [pair[int(is_other)] for pair, is_other in zip(pairs, is_other_B, strict=True)]
    return Ragged(np.concatenate(selected), np.where(is_other_B, others.lengths_B, rows.lengths_B))


def _split(rows: Ragged) -> list[NDArray[Any]]:
    return np.split(rows.values_N, np.cumsum(rows.lengths_B)[:-1])


def _padded(ids_N: NDArray[np.integer[Any]], lengths_B: NDArray[np.int64]) -> Tensor:
    """Pad the concatenated rows ``ids_N``: an int64 tensor (B, longest)."""
    is_real_BX = np.arange(lengths_B.max()) < lengths_B[:, None]
    padded_BX = np.full(is_real_BX.shape, PAD_ID, dtype=np.int64)
    padded_BX[is_real_BX] = ids_N
    return torch.from_numpy(padded_BX)
