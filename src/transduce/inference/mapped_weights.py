"""Weights as they lie in a safetensors file, without torch: mapped into memory, and checked."""

from __future__ import annotations

import json
import math
import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from transduce.errors import CheckpointError, shown
from transduce.files import open_regular, require_regular

__all__ = ["MappedTensor", "mapped_weights", "tensor_shapes"]

# By the name of a type in the file: its name in PyTorch, and that of its bits in numpy.
TYPES = {"F32": ("float32", "<f4"), "F64": ("float64", "<f8"), "F16": ("float16", "<u2"), "BF16": ("bfloat16", "<u2")}
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
    try:
        require_regular(path, error=CheckpointError, may_be_link=True)
        with safe_open(path, framework="np") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error


def mapped_weights(path: Path) -> dict[str, MappedTensor]:
    """Return the weights of a safetensors file, which stays mapped into memory as long as one of them is used.

    Raises CheckpointError if the file is damaged, or if a tensor is not floating point, or has values that are NaN or
    Inf.
    """
    shapes = tensor_shapes(path)  # the library checks the header
    with open_regular(path, error=CheckpointError, may_be_link=True) as stream:
        mapped = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    start = 8 + int.from_bytes(mapped[:8], "little")
    header = json.loads(bytes(mapped[8:start]))
    weights = {}
    for name in shapes:
        dtype, (begin, end) = header[name]["dtype"], header[name]["data_offsets"]
        if dtype not in TYPES:
            raise CheckpointError(f"{path}: tensor {shown(name)} has dtype {dtype}, weights are floating point")
        values = np.frombuffer(mapped[start + begin : start + end], TYPES[dtype][1]).reshape(shapes[name])
        weights[name] = tensor = MappedTensor(TYPES[dtype][0], np.require(values, requirements="A"))
        if not tensor.is_finite:
            raise CheckpointError(f"{path}: tensor {shown(name)} has values that are not finite (NaN or Inf)")
    return weights
