"""Columns of a store: in each row a list of ids, or a list of vectors, of any length but none.

A column is two arrays on disk: all values one after the other (``NAME.ids.npy`` or ``NAME.values.npy``), and the
offsets where rows begin (``NAME.offsets.npy``).
"""

# N rows in the store, B rows of a batch, M values of all those rows, W width of a vector

from __future__ import annotations

from array import array
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from transduce.data.arrays import ArrayFile, ArrayWriter
from transduce.errors import DataError
from transduce.text import UNK_ID

__all__ = ["Column", "ColumnWriter", "Ids", "Ragged", "Values", "Vectors", "open_column"]

Values = Sequence[int] | Sequence[Sequence[float]] | NDArray[Any]  # of one row: its ids, or its vectors
MOST_LENGTH = (1 << 31) - 2  # of a row, as far as it is counted


class _Kind(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Ids(_Kind):
    """Rows of token ids, from ``UNK_ID`` on: text has no other special symbol."""

    kind: Literal["ids"] = "ids"
    vocab_size: int | None = Field(ge=UNK_ID + 1, le=1 << 32)  # None: not known

    @property
    def value_shape(self) -> tuple[int, ...]:
        """Of one value."""
        return ()

    @property
    def dtypes(self) -> tuple[type[np.generic], ...]:
        """On disk; the first one is written, all are read."""
        return (np.uint16, np.uint32) if (self.vocab_size or 1 << 32) <= 1 << 16 else (np.uint32, np.uint16)

    def joined(self, rows: Sequence[Values]) -> NDArray[Any]:
        """All values of all rows. Raises TypeError if some are no whole numbers."""
        ids = array("q")
        for row in rows:
            ids.extend(row)  # type: ignore[arg-type]  # others than ids are refused here
        return np.frombuffer(ids, np.int64)

    def fault(self, ids_M: NDArray[Any]) -> str | None:
        """What is wrong with some ids, at least one."""
        most, vocab_size = int(ids_M.max()), self.vocab_size or 1 << 32
        if ids_M.min() >= UNK_ID and most < vocab_size:
            return None
        return f"ids from {ids_M.min()} to {most}, text can have {UNK_ID} to {vocab_size - 1}"


class Vectors(_Kind):
    """Rows of vectors of finite 32-bit numbers: frames of audio, patches of an image."""

    kind: Literal["vectors"] = "vectors"
    width: int = Field(ge=1, le=1 << 24)

    @property
    def value_shape(self) -> tuple[int, ...]:
        """Of one value."""
        return (self.width,)

    @property
    def dtypes(self) -> tuple[type[np.generic], ...]:
        """On disk."""
        return (np.float32,)

    def joined(self, rows: Sequence[Values]) -> NDArray[Any]:
        """All vectors of all rows. Raises ValueError if some are no vectors of this width."""
        with np.errstate(over="ignore"):  # what 32 bits cannot hold is not finite, and told
            vectors = [np.asarray(row, np.float32) for row in rows]
        wrong = [each.shape for each in vectors if each.shape != (len(each), self.width)]
        if wrong:
            raise ValueError(f"should be of shape (length, {self.width}), got {wrong[0]}")
        return np.concatenate(vectors)

    def fault(self, vectors_MW: NDArray[Any]) -> str | None:
        """What is wrong with some vectors."""
        return None if bool(np.isfinite(vectors_MW).all()) else "numbers that are not finite"


ColumnKind = Ids | Vectors


class ColumnWriter:
    """Appends rows to the two files of a column."""

    def __init__(self, folder: Path, name: str, kind: ColumnKind, max_length: int | None, stack: ExitStack) -> None:
        """Rows of ids are shorter than ``max_length``."""
        self.name, self.kind = name, kind
        self._longest = MOST_LENGTH if max_length is None or kind.kind == "vectors" else max_length - 1
        values_path, offsets_path = column_files(folder, name, kind)
        self._values = ArrayWriter(values_path, np.dtype(kind.dtypes[0]), kind.value_shape, stack)
        self._offsets = ArrayWriter(offsets_path, np.dtype(np.int64), (), stack)
        self._offsets.append(np.zeros(1, dtype=np.int64))

    @property
    def n_values(self) -> int:
        """Of all rows."""
        return self._values.length

    def append(self, rows: Sequence[Values]) -> None:
        """Write more rows. Raises DataError if one is empty or too long, or has values that the column cannot have."""
        try:
            values_M = self.kind.joined(rows)
            lengths_N = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
            is_right = 0 < lengths_N.min() <= lengths_N.max() <= self._longest and self.kind.fault(values_M) is None
        except (TypeError, ValueError, OverflowError):
            is_right = False
        if not is_right:
            raise DataError(self._why_not(rows))
        self._offsets.append(self.n_values + np.cumsum(lengths_N))
        self._values.append(values_M)

    def _why_not(self, rows: Sequence[Values]) -> str:
        """Which row is the first that cannot be written."""
        for place, row in enumerate(rows, start=self._offsets.length - 1):
            try:
                fault = self.kind.fault(self.kind.joined([row]))
            except (TypeError, ValueError, OverflowError) as error:
                fault = f"values that cannot be stored ({error})"
            if not 0 < len(row) <= self._longest:
                fault = f"{len(row):,} values, where there can be 1 to {self._longest:,},"
            if fault is not None:
                return f"row {place} has {fault} in column {self.name}; leave it out, or declare another column"
        raise AssertionError("one of the rows is wrong")


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """Some rows of a column, one after the other."""

    values_M: NDArray[Any]  # all values of all rows: ids (M,) or vectors (M, W)
    lengths_B: NDArray[np.int64]  # how many belong to each row


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column open for reading."""

    kind: ColumnKind
    lengths_N: NDArray[np.int32]  # of the rows as they are stored: without begin and end symbols
    _values: ArrayFile
    _offsets: ArrayFile

    def row(self, n: int) -> NDArray[Any]:
        """The values of one row, copied."""
        return self.gather(np.array([n])).values_M

    def gather(self, rows_B: NDArray[np.int64]) -> Ragged:
        """The values of many rows, copied.

        Raises DataError if they have to be read from the disk, and are not there any more or not what they were.
        """
        lengths_B = self.lengths_N[rows_B].astype(np.int64)
        values_M = self._values.read(self._offsets.at(rows_B), lengths_B)
        if self._values.held is None:
            _require_sound(values_M, self.kind, self._values.path)
        return Ragged(values_M, lengths_B)


def column_files(folder: Path, name: str, kind: ColumnKind) -> tuple[Path, Path]:
    """Where the values and the offsets of a column lie."""
    part = "ids" if kind.kind == "ids" else "values"
    return folder / f"{name}.{part}.npy", folder / f"{name}.offsets.npy"


def open_column(folder: Path, name: str, kind: ColumnKind, *, n_rows: int, n_values: int) -> Column:
    """Open the two files of a column and look at every value. Raises DataError if they are not what they should be."""
    values_path, offsets_path = column_files(folder, name, kind)
    values = ArrayFile(values_path, kind.dtypes, (n_values, *kind.value_shape), kind.kind)
    offsets = ArrayFile(offsets_path, (np.int64,), (n_rows + 1,), "offsets")
    lengths_N = _read_lengths(offsets, n_values=n_values)
    for some in values.parts():
        _require_sound(some, kind, values_path)
    return Column(kind, lengths_N, values, offsets)


def _read_lengths(offsets: ArrayFile, *, n_values: int) -> NDArray[np.int32]:
    """The lengths of all rows. Raises DataError if the offsets do not rise from 0 to the number of values."""
    lengths_N, begin, done = np.empty(len(offsets) - 1, dtype=np.int32), 0, 0
    for some in offsets.parts():
        bounds = np.concatenate([[begin], some])[0 if done else 1 :]  # with the last one of the part before
        rises = bool((bounds[1:] > bounds[:-1]).all())  # a difference may overflow
        if not rises or (not done and bounds[0] != 0) or bounds[-1] > n_values:
            break
        lengths_N[max(done - 1, 0) : done + len(some) - 1] = np.minimum(np.diff(bounds), MOST_LENGTH)
        begin, done = int(bounds[-1]), done + len(some)
    if done != len(offsets) or begin != n_values:
        raise DataError(f"{offsets.path} should rise from 0 to {n_values:,} without empty rows; prepare the data again")
    return lengths_N


def _require_sound(values_M: NDArray[Any], kind: ColumnKind, path: Path) -> None:
    fault = kind.fault(values_M)
    if fault is not None:
        raise DataError(f"{path} has {fault}; prepare the data again")
