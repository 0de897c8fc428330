"""What the lines of a training text are like: how long they are, and how long their translations.

A model folder keeps it, so that a translator knows what its model has learned to translate in one piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from transduce.config.record import Count, Record, config_from_mapping
from transduce.data import PairStore
from transduce.errors import CheckpointError, quoted
from transduce.text import Tokenizers, is_all_caps, split_sentences

__all__ = ["LineStatistics", "line_statistics"]

N_LINES_READ = 20_000  # of the text, to count sentences; evenly spread
LEAST_SHARE = 0.05  # of the lines: what is rarer has hardly been learned
LEAST_TOKENS = 10  # of a source whose ratio tells something
UNUSUAL = 0.001  # share of the pairs whose translations are shorter than that


class LineStatistics(Record):
    """Of the source lines, and the pairs, of a training text. Tokens include the end symbol."""

    sentences: Count  # that many in one line are nothing unusual
    tokens: Count  # likewise
    longest: Count  # tokens of the longest source
    least_ratio: Annotated[float, Field(ge=0)]  # target tokens for each source token: hardly a pair has fewer
    caps: Annotated[float, Field(ge=0)]  # share of the lines that are all in capitals

    def as_json(self) -> dict[str, Any]:
        """For ``config.json``."""
        return self.model_dump()

    @classmethod
    def from_json(cls, values: object, *, where: object) -> LineStatistics | None:
        """What ``as_json`` gave; None for a folder that has none. Raises CheckpointError for anything else."""
        if values is None:
            return None
        if not isinstance(values, dict):
            raise CheckpointError(f"{where}: lines should be a table of numbers, got {quoted(values)}")
        return config_from_mapping(cls, values, where=f"{where}: lines", error=CheckpointError)


def line_statistics(store: PairStore, tokenizers: Tokenizers, language: str) -> LineStatistics:
    """Of the pairs in a store; sentences are counted in a sample of its sources."""
    n_src, n_tgt = store.src_lengths, store.tgt_lengths
    places = np.unique(np.linspace(0, len(n_src) - 1, min(len(n_src), N_LINES_READ)).astype(np.int64))
    lines = tokenizers.src.decode_batch(store.pair(int(place))[0] for place in places)
    is_telling = n_src >= min(LEAST_TOKENS, int(np.median(n_src)))
    return LineStatistics(
        sentences=_usual([len(split_sentences(line, language)) for line in lines]),
        tokens=_usual(n_src.tolist()),
        longest=int(n_src.max()),
        least_ratio=round(float(np.quantile(n_tgt[is_telling] / n_src[is_telling], UNUSUAL)), 4),
        caps=round(sum(map(is_all_caps, lines)) / len(lines), 4),
    )


def _usual(counts: Sequence[int]) -> int:
    """The greatest number that enough of the lines reach."""
    return int(np.quantile(np.asarray(counts), 1 - LEAST_SHARE, method="lower"))
