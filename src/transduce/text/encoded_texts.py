"""Encoded texts: the ids of several texts in compact form. Imports no tokenizer.

Shapes: B batch of rows, such as texts, N values of all rows.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transduce.imports import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ID_BYTES", "IdBytes", "Ragged", "n_ids", "pack_ids", "unpack_ids"]

IdBytes = bytes
"""The ids of a text or a word as uint32 in native byte order: 4 bytes an id, and concatenation is one copy."""

ID_BYTES = 4


def pack_ids(ids: Sequence[int]) -> IdBytes:
    """Return ``ids`` as bytes.

    >>> unpack_ids(pack_ids([7, 70_000]) + pack_ids([8]))
    [7, 70000, 8]
    """
    return array("I", ids).tobytes()


def unpack_ids(packed: IdBytes) -> list[int]:
    """Return the ids in ``packed``, as ints."""
    return memoryview(packed).cast("I").tolist()


def n_ids(packed: IdBytes) -> int:
    """Return the number of ids in ``packed``."""
    return len(packed) // ID_BYTES


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """Several rows of ids, or of other values, concatenated."""

    values_N: NDArray[Any]  # ids (N,), or vectors (N, X)
    lengths_B: NDArray[np.int64]  # number of values of each row

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.lengths_B)

    @classmethod
    def of(cls, rows: Sequence[IdBytes]) -> Ragged:
        """Concatenate the ids of texts."""
        lengths_B = np.fromiter(map(len, rows), np.int64, len(rows)) // ID_BYTES
        return cls(np.frombuffer(b"".join(rows), np.uint32), lengths_B)
