"""What the lines of a training text are like: how long they are, and how long their translations.

A model folder keeps it, so that a translator knows what its model has learned to translate in one piece.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transduce.data import PairStore
from transduce.errors import CheckpointError, quoted
from transduce.text import Tokenizers, is_all_caps, split_sentences

__all__ = ["LineStatistics", "line_statistics"]

N_LINES_READ = 20_000  # of the text, to count sentences; evenly spread
LEAST_SHARE = 0.05  # of the lines: what is rarer has hardly been learned
LEAST_TOKENS = 10  # of a source whose ratio tells something
UNUSUAL = 0.001  # share of the pairs whose translations are shorter than that


@dataclass(frozen=True, slots=True)
class LineStatistics:
    """Of the source lines, and the pairs, of a training text. Tokens include the end symbol."""

    sentences: int  # that many in one line are nothing unusual
    tokens: int  # likewise
    longest: int  # tokens of the longest source
    least_ratio: float  # target tokens for each source token: hardly a pair has fewer
    caps: float  # share of the lines that are all in capitals

    def as_json(self) -> dict[str, Any]:
        """For ``config.json``."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: object, *, where: object) -> LineStatistics | None:
        """What ``as_json`` gave; None for a folder that has none. Raises CheckpointError for anything else."""
        if values is None:
            return None
        wanted = {field.name: int if field.type == "int" else float for field in dataclasses.fields(cls)}
        if not isinstance(values, dict) or values.keys() != wanted.keys():
            raise CheckpointError(f"{where}: lines should have {', '.join(wanted)}, got {quoted(values)}")
        for name, kind in wanted.items():
            value = values[name]
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            least = 0 if kind is float else 1
            if not is_number or not least <= value < 1 << 53 or (kind is int and not isinstance(value, int)):
                raise CheckpointError(f"{where}: lines: {name} should be a number, got {quoted(value)}")
        return cls(**values)


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
