"""Weights as they lie in a safetensors file, without torch: mapped into memory, and checked."""

from __future__ import annotations

import json
import math
import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from transduce.errors import CheckpointError, shown
from transduce.files import open_regular
from transduce.imports import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MappedTensor", "mapped_weights", "tensor_shapes"]

# By the name of a type in the file: its name in PyTorch, and that of its bits in numpy.
TYPES = {"F32": ("float32", "<f4"), "F64": ("float64", "<f8"), "F16": ("float16", "<u2"), "BF16": ("bfloat16", "<u2")}
MAX_HEADER_BYTES = 100_000_000  # that the format allows
EXPONENTS = {"float16": 0x7C00, "bfloat16": 0x7F80}  # all of these bits: NaN or Inf


@dataclass(frozen=True, slots=True, eq=False)
class MappedTensor:
    """A tensor of a file. ``values`` of the half precisions are their bits."""

    dtype: str
    values: NDArray[Any]

    @property
    def is_finite(self) -> bool:
        """Whether no value is NaN or Inf.

        A finite sum shows it in one pass; a sum of finite values that overflows does not.
        """
        exponent = EXPONENTS.get(self.dtype)
        if exponent is not None:
            return not bool(((self.values & exponent) == exponent).any())
        with np.errstate(all="ignore"):
            return math.isfinite(self.values.sum()) or bool(np.isfinite(self.values).all())


def tensor_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor, from the header of a file. Raises CheckpointError if that is damaged."""
    with _opened(path) as stream:
        return {name: shape for name, (_, shape, _) in _header(stream, path).items()}


def mapped_weights(path: Path) -> dict[str, MappedTensor]:
    """Return the weights of a safetensors file, which stays mapped into memory as long as one of them is used.

    Raises CheckpointError if the file is damaged, or if a tensor is not floating point, or has values that are NaN or
    Inf.
    """
    with _opened(path) as stream:
        header = _header(stream, path)
        mapped = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    weights = {}
    for name, (dtype, shape, begin) in header.items():
        kind, bits = TYPES[dtype]
        values = np.frombuffer(mapped, bits, math.prod(shape), begin).reshape(shape)
        weights[name] = tensor = MappedTensor(kind, np.require(values, requirements="A"))
        if not tensor.is_finite:
            raise CheckpointError(f"{path}: tensor {shown(name)} has values that are not finite (NaN or Inf)")
    return weights


def _opened(path: Path) -> IO[bytes]:
    try:
        return open_regular(path, error=CheckpointError, may_be_link=True)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error


def _header(stream: IO[bytes], path: Path) -> dict[str, tuple[str, tuple[int, ...], int]]:
    """Return the type, the shape and the first byte of each tensor: one follows the other up to the end of the file."""
    try:
        n_bytes = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(min(n_bytes, MAX_HEADER_BYTES)))
        header.pop("__metadata__", None)
        found, end = {}, 0
        for name, entry in sorted(header.items(), key=lambda each: each[1]["data_offsets"]):
            dtype, shape, offsets = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
            if dtype not in TYPES:
                raise CheckpointError(f"{path}: tensor {shown(name)} has dtype {dtype}, weights are floating point")
            if not all(type(n) is int and n >= 0 for n in shape):
                raise ValueError(f"tensor {shown(name)} has the shape {shown(str(shape))}")
            begin, end = end, end + math.prod(shape) * int(TYPES[dtype][1][-1])
            if offsets != [begin, end]:
                raise ValueError(f"tensor {shown(name)} should be at bytes {begin} to {end}, got {shown(str(offsets))}")
            found[name] = dtype, shape, 8 + n_bytes + begin
        if 8 + n_bytes + end != os.fstat(stream.fileno()).st_size:
            raise ValueError("its header describes a file of another size")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    return found
