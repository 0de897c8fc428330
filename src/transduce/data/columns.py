"""Columns of a store: each row has a non-empty sequence of ids, or of vectors.

A column is two arrays on disk: the concatenated values (``NAME.ids.npy`` or ``NAME.values.npy``), and the row offsets
into them (``NAME.offsets.npy``).

Shapes: R rows of the store, B rows of a batch, N values of several rows, X width of a vector.
"""

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
from transduce.text.encoded_texts import Ragged

__all__ = ["Column", "ColumnWriter", "Ids", "Ragged", "Values", "Vectors", "open_column"]

Values = Sequence[int] | Sequence[Sequence[float]] | NDArray[Any]  # the ids or vectors of one row
MAX_LENGTH = (1 << 31) - 2  # of a row: lengths are int32


class _Kind(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Ids(_Kind):
    """Rows of token ids, at least ``UNK_ID``: padding, BOS and EOS are not stored."""

    files: ClassVar = "ids"
    value_shape: ClassVar[tuple[int, ...]] = ()
    kind: Literal["ids"] = "ids"
    vocab_size: int | None = Field(ge=UNK_ID + 1, le=1 << 32)  # None: not known

    @property
    def dtypes(self) -> tuple[type[np.generic], ...]:
        """Accepted dtypes on disk; the first one is written."""
        return (np.uint16, np.uint32) if (self.vocab_size or 1 << 32) <= 1 << 16 else (np.uint32, np.uint16)

    def concatenate(self, rows: Sequence[Values]) -> NDArray[Any]:
        """Concatenate the ids of several rows. Raises TypeError if one is not an integer."""
        ids = array("q")
        for row in rows:
            ids.extend(row)  # type: ignore[arg-type]  # raises TypeError for anything but integers
        return np.frombuffer(ids, np.int64)

    def check(self, ids_N: NDArray[Any]) -> None:
        """Raise ValueError if an id is out of range."""
        vocab_size = self.vocab_size or 1 << 32
        if ids_N.min() < UNK_ID or ids_N.max() >= vocab_size:
            raise ValueError(f"ids from {ids_N.min()} to {ids_N.max()}, valid are {UNK_ID} to {vocab_size - 1}")


class Vectors(_Kind):
    """Rows of vectors without NaN or Inf: audio frames as floats, columns of pixels as bytes."""

    files: ClassVar = "values"
    kind: Literal["vectors"] = "vectors"
    width: int = Field(ge=1, le=1 << 24)
    dtype: Literal["float32", "float16", "uint8"] = "float32"

    @property
    def dtypes(self) -> tuple[type[np.generic], ...]:
        """The dtype on disk."""
        return (np.dtype(self.dtype).type,)

    @property
    def value_shape(self) -> tuple[int, ...]:
        """Shape of one vector."""
        return (self.width,)

    def concatenate(self, rows: Sequence[Values]) -> NDArray[Any]:
        """Concatenate the vectors of several rows. Raises ValueError if one does not have this width."""
        with np.errstate(over="ignore", invalid="ignore"):  # overflow becomes Inf, which ``check`` reports
            vectors = [_converted(np.asarray(row), np.dtype(self.dtype)) for row in rows]
        for each in vectors:
            if each.shape != (len(each), self.width):
                raise ValueError(f"values of shape {each.shape}, should be (length, {self.width})")
        return np.concatenate(vectors)

    def check(self, vectors_NX: NDArray[Any]) -> None:
        """Raise ValueError on NaN or Inf."""
        if not np.isfinite(vectors_NX).all():
            raise ValueError("non-finite values (NaN or Inf)")


def _converted(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return values in another dtype. Raises ValueError for a number that a byte cannot be."""
    converted = values.astype(dtype, copy=False)
    if dtype == np.uint8 and not np.array_equal(converted, values):
        raise ValueError("values that are no whole numbers from 0 to 255")
    return converted


ColumnKind = Ids | Vectors


def column_files(folder: Path, name: str, kind: ColumnKind) -> tuple[Path, Path]:
    """Return the paths of the values and the offsets of a column."""
    return folder / f"{name}.{kind.files}.npy", folder / f"{name}.offsets.npy"


class ColumnWriter:
    """Append rows to the two files of a column."""

    def __init__(self, folder: Path, name: str, kind: ColumnKind, max_length: int | None, stack: ExitStack) -> None:
        """Create the files in ``folder``. Rows of ids are shorter than ``max_length``; ``stack`` closes the files."""
        self.name, self._kind, self.n_values = name, kind, 0
        self._longest = MAX_LENGTH if max_length is None or kind.kind == "vectors" else max_length - 1
        values_path, offsets_path = column_files(folder, name, kind)
        self._values = ArrayWriter(values_path, np.dtype(kind.dtypes[0]), kind.value_shape, stack)
        self._offsets = ArrayWriter(offsets_path, np.dtype(np.int64), (), stack)
        self._offsets.append(np.zeros(1, dtype=np.int64))

    def append(self, rows: Sequence[Values] | Ragged) -> None:
        """Append rows. Raises DataError if one is empty, too long, or has invalid values."""
        if not len(rows):
            return
        try:
            lengths_B = rows.lengths_B if isinstance(rows, Ragged) else np.array(list(map(len, rows)), np.int64)
            if not 0 < lengths_B.min() <= lengths_B.max() <= self._longest:
                raise ValueError(f"{lengths_B.min():,} values, should be 1 to {self._longest:,}")
            values_N = rows.values_N if isinstance(rows, Ragged) else self._kind.concatenate(rows)
            self._kind.check(values_N)
        except (TypeError, ValueError, OverflowError) as error:
            for row in rows if not isinstance(rows, Ragged) and len(rows) > 1 else []:
                self.append([row])  # raises at the bad row
            where = f"column {self.name}, row {self._offsets.length - 1:,}"
            raise DataError(f"{where}: {error}; drop the row, or declare another column") from error
        self._offsets.append(self.n_values + np.cumsum(lengths_B))
        self._values.append(values_N)
        self.n_values = self._values.length


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column open for reading."""

    kind: ColumnKind
    lengths_R: NDArray[np.int32]  # as stored: without BOS and EOS
    _values: ArrayFile
    _offsets: ArrayFile

    def row(self, n: int) -> NDArray[Any]:
        """Return a copy of the values of one row."""
        return self.gather(np.array([n])).values_N

    def gather(self, rows_B: NDArray[np.int64]) -> Ragged:
        """Return a copy of the values of several rows.

        Raises DataError if the file is read on demand and was truncated, removed or changed.
        """
        return self.gather_parts(rows_B, np.zeros(len(rows_B), np.int64), self.lengths_R[rows_B].astype(np.int64))

    def gather_parts(
        self, rows_B: NDArray[np.int64], start_B: NDArray[np.int64], lengths_B: NDArray[np.int64]
    ) -> Ragged:
        """Return a copy of a part of several rows: ``lengths_B`` values from ``start_B`` on; see ``gather``."""
        values_N = self._values.read(self._offsets.take(rows_B) + start_B, lengths_B)
        if self._values.in_memory is None:
            _check_values(values_N, self.kind, self._values.path)
        return Ragged(values_N, lengths_B)


def open_column(
    folder: Path, name: str, kind: ColumnKind, *, n_rows: int, n_values: int, max_length: int | None
) -> Column:
    """Open the two files of a column and check every value. Raises DataError if they are not valid."""
    values_path, offsets_path = column_files(folder, name, kind)
    values = ArrayFile(values_path, kind.dtypes, (n_values, *kind.value_shape), kind.kind)
    offsets = ArrayFile(offsets_path, (np.int64,), (n_rows + 1,), "offsets")
    lengths_R = _read_lengths(offsets, n_values=n_values)
    longest = int(lengths_R.max()) + 1  # EOS included
    if kind.kind == "ids" and max_length is not None and longest > max_length:
        raise DataError(
            f"{offsets_path} has a row of {longest:,} tokens, the longest should be {max_length:,}; "
            "prepare the data again"
        )
    for chunk in values.chunks():
        _check_values(chunk, kind, values_path)
    return Column(kind, lengths_R, values, offsets)


def _read_lengths(offsets: ArrayFile, *, n_values: int) -> NDArray[np.int32]:
    """Return all row lengths. Raises DataError unless the offsets increase from 0 to the number of values."""
    lengths_R, last, n_read = np.empty(len(offsets) - 1, dtype=np.int32), 0, 0
    for chunk in offsets.chunks():
        bounds = np.concatenate([[last], chunk])[0 if n_read else 1 :]  # begins with the last offset before the chunk
        is_increasing = bool((bounds[1:] > bounds[:-1]).all())  # not by differences, which may overflow
        if not is_increasing or (not n_read and bounds[0] != 0) or bounds[-1] > n_values:
            break
        lengths_R[max(n_read - 1, 0) : n_read + len(chunk) - 1] = np.minimum(np.diff(bounds), MAX_LENGTH)
        last, n_read = int(bounds[-1]), n_read + len(chunk)
    if n_read != len(offsets) or last != n_values:
        raise DataError(
            f"{offsets.path} should increase from 0 to {n_values:,} without empty rows; prepare the data again"
        )
    return lengths_R


def _check_values(values_N: NDArray[Any], kind: ColumnKind, path: Path) -> None:
    try:
        kind.check(values_N)
    except ValueError as error:
        raise DataError(f"{path} has {error}; prepare the data again") from error
