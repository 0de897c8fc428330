"""The library that ``native/build.py`` compiles, if it is there, and what training calls of it (``transduce.h``)."""

from __future__ import annotations

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from ctypes import c_double, c_int32, c_int64, c_void_p
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "Attention", "CrossEntropy", "in_threads", "native_library"]

ABI = 5  # TD_ABI of transduce.h
NAMES = ("libtransduce.so", "libtransduce.dylib", "transduce.dll")
FOLDER = Path(__file__).parent / "inference" / "native"  # where build.py puts it
FAULTS = {
    2: (IndexError, "the target of a position is not in the vocabulary"),
    3: (MemoryError, "no memory for what training computes in C"),
    4: (ValueError, "TRANSDUCE_ISA names no kernels of this processor"),
}


@cache
def native_library() -> Any:
    """Return the library; None if there is none, or one of another version of the interface."""
    named = os.environ.get("TRANSDUCE_LIBRARY")
    for path in [Path(named)] if named else [FOLDER / name for name in NAMES]:
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        if library.td_abi() == ABI:
            return library
    return None


class Attention(ctypes.Structure):
    """struct td_attention."""

    function = "td_attend"
    _fields_ = [
        *((name, c_int32) for name in ("n_heads", "d_k", "d_v", "is_causal", "is_bf16")),
        ("query_offsets", c_void_p), ("key_offsets", c_void_p), ("q", c_void_p), ("k", c_void_p), ("v", c_void_p),
        ("q_stride", c_int64), ("k_stride", c_int64), ("v_stride", c_int64), ("out", c_void_p), ("log_sums", c_void_p),
        ("out_grad", c_void_p), ("q_grad", c_void_p), ("k_grad", c_void_p), ("v_grad", c_void_p),
    ]  # fmt: skip


class CrossEntropy(ctypes.Structure):
    """struct td_cross_entropy."""

    function = "td_cross_entropy"
    _fields_ = [
        ("n_passes", c_int32), ("vocab_size", c_int32), ("is_bf16", c_int32), ("pass_stride", c_int64),
        ("row_stride", c_int64), ("logits", c_void_p), ("targets", c_void_p), ("a", c_double), ("alpha", c_double),
        ("sums", c_void_p),
    ]  # fmt: skip


def in_threads(call: Attention | CrossEntropy, n: int, n_threads: int) -> None:
    """Compute the sentences or rows 0 to n of a call, each thread some of them. Raises IndexError or MemoryError."""
    n_threads = max(1, min(n_threads, n))
    first, *others = pairwise(n * part // n_threads for part in range(n_threads + 1))
    run = partial(_function(call.function), ctypes.byref(call))
    futures = [_pool(os.getpid(), n_threads).submit(run, *part) for part in others]
    status = max(run(*first), *(future.result() for future in futures), 0)
    if status:
        error, message = FAULTS[status]
        raise error(message)


@cache
def _function(name: str) -> Any:
    function = getattr(native_library(), name)
    function.argtypes = (c_void_p, c_int32, c_int32)
    return function


@cache
def _pool(process: int, n_threads: int) -> ThreadPoolExecutor:
    """The threads beside that which calls; a forked process has none of its parent's."""
    return ThreadPoolExecutor(n_threads - 1, f"training-{process}")
