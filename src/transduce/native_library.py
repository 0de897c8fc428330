"""The library that ``native/build.py`` compiles, if it is there, and what training calls of it (``transduce.h``)."""

from __future__ import annotations

import ctypes
import os
from ctypes import c_double, c_int32, c_int64, c_uint, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

from transduce.errors import ConfigError

__all__ = ["FOLDER", "Attention", "CrossEntropy", "compute", "computes", "native_library"]

ABI = 6  # TD_ABI of transduce.h
NAMES = ("libtransduce.so", "libtransduce.dylib", "transduce.dll")
FOLDER = Path(__file__).parent / "inference" / "native"  # where build.py puts it
PARTS_OF_A_THREAD = 4  # sentences are of different lengths
FAULTS = {
    2: (IndexError, "the target of a position is not in the vocabulary"),
    3: (MemoryError, "no memory for what training computes in C"),
    4: (ConfigError, "TRANSDUCE_ISA names no kernels that run here; transduce help environment has those there are"),
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


class _Shared(ctypes.Structure):
    """struct td_shared."""

    _fields_ = [
        ("function", c_void_p), ("call", c_void_p), ("n", c_int32), ("n_parts", c_int32), ("next", c_int32),
        ("status", c_int32),
    ]  # fmt: skip


def computes(n_threads: int) -> bool:
    """Whether the library is here, and computes in so many threads: those of torch, if they are several."""
    return native_library() is not None and (n_threads == 1 or _gomp_parallel() is not None)


def compute(call: Attention | CrossEntropy, n: int, n_threads: int) -> None:
    """Compute the sentences or rows 0 to n of a call. Raises IndexError, MemoryError or ConfigError."""
    function, share = _functions(call.function)
    shared = _Shared(function, ctypes.addressof(call), n, min(n, PARTS_OF_A_THREAD * n_threads))
    parallel = _gomp_parallel() if n_threads > 1 else None
    if parallel is None:
        share(ctypes.addressof(shared))
    else:
        parallel(share, ctypes.addressof(shared), n_threads, 0)
    if shared.status:
        error, message = FAULTS[shared.status]
        raise error(message)


@cache
def _functions(name: str) -> tuple[int, Any]:
    """Return the address of a function, and td_share."""
    library = native_library()
    address = ctypes.cast(getattr(library, name), c_void_p).value
    assert address is not None
    library.td_share.argtypes = (c_void_p,)
    return address, library.td_share


@cache
def _gomp_parallel() -> Any:
    """Return what starts the threads of torch: they are awake, and others would share the cores with them.

    None where torch's OpenMP is not GNU's.
    """
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    paths = {line.split(maxsplit=5)[-1] for line in lines if "libgomp" in line}
    [path] = [*(path for path in paths if "torch" in path), *paths, None][:1]
    if path is None:
        return None
    parallel = ctypes.CDLL(path).GOMP_parallel
    parallel.argtypes = (c_void_p, c_void_p, c_uint, c_uint)
    return parallel
