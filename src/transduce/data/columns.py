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
from typing import Any, ClassVar, Literal

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

    files: ClassVar = "ids"
    value_shape: ClassVar[tuple[int, ...]] = ()
    kind: Literal["ids"] = "ids"
    vocab_size: int | None = Field(ge=UNK_ID + 1, le=1 << 32)  # None: not known

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

    def require(self, ids_M: NDArray[Any]) -> None:
        """Raises ValueError if there are ids that no text can have."""
        vocab_size = self.vocab_size or 1 << 32
        if ids_M.min() < UNK_ID or ids_M.max() >= vocab_size:
            raise ValueError(f"ids from {ids_M.min()} to {ids_M.max()}, text can have {UNK_ID} to {vocab_size - 1}")


class Vectors(_Kind):
    """Rows of vectors of finite 32-bit numbers: frames of audio, patches of an image."""

    files: ClassVar = "values"
    dtypes: ClassVar[tuple[type[np.generic], ...]] = (np.float32,)
    kind: Literal["vectors"] = "vectors"
    width: int = Field(ge=1, le=1 << 24)

    @property
    def value_shape(self) -> tuple[int, ...]:
        """Of one vector."""
        return (self.width,)

    def joined(self, rows: Sequence[Values]) -> NDArray[Any]:
        """All vectors of all rows. Raises ValueError if some are no vectors of this width."""
        with np.errstate(over="ignore"):  # what 32 bits cannot hold is not finite, and told
            vectors = [np.asarray(row, np.float32) for row in rows]
        for each in vectors:
            if each.shape != (len(each), self.width):
                raise ValueError(f"values of shape {each.shape}, where it should be (length, {self.width})")
        return np.concatenate(vectors)

    def require(self, vectors_MW: NDArray[Any]) -> None:
        """Raises ValueError if there are numbers that are not finite."""
        if not np.isfinite(vectors_MW).all():
            raise ValueError("numbers that are not finite")


ColumnKind = Ids | Vectors


def column_files(folder: Path, name: str, kind: ColumnKind) -> tuple[Path, Path]:
    """Where the values and the offsets of a column lie."""
    return folder / f"{name}.{kind.files}.npy", folder / f"{name}.offsets.npy"


class ColumnWriter:
    """Appends rows to the two files of a column."""

    def __init__(self, folder: Path, name: str, kind: ColumnKind, max_length: int | None, stack: ExitStack) -> None:
        """Rows of ids are shorter than ``max_length``."""
        self.name, self._kind, self.n_values = name, kind, 0
        self._longest = MOST_LENGTH if max_length is None or kind.kind == "vectors" else max_length - 1
        values_path, offsets_path = column_files(folder, name, kind)
        self._values = ArrayWriter(values_path, np.dtype(kind.dtypes[0]), kind.value_shape, stack)
        self._offsets = ArrayWriter(offsets_path, np.dtype(np.int64), (), stack)
        self._offsets.append(np.zeros(1, dtype=np.int64))

    def append(self, rows: Sequence[Values]) -> None:
        """Write more rows. Raises DataError if one is empty or too long, or has values that the column cannot have."""
        lengths_N = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        try:
            if not 0 < lengths_N.min() <= lengths_N.max() <= self._longest:
                raise ValueError(f"{lengths_N.min():,} values, where there can be 1 to {self._longest:,}")
            values_M = self._kind.joined(rows)
            self._kind.require(values_M)
        except (TypeError, ValueError, OverflowError) as error:
            for row in rows if len(rows) > 1 else []:
                self.append([row])  # as far as the one that is wrong
            place = f"column {self.name}, row {self._offsets.length - 1:,}"
            raise DataError(f"{place}: {error}; leave the row out, or declare another column") from error
        self._offsets.append(self.n_values + np.cumsum(lengths_N))
        self._values.append(values_M)
        self.n_values = self._values.length


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


def open_column(
    folder: Path, name: str, kind: ColumnKind, *, n_rows: int, n_values: int, max_length: int | None
) -> Column:
    """Open the two files of a column and look at every value. Raises DataError if they are not what they should be."""
    values_path, offsets_path = column_files(folder, name, kind)
    values = ArrayFile(values_path, kind.dtypes, (n_values, *kind.value_shape), kind.kind)
    offsets = ArrayFile(offsets_path, (np.int64,), (n_rows + 1,), "offsets")
    lengths_N = _read_lengths(offsets, n_values=n_values)
    longest = int(lengths_N.max()) + 1
    if kind.kind == "ids" and max_length is not None and longest > max_length:
        raise DataError(
            f"{offsets_path} has a row of {longest:,} tokens, the longest should be {max_length:,}; "
            "prepare the data again"
        )
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
    try:
        kind.require(values_M)
    except ValueError as error:
        raise DataError(f"{path} has {error}; prepare the data again") from error
