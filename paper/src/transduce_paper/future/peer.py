"""Greedy search of CTranslate2, in a process of its own.

In the process of PyTorch the two would disturb each other: once CTranslate2's threads have computed, OpenMP counts more
threads than cores, and PyTorch's wait for each other in a slower way, for the rest of the process.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.text import SPECIAL_TOKENS

if TYPE_CHECKING:
    import ctranslate2

__all__ = ["CTranslate2Process", "has_ctranslate2"]

_translator: ctranslate2.Translator | None = None  # in the process


def has_ctranslate2() -> bool:
    """Whether CTranslate2, which is in the extra ``exchange``, is installed."""
    return find_spec("ctranslate2") is not None


class CTranslate2Process:
    """A process that has loaded a folder of CTranslate2, and translates batches of tokens in fp32."""

    def __init__(self, folder: Path, *, n_threads: int) -> None:
        """Start it, and wait until it has loaded the folder, which is not needed any more then."""
        self._process = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
        self._process.submit(_load, folder, n_threads).result()

    def translate(self, sources: Sequence[Sequence[str]], *, max_length: int) -> list[list[str]]:
        """The tokens of the translations, of at most ``max_length`` tokens."""
        return self._process.submit(_translate, sources, max_length).result()


def _load(folder: Path, n_threads: int) -> None:
    import ctranslate2

    global _translator
    _translator = ctranslate2.Translator(str(folder), compute_type="float32", inter_threads=1, intra_threads=n_threads)


def _translate(sources: Sequence[Sequence[str]], max_length: int) -> list[list[str]]:
    assert _translator is not None
    results = _translator.translate_batch(
        sources,
        beam_size=1,
        min_decoding_length=0,
        max_decoding_length=max_length,
        suppress_sequences=[[SPECIAL_TOKENS[0]], [SPECIAL_TOKENS[1]]],
    )
    return [result.hypotheses[0] for result in results]
