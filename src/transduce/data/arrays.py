"""Arrays on disk: ``.npy`` files that grow, and that are held in memory where they are small, else read row by row.

Nothing is mapped into memory: a map of a file that is cut meanwhile ends the process, a read that comes short is told.
"""

# B stretches of an array, M rows of all of them

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from transduce.errors import DataError, shown
from transduce.files import open_regular

__all__ = ["ArrayFile", "ArrayWriter"]

HELD_BYTES = 1 << 28  # files up to this size are held in memory; of larger ones, only what is asked for is read
VALUES_AT_A_TIME = 1 << 22  # where all are looked at
MOST_HEADER = 256  # bytes, twice as many as the header of such an array has
MEND = "bring back the prepared text as it was, then go on with --resume"


class ArrayWriter:
    """A ``.npy`` file that grows by rows of one shape; when ``stack`` closes, their number goes into its header."""

    def __init__(self, path: Path, dtype: np.dtype[Any], row_shape: tuple[int, ...], stack: ExitStack) -> None:
        self._stream = stack.enter_context(path.open("wb"))
        self._dtype, self._row_shape = dtype, row_shape
        self.length = 0
        self._write_header()
        stack.callback(self._write_header)

    def _write_header(self) -> None:
        self._stream.seek(0)  # numpy pads the header so far that any length fits into the same place
        shape = (self.length, *self._row_shape)
        header = {"descr": npy_format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": shape}
        npy_format.write_array_header_1_0(self._stream, header)

    def append(self, rows: NDArray[Any]) -> None:
        """Write more rows, at the end."""
        self._stream.write(rows.astype(self._dtype).tobytes())
        self.length += len(rows)


class ArrayFile:
    """A ``.npy`` file of rows of one shape, held in memory or open for reading: it may get another name or go."""

    def __init__(self, path: Path, dtypes: tuple[type[np.generic], ...], shape: tuple[int, ...], what: str) -> None:
        """Raises DataError if it is no such file: of one of the ``dtypes``, of this ``shape``, and no longer."""
        self.path, self.shape = path, shape
        try:
            with open_regular(path) as stream:
                found_shape, is_fortran, self.dtype = _read_header(stream)
                if self.dtype not in dtypes or found_shape != shape or is_fortran:
                    raise DataError(
                        f"{path} should hold {shape[0]:,} {what}, got {self.dtype}{found_shape}; prepare the data again"
                    )
                self._start, self._row_bytes = stream.tell(), self.dtype.itemsize * prod(shape[1:])
                n_bytes = self._start + shape[0] * self._row_bytes
                if os.fstat(stream.fileno()).st_size != n_bytes:
                    raise ValueError(f"{self.dtype}{shape} would need {n_bytes:,} bytes")
                self.held: NDArray[Any] | None = None  # where it is small
                if n_bytes - self._start <= HELD_BYTES:
                    self.held = np.fromfile(stream, self.dtype, prod(shape)).reshape(shape)
                else:
                    self._descriptor = os.dup(stream.fileno())
                    weakref.finalize(self, os.close, self._descriptor)
        except (OSError, ValueError) as error:
            raise DataError(f"{path} is not an array file: {shown(str(error))}; prepare the data again") from error

    def __len__(self) -> int:
        """How many rows there are."""
        return self.shape[0]

    def at(self, rows_B: NDArray[np.int64]) -> NDArray[Any]:
        """Some rows. Raises DataError if they have to be read and the file has become shorter, or is gone."""
        if self.held is None:
            return self.read(rows_B, np.ones_like(rows_B))
        return self.held.take(rows_B, axis=0)

    def read(self, starts_B: NDArray[np.int64], lengths_B: NDArray[np.int64]) -> NDArray[Any]:
        """Some stretches of rows, one after the other. Raises DataError as ``at`` does."""
        if self.held is not None:
            shifts_B = starts_B - (np.cumsum(lengths_B) - lengths_B)  # from a place in the result to the place in all
            places_M = np.repeat(shifts_B, lengths_B)
            places_M += np.arange(len(places_M))
            return self.held.take(places_M, axis=0)
        size, first, descriptor = self._row_bytes, self._start, self._descriptor
        places = zip(starts_B.tolist(), lengths_B.tolist(), strict=True)
        try:
            content = b"".join([os.pread(descriptor, size * n, first + size * start) for start, n in places])
        except (OSError, OverflowError) as error:  # it may be gone, or offsets that lead here may have changed
            raise DataError(f"{self.path} cannot be read any more: {shown(str(error))}; {MEND}") from error
        if len(content) != size * int(lengths_B.sum()):
            raise DataError(f"{self.path} has become shorter while it was being read; {MEND}")
        return np.frombuffer(content, self.dtype).reshape(-1, *self.shape[1:])

    def parts(self) -> Iterator[NDArray[Any]]:
        """All of it, so many values at a time."""
        n_rows = max(1, VALUES_AT_A_TIME * self.dtype.itemsize // self._row_bytes)
        for start in range(0, len(self), n_rows):
            if self.held is not None:
                yield self.held[start : start + n_rows]
            else:
                yield self.read(np.array([start]), np.array([min(n_rows, len(self) - start)]))


def _read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of the values. Raises ValueError if that is not what ``stream`` begins with."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if npy_format.read_magic(stream) != (1, 0):
                raise ValueError("it is of another version")
            return npy_format.read_array_header_1_0(stream, max_header_size=MOST_HEADER)
    except OSError:
        raise
    except Exception as error:  # to numpy, a header is a literal of Python: a damaged one raises whatever parsers do
        raise ValueError("it does not begin as one") from error
