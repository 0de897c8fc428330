"""Measurements of a model, kept beside the record of its run: tables as JSON, arrays as ``.npy``.

A file names the SHA-256 of the model's weights and the settings of the measurement (its key); with another key it is
measured again. Only a new measurement needs the model: if it is lost, it is trained again, and everything of the report
is measured on the new one.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from transduce.errors import DataError
from transduce.files import Migration, atomic_write, migrated, open_regular, read_json, write_json

__all__ = [
    "MAX_ARRAY_BYTES", "MeasuredArrays", "read_arrays", "read_tables", "validated", "write_arrays", "write_tables",
]  # fmt: skip

MIGRATIONS: tuple[Migration, ...] = (dict,)  # 0 to 1: no change
FORMAT = len(MIGRATIONS)
MAX_ARRAY_BYTES = 1_000_000  # of all arrays of one measurement, since they are committed

T = TypeVar("T")
Tables = list[dict[str, Any]]
Key = Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredArrays:
    """Arrays by name, and what belongs to them as JSON values."""

    values: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def read_tables(path: Path, what: str, key: Key) -> Tables | None:
    """Return cached tables; None if there are none of that key. Raises DataError if the file is damaged."""
    cached = _cached(path, key)
    if cached is None:
        return None
    if isinstance(values := cached.get(what), list) and all(isinstance(each, dict) for each in values):
        return values
    raise DataError(f"{path}: {what!r} must be a list of tables; delete the file to measure again")


def write_tables(path: Path, what: str, key: Key, tables: Tables) -> None:
    """Write tables under a key, atomically."""
    write_json(path, {"format": FORMAT, **key, what: tables})


def read_arrays(path: Path, key: Key) -> MeasuredArrays | None:
    """Return the arrays whose JSON file is ``path``; None if there are none of that key.

    Raises DataError if a file is missing or damaged, by the checksums in the JSON file.
    """
    cached = _cached(path, key)
    if cached is None:
        return None
    values, checksums = cached.get("values"), cached.get("arrays")
    if not isinstance(values, dict) or not isinstance(checksums, dict) or not all(map(str.isidentifier, checksums)):
        raise DataError(f"{path}: 'values' and 'arrays' must be tables of names; delete the file to measure again")
    arrays = {name: _read_array(_array_path(path, name), digest, listed_in=path) for name, digest in checksums.items()}
    return MeasuredArrays(values, arrays)


def write_arrays(path: Path, key: Key, measured: MeasuredArrays) -> None:
    """Write ``NAME.npy`` of each array, then the JSON file that lists them, each atomically.

    Raises DataError, and writes nothing, if the arrays are larger than ``MAX_ARRAY_BYTES``.
    """
    contents = {name: _npy(array) for name, array in measured.arrays.items()}
    n_bytes = sum(map(len, contents.values()))
    if n_bytes > MAX_ARRAY_BYTES:
        raise DataError(f"{path}: its arrays have {n_bytes:,} bytes, the limit is {MAX_ARRAY_BYTES:,}")
    for name, content in contents.items():
        with atomic_write(_array_path(path, name)) as stream:
            stream.write(content)
    checksums = {name: sha256(content).hexdigest() for name, content in contents.items()}
    write_json(path, {"format": FORMAT, **key, "values": measured.values, "arrays": checksums})


def validated(kind: TypeAdapter[T], values: object, *, where: str) -> T:
    """Convert cached JSON values to a type. Raises DataError, naming ``where``, if they do not have its fields."""
    try:
        return kind.validate_python(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise DataError(
            f"{where} is not of this version ({place}: {first['msg']}); delete it to measure again"
        ) from error


def _cached(path: Path, key: Key) -> dict[str, Any] | None:
    """Return the values of a file; None if it is missing or has another key."""
    if not path.exists():
        return None
    cached = migrated(read_json(path), MIGRATIONS, where=path)
    return cached if {name: cached.get(name) for name in key} == key else None


def _array_path(path: Path, name: str) -> Path:
    return path.with_suffix(f".{name}.npy")


def _npy(array: NDArray[Any]) -> bytes:
    if array.dtype.hasobject:  # numpy would pickle it
        raise ValueError(f"an array of {array.dtype} cannot be cached; use numbers")
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array)
    return stream.getvalue()


def _read_array(path: Path, digest: object, *, listed_in: Path) -> NDArray[Any]:
    try:
        with open_regular(path) as stream:
            content = stream.read()
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror or error}; delete {listed_in} to measure again"
        ) from error
    if sha256(content).hexdigest() != digest:
        raise DataError(f"{path} has another checksum than {listed_in}; delete the latter to measure again")
    try:
        array: NDArray[Any] = np.lib.format.read_array(io.BytesIO(content))  # refuses pickled objects
    except ValueError as error:
        raise DataError(f"{path} is not an array ({error}); delete {listed_in} to measure again") from error
    return array
