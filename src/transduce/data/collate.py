"""Rows of the store become tensors."""

# B batch, S source positions, T target positions, L positions of one or the other side, M real positions of all rows

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

__all__ = ["Batch", "collate", "pad_rows"]

Row = Sequence[int] | NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Sentence pairs for one step of training. All ids are int64.

    The decoder reads the target after a begin symbol and learns to say the target and an end symbol: "shifted right",
    Figure 1. A target position is real where ``tgt_in_BT != PAD_ID``; there are as many as ``tgt_out_M`` has ids.
    """

    src_BS: Tensor  # source and end symbol, padded on the right
    tgt_in_BT: Tensor  # begin symbol and target, padded on the right
    tgt_out_M: Tensor  # target and end symbol of each row, one row after the other, without padding
    n_src_tokens: int  # real source positions, end symbols included
    n_tgt_tokens: int  # M
    rows: tuple[int, ...]  # which rows of the store these are, to name them in messages

    def tensors(self) -> dict[str, Tensor]:
        """All ids by name."""
        return {"src_BS": self.src_BS, "tgt_in_BT": self.tgt_in_BT, "tgt_out_M": self.tgt_out_M}

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on ``device``."""
        return dataclasses.replace(
            self,
            src_BS=self.src_BS.to(device),
            tgt_in_BT=self.tgt_in_BT.to(device),
            tgt_out_M=self.tgt_out_M.to(device),
        )


def collate(
    store: Store, rows: Sequence[int] | NDArray[np.int64], *, reversed_B: NDArray[np.bool_] | None = None
) -> Batch:
    """The batch of ``rows`` of ``store``; at least one. Source and target are swapped where ``reversed_B`` is true."""
    rows_B = np.asarray(rows, dtype=np.int64)
    src, tgt = (store.columns[side].gather(rows_B) for side in ("src", "tgt"))
    if reversed_B is not None:
        src, tgt = _chosen(src, tgt, reversed_B), _chosen(tgt, src, reversed_B)
    src_ends_B, tgt_ends_B = np.cumsum(src.lengths_B), np.cumsum(tgt.lengths_B)
    src_M = np.insert(src.values_M, src_ends_B, EOS_ID)
    tgt_in_M = np.insert(tgt.values_M, tgt_ends_B - tgt.lengths_B, BOS_ID)
    tgt_out_M = np.insert(tgt.values_M, tgt_ends_B, EOS_ID)
    return Batch(
        src_BS=_padded(src_M, src.lengths_B + 1),
        tgt_in_BT=_padded(tgt_in_M, tgt.lengths_B + 1),
        tgt_out_M=torch.from_numpy(tgt_out_M.astype(np.int64)),
        n_src_tokens=len(src_M),
        n_tgt_tokens=len(tgt_out_M),
        rows=tuple(rows_B.tolist()),
    )


def pad_rows(rows: Sequence[Row]) -> Tensor:
    """Rows of ids as one int64 tensor (B, longest), with ``PAD_ID`` after the shorter ones; at least one row.

    >>> pad_rows([[7, 8, 9], [5]])
    tensor([[7, 8, 9],
            [5, 0, 0]])
    """
    ids_M = np.concatenate([np.asarray(row, dtype=np.int64) for row in rows])
    return _padded(ids_M, np.array([len(row) for row in rows]))


def _chosen(rows: Ragged, others: Ragged, is_other_B: NDArray[np.bool_]) -> Ragged:
    """Row by row the one or the other."""
    pairs = zip(_split(rows), _split(others), strict=True)
    chosen = [pair[int(is_other)] for pair, is_other in zip(pairs, is_other_B, strict=True)]
    return Ragged(np.concatenate(chosen), np.where(is_other_B, others.lengths_B, rows.lengths_B))


def _split(rows: Ragged) -> list[NDArray[Any]]:
    return np.split(rows.values_M, np.cumsum(rows.lengths_B)[:-1])


def _padded(ids_M: NDArray[np.integer[Any]], lengths_B: NDArray[np.int64]) -> Tensor:
    """The rows that stand one after the other in ``ids_M``, as an int64 tensor (B, longest)."""
    is_real_BL = np.arange(lengths_B.max()) < lengths_B[:, None]
    padded_BL = np.full(is_real_BL.shape, PAD_ID, dtype=np.int64)
    padded_BL[is_real_BL] = ids_M
    return torch.from_numpy(padded_BL)
