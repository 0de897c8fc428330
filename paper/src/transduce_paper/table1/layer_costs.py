"""Costs of a layer: operations counted while it runs, and measured time.

Shapes: T positions (n in the paper), D d_model (d in the paper).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from transduce.model.sequence_layers import SequenceLayer
from transduce_paper.table1.compared_layers import ComparedLayer

__all__ = ["Case", "Operations", "count_operations", "median_times_ms"]


@dataclass(frozen=True, slots=True)
class Case:
    """A layer at a size (n, d)."""

    layer: ComparedLayer
    n: int
    d: int


@dataclass(frozen=True, slots=True)
class Operations:
    """Multiplications and additions of matrix products and convolutions over one sentence."""

    whole: int
    own: int  # without the projections of queries, keys, values and output


def count_operations(sequence_layer: SequenceLayer, n: int, *, projections: Sequence[str]) -> Operations:
    """Run a layer once under torch's FLOP counter; elementwise operations (softmax, gates) are not counted."""
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        sequence_layer(*_sentence(n, sequence_layer.d_model, torch.device("cpu")))
    of_part = {name: sum(counts.values()) for name, counts in counter.get_flop_counts().items()}
    outside = sum(of_part.get(f"{type(sequence_layer).__name__}.{part}", 0) for part in projections)
    return Operations(of_part["Global"], of_part["Global"] - outside)


def median_times_ms(cases: Iterable[Case], *, n_repetitions: int, device: torch.device) -> Mapping[Case, float]:
    """Return the milliseconds of one forward pass of each case: the median of interleaved repetitions."""
    sequence_layers = {case: case.layer.make(case.d).to(device).eval() for case in cases}
    times_ms: dict[Case, list[float]] = {case: [] for case in sequence_layers}
    with torch.inference_mode():
        for repetition in range(n_repetitions + 1):
            for case, sequence_layer in sequence_layers.items():
                time_ms = _time_ms(sequence_layer, *_sentence(case.n, case.d, device))
                if repetition > 0:  # the first is a warm-up
                    times_ms[case].append(time_ms)
    return {case: median(times) for case, times in times_ms.items()}


def _time_ms(sequence_layer: SequenceLayer, x_1TD: Tensor, is_real_1T: Tensor) -> float:
    _synchronise(x_1TD.device)
    start = time.perf_counter()
    sequence_layer(x_1TD, is_real_1T)
    _synchronise(x_1TD.device)
    return 1000 * (time.perf_counter() - start)


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _sentence(n: int, d: int, device: torch.device) -> tuple[Tensor, Tensor]:
    is_real_1T = torch.ones(1, n, dtype=torch.bool, device=device)
    return torch.randn(1, n, d, device=device), is_real_1T
