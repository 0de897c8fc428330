"""Growable ``.npy`` files: small ones are loaded into memory, larger ones are read row by row.

No memory mapping: truncating a mapped file kills the process by SIGBUS, a short read is an ordinary error.

Shapes: I ranges of rows, N rows of all ranges.
"""

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

MAX_BYTES_IN_MEMORY = 1 << 28  # larger files are read from disk on demand
VALUES_PER_READ = 1 << 22  # when iterating over a whole file
MAX_HEADER_BYTES = 256  # twice the header that ArrayWriter writes
HINT = "restore the prepared text as it was, then resume with --resume"


class ArrayWriter:
    """Append rows of one shape to a new ``.npy`` file; closing ``stack`` writes the row count to its header."""

    def __init__(self, path: Path, dtype: np.dtype[Any], row_shape: tuple[int, ...], stack: ExitStack) -> None:
        self._stream = stack.enter_context(path.open("wb"))
        self._dtype, self._row_shape = dtype, row_shape
        self.length = 0
        self._write_header()
        stack.callback(self._write_header)

    def _write_header(self) -> None:
        self._stream.seek(0)  # numpy pads the header, so any row count fits in place
        shape = (self.length, *self._row_shape)
        header = {"descr": npy_format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": shape}
        npy_format.write_array_header_1_0(self._stream, header)

    def append(self, rows: NDArray[Any]) -> None:
        """Append rows."""
        self._stream.write(rows.astype(self._dtype).tobytes())
        self.length += len(rows)


class ArrayFile:
    """An ``.npy`` file of rows of one shape. It is loaded or kept open, so it may be renamed or deleted meanwhile."""

    def __init__(self, path: Path, dtypes: tuple[type[np.generic], ...], shape: tuple[int, ...], what: str) -> None:
        """Open ``path``. Raises DataError unless its dtype, shape and size are as expected. ``what`` names its rows."""
        self.path, self.shape = path, shape
        try:
            with open_regular(path) as stream:
                actual_shape, is_fortran, self.dtype = _read_header(stream)
                if self.dtype not in dtypes or actual_shape != shape or is_fortran:
                    raise DataError(
                        f"{path} should hold {shape[0]:,} {what}, got {self.dtype}{actual_shape}; "
                        "prepare the data again"
                    )
                self._start, self._row_bytes = stream.tell(), self.dtype.itemsize * prod(shape[1:])
                n_bytes = self._start + shape[0] * self._row_bytes
                if os.fstat(stream.fileno()).st_size != n_bytes:
                    raise ValueError(f"{self.dtype}{shape} would need {n_bytes:,} bytes")
                self.in_memory: NDArray[Any] | None = None  # None for a large file
                if n_bytes - self._start <= MAX_BYTES_IN_MEMORY:
                    self.in_memory = np.fromfile(stream, self.dtype, prod(shape)).reshape(shape)
                else:
                    self._descriptor = os.dup(stream.fileno())
                    weakref.finalize(self, os.close, self._descriptor)
        except (OSError, ValueError) as error:
            raise DataError(f"{path} is not an array file: {shown(str(error))}; prepare the data again") from error

    def __len__(self) -> int:
        """Number of rows."""
        return self.shape[0]

    def take(self, rows_I: NDArray[np.int64]) -> NDArray[Any]:
        """Return some rows. Raises DataError if the file is read on demand and was truncated or removed."""
        if self.in_memory is None:
            return self.read(rows_I, np.ones_like(rows_I))
        return self.in_memory.take(rows_I, axis=0)

    def read(self, starts_I: NDArray[np.int64], lengths_I: NDArray[np.int64]) -> NDArray[Any]:
        """Return ranges of rows, concatenated. Raises DataError as ``take`` does."""
        if self.in_memory is not None:
            shifts_I = starts_I - (np.cumsum(lengths_I) - lengths_I)  # index in the file minus index in the result
            indices_N = np.repeat(shifts_I, lengths_I)
            indices_N += np.arange(len(indices_N))
            return self.in_memory.take(indices_N, axis=0)
        size, first, descriptor = self._row_bytes, self._start, self._descriptor
        ranges = zip(starts_I.tolist(), lengths_I.tolist(), strict=True)
        try:
            content = b"".join([os.pread(descriptor, size * n, first + size * start) for start, n in ranges])
        except (OSError, OverflowError) as error:  # the file may be gone, or the offsets file may have changed
            raise DataError(f"{self.path} cannot be read any more: {shown(str(error))}; {HINT}") from error
        if len(content) != size * int(lengths_I.sum()):
            raise DataError(f"{self.path} has become shorter while it was being read; {HINT}")
        return np.frombuffer(content, self.dtype).reshape(-1, *self.shape[1:])

    def chunks(self) -> Iterator[NDArray[Any]]:
        """Iterate over all rows, ``VALUES_PER_READ`` values at a time."""
        n_rows = max(1, VALUES_PER_READ * self.dtype.itemsize // self._row_bytes)
        for start in range(0, len(self), n_rows):
            if self.in_memory is not None:
                yield self.in_memory[start : start + n_rows]
            else:
                yield self.read(np.array([start]), np.array([min(n_rows, len(self) - start)]))


def _read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, Fortran order and dtype of an ``.npy`` stream. Raises ValueError if its header is not valid."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if npy_format.read_magic(stream) != (1, 0):
                raise ValueError("unsupported npy version")
            return npy_format.read_array_header_1_0(stream, max_header_size=MAX_HEADER_BYTES)
    except OSError:
        raise
    except Exception as error:  # numpy parses the header as a Python literal: a damaged one can raise anything
        raise ValueError("invalid npy header") from error
