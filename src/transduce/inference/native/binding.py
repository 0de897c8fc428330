"""The compiled library of ``native/``, called by ctypes: the structures of ``transduce.h`` and its functions."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_double, c_float, c_int32, c_int64, c_void_p
from functools import cache
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

from transduce.imports import numpy as np
from transduce.native_library import native_library

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

__all__ = [
    "ALLOWED", "DRAW", "ON_IDS", "ON_STEP", "Config", "Phrases", "Search", "Tensor", "address", "flat", "kernels",
    "library",
]  # fmt: skip

ALLOWED = ctypes.CFUNCTYPE(c_int32, c_int32, POINTER(c_int32), c_int32, POINTER(c_int32))
DRAW = ctypes.CFUNCTYPE(c_int32, c_int32, POINTER(c_int32), POINTER(c_double))
ON_IDS = ctypes.CFUNCTYPE(c_int32, c_int32, POINTER(c_int32), c_int32)
ON_STEP = ctypes.CFUNCTYPE(c_int32)


class Config(ctypes.Structure):
    """struct td_config."""

    _fields_ = [
        *((name, c_int32) for name in (
            "d_model", "d_ff", "n_heads", "d_k", "d_v", "n_encoder_layers", "n_decoder_layers", "src_vocab_size",
            "tgt_vocab_size", "is_pre_norm", "activation", "n_positions",
        )),
        ("norm_eps", c_float), ("embedding_factor", c_float),
        ("src_begins_word", c_void_p), ("tgt_begins_word", c_void_p),
    ]  # fmt: skip


class Tensor(ctypes.Structure):
    """struct td_tensor."""

    _fields_ = [
        ("name", c_char_p), ("data", c_void_p), ("n_rows", c_int64), ("n_columns", c_int64), ("type", c_int32),
    ]  # fmt: skip


class Phrases(ctypes.Structure):
    """struct td_phrases."""

    _fields_ = [("ids", c_void_p), ("offsets", c_void_p), ("first", c_void_p)]


class Search(ctypes.Structure):
    """struct td_search."""

    _fields_ = [
        ("n_sentences", c_int32), ("src_ids", c_void_p), ("src_offsets", c_void_p), ("src_states", c_void_p),
        ("prompt_ids", c_void_p), ("prompt_offsets", c_void_p), ("window", c_int32), ("max_lengths", c_void_p),
        ("eos_id", c_int32), ("n_suppressed", c_int32), ("suppressed_ids", c_void_p),
        ("beam_size", c_int32), ("n_best", c_int32), ("alpha", c_float), ("is_scored", c_int32),
        ("is_sampled", c_int32), ("top_k", c_int32), ("temperature", c_double), ("top_p", c_double),
        ("seeds", c_void_p), ("draw", DRAW),
        ("prefix_ids", c_void_p), ("prefix_offsets", c_void_p), ("starts_word", c_void_p), ("word_starts", c_void_p),
        ("min_length", c_int32), ("no_repeat_ngram", c_int32), ("max_repeats", c_void_p), ("n_units", c_int32),
        ("avoided", Phrases), ("wanted", Phrases), ("goes_on", c_void_p), ("allowed", ALLOWED),
        ("pooled", c_void_p), ("n_pooled", c_int32), ("listed_ids", c_void_p), ("listed_offsets", c_void_p),
        ("draft", c_void_p), ("n_drafted", c_int32),
        ("min_draft_probability", c_double), ("counts", c_void_p), ("on_ids", ON_IDS), ("on_step", ON_STEP),
        ("stop", c_void_p),
        ("max_length", c_int32), ("ids", c_void_p), ("lengths", c_void_p), ("log_probs", c_void_p),
        ("scores", c_void_p), ("is_finished", c_void_p),
    ]  # fmt: skip


@cache
def library() -> Any:
    """Return the library, its functions declared; None without one."""
    lib = native_library()
    return None if lib is None else _declared(lib)


def kernels() -> str:
    """Return the name of the kernels that this processor gets."""
    name: bytes = library().td_isa()
    return name.decode()


def _declared(lib: Any) -> Any:
    text = (c_char_p, c_int32)
    lib.td_isa.restype = c_char_p
    lib.td_load.argtypes, lib.td_load.restype = (POINTER(Config), POINTER(Tensor), c_int32, c_int32, *text), c_void_p
    lib.td_free.argtypes, lib.td_free.restype = (c_void_p,), None
    lib.td_save.argtypes = (c_void_p, c_char_p, c_char_p, *text)
    lib.td_map.argtypes, lib.td_map.restype = (POINTER(Config), c_int32, c_char_p, c_char_p, *text), c_void_p
    lib.td_run.argtypes = (c_void_p, POINTER(Search), *text)
    lib.td_score.argtypes = (c_void_p, POINTER(Search), c_void_p, c_void_p, c_int32, c_void_p)
    lib.td_logits.argtypes = (c_void_p, POINTER(Search), c_void_p)
    return lib


def flat(rows: Sequence[Sequence[int] | NDArray[Any]]) -> tuple[array[int], array[int]]:
    """Return the ids of all rows, one row after the other, and where each row begins; the last is where they end."""
    return array("i", chain.from_iterable(rows)), array("i", accumulate(map(len, rows), initial=0))


def address(numbers: array[Any] | NDArray[Any] | None, dtype: DTypeLike | None = None) -> int | None:
    """Return where numbers are, which the caller keeps. Raises TypeError for numpy's of another type or layout."""
    if numbers is None:
        return None
    if isinstance(numbers, array):
        return numbers.buffer_info()[0]
    if (dtype is not None and numbers.dtype != dtype) or not numbers.flags.c_contiguous:
        raise TypeError(f"expected a contiguous array of {np.dtype(dtype)}, got {numbers.dtype}")
    return int(numbers.ctypes.data)
