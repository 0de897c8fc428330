"""Files of tensors: reading, checking and writing safetensors."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from transduce.errors import CheckpointError, shown
from transduce.files import remove, require_regular

__all__ = ["are_finite", "finite_tensors", "read_tensors", "tensors_in", "write_tensors"]

WEIGHT_TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def read_tensors(path: Path, *, may_be_link: bool = False) -> dict[str, Tensor]:
    """Read a safetensors file. Raises CheckpointError if it is unreadable, or neither a file nor an allowed link."""
    return dict(tensors_in(path, may_be_link=may_be_link))


def finite_tensors(path: Path, *, may_be_link: bool = False) -> dict[str, Tensor]:
    """Read a file of weights. Raises CheckpointError also for NaN, Inf, or a dtype that is not floating point."""
    tensors = read_tensors(path, may_be_link=may_be_link)
    for name, tensor in tensors.items():
        if tensor.dtype not in WEIGHT_TYPES:
            raise CheckpointError(f"{path}: tensor {shown(name)} has dtype {tensor.dtype}, weights are floating point")
        if not are_finite(tensor):
            raise CheckpointError(f"{path}: tensor {shown(name)} has values that are not finite (NaN or Inf)")
    return tensors


def are_finite(tensor: Tensor) -> bool:
    """Whether no value of a tensor is NaN or Inf.

    A finite sum shows it in one pass without further memory; a sum of finite values that overflows does not.
    """
    return math.isfinite(tensor.sum()) or bool(tensor.isfinite().all())


def tensors_in(path: Path, *, may_be_link: bool = False) -> Iterator[tuple[str, Tensor]]:
    """Iterate over the (name, tensor) pairs of a safetensors file. Raises CheckpointError as ``read_tensors`` does.

    Tensors are copied out of the library's memory map: truncating a mapped checkpoint would kill the resumed run.
    """
    try:
        require_regular(path, error=CheckpointError, may_be_link=may_be_link)
        with safe_open(path, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118  (not a dict)
                yield name, tensors.get_tensor(name).clone()
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a safetensors file, replacing ``path``. Raises OSError if it cannot be written."""
    remove(path)  # the library would write through a link
    try:
        save_file({name: tensor.detach().contiguous() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:
        errno = re.search(r"os error (\d+)", str(error))
        if errno is None:
            raise
        raise OSError(int(errno[1]), os.strerror(int(errno[1])), str(path)) from error
