"""Growth of a training step's time and memory with batch tokens, sentence length, vocabulary and depth.

    python benchmarks/growth.py [--json] [--plot growth.svg] [--precision bf16|fp32]

One of them doubles from point to point while the others stay at ``FIXED``, with the preset ``small``. Each point runs
in its own process, so that peak memory is measured per point: one warm-up update, then the median of three. Exponents
are slopes of a straight line through the logarithms of the upper half of the points: 1 is linear growth, 2 quadratic. A
"cliff" is a point that costs far more than its neighbours suggest.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from machine import machine, peak_memory_mb

N_COUNTED = 3
CLIFF = 1.5  # times the geometric mean of the neighbours


@dataclass(frozen=True, slots=True)
class Point:
    """The sizes of a training step."""

    tokens: int = 4096  # per batch and side
    length: int = 32  # tokens per sentence and side, EOS included
    vocabulary: int = 8000
    depth: int = 3  # layers per side


FIXED = Point()
AXES: dict[str, list[int]] = {
    "tokens": [512, 1024, 2048, 4096, 8192, 16384],
    "length": [64, 128, 256, 512, 1024, 2048, 4096],
    "vocabulary": [8000, 16000, 32000, 64000, 128000],
    "depth": [1, 2, 4, 8, 16],
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Time and peak memory of a step."""

    seconds: float
    peak_memory_mb: float


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description="Growth of a training step's time and memory.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--plot", type=Path, help="also plot to this SVG file; needs transduce-paper")
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("--axes", nargs="+", choices=AXES, default=list(AXES))
    parser.add_argument("--points", type=int, default=99, help="largest number of points per axis")
    arguments = parser.parse_args()
    if arguments.plot is not None and importlib.util.find_spec("transduce_paper") is None:
        parser.error("--plot needs transduce-paper: pip install ./paper")
    costs: dict[str, list[Cost]] = {}
    for axis in arguments.axes:
        costs[axis] = []
        for value in AXES[axis][: arguments.points]:
            costs[axis].append(cost_of_point(replace(FIXED, **{axis: value}), arguments.precision))
            print(f"{axis} {value:,}: {costs[axis][-1].seconds:.3f} s", file=sys.stderr, flush=True)
    result = {"precision": arguments.precision, **{axis: summary(axis, of_axis) for axis, of_axis in costs.items()}}
    if arguments.plot is not None:
        draw(result, arguments.plot)
    if arguments.json:
        print(json.dumps(result | {"machine": machine()}))
        return
    for axis in costs:
        print(as_text(axis, result[axis]), end="\n\n")


def cost_of_point(point: Point, precision: str) -> Cost:
    """Measure a point in its own process. Raises RuntimeError if that process dies, most likely out of memory."""
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(point, precision, theirs))
    process.start()
    theirs.close()
    try:
        cost: Cost = ours.recv()
    except EOFError:
        raise RuntimeError(f"{point}: the measuring process died, most likely out of memory") from None
    finally:
        process.join()
    return cost


def _measure(point: Point, precision: str, pipe: Any) -> None:
    import torch

    from transduce.cli.machine import keep_freed_memory
    from transduce.config import TrainingConfig
    from transduce.model import Transformer
    from transduce.recipes import preset
    from transduce.tasks.objective import PairObjective
    from transduce.training.optimiser import make_optimiser

    keep_freed_memory()
    torch.manual_seed(1)
    layers = {"n_encoder_layers": point.depth, "n_decoder_layers": point.depth}
    config = preset("small").model.with_vocabulary(point.vocabulary, point.vocabulary).model_copy(update=layers)
    model = Transformer(config).train()
    training = TrainingConfig()
    objective, optimiser = PairObjective(model, training), make_optimiser(model, training)
    batch = make_batch(point)
    seconds = []
    for _ in range(1 + N_COUNTED):
        start = time.perf_counter()
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = objective(batch)
        (loss.loss_nats / loss.n_tokens).backward()
        optimiser.step()
        seconds.append(time.perf_counter() - start)
    pipe.send(Cost(median(seconds[1:]), peak_memory_mb()))


def make_batch(point: Point) -> Any:
    """Return a batch of random ids in sentences of equal length."""
    import torch

    from transduce.data import Batch
    from transduce.text import UNK_ID

    n_rows = max(1, point.tokens // point.length)
    src_BS, tgt_BT = torch.randint(UNK_ID + 1, point.vocabulary, (2, n_rows, point.length))
    return Batch(src_BS, tgt_BT, tgt_BT.flatten(), src_BS.numel(), tgt_BT.numel(), tuple(range(n_rows)))


def summary(axis: str, costs: Sequence[Cost]) -> dict[str, Any]:
    """Return the points, exponents and cliffs of an axis."""
    values = AXES[axis][: len(costs)]
    seconds, memory = [cost.seconds for cost in costs], [cost.peak_memory_mb for cost in costs]
    return {
        "values": values,
        "seconds": [round(value, 4) for value in seconds],
        "peak_memory_mb": [round(value) for value in memory],
        "time_exponent": exponent(values, seconds),
        "memory_exponent": exponent(values, memory),
        "cliffs": cliffs(values, seconds),
    }


def exponent(values: Sequence[float], costs: Sequence[float]) -> float | None:
    """Return the slope of the upper half of the points in logarithms.

    >>> exponent([1, 2, 4, 8], [3, 5, 20, 80])
    2.0
    """
    half = slice(len(values) // 2 - (len(values) % 2 == 0), None) if len(values) > 2 else slice(None)
    if len(values) < 2:
        return None
    return round(float(np.polyfit(np.log(values[half]), np.log(costs[half]), 1)[0]), 2)


def cliffs(values: Sequence[int], costs: Sequence[float]) -> list[int]:
    """Return the values that cost more than ``CLIFF`` times the geometric mean of their neighbours.

    Values must double from point to point.

    >>> cliffs([1, 2, 4, 8], [1.0, 2.0, 9.0, 10.0])
    [4]
    """
    inner = range(1, len(values) - 1)
    return [values[i] for i in inner if costs[i] > CLIFF * (costs[i - 1] * costs[i + 1]) ** 0.5]


def as_text(axis: str, result: dict[str, Any]) -> str:
    """Return a table of the points of an axis."""
    lines = [f"{axis}: time grows with exponent {result['time_exponent']}, memory {result['memory_exponent']}"]
    lines += [
        f"  {value:>9,}{seconds:>10.3f} s{memory:>9,} MB{'   a cliff' if value in result['cliffs'] else ''}"
        for value, seconds, memory in zip(result["values"], result["seconds"], result["peak_memory_mb"], strict=True)
    ]
    return "\n".join(lines)


LABELS = {
    "tokens": "tokens per batch",
    "length": "tokens per sentence",
    "vocabulary": "vocabulary",
    "depth": "layers per side",
}


def draw(result: dict[str, Any], path: Path) -> None:
    """Plot time and memory over each axis, all logarithmic."""
    from transduce_paper.drawing import COLOURS, new_panels, save_svg, set_log_axis

    axes = [axis for axis in AXES if axis in result]
    figure, panels = new_panels(3.1 * len(axes), 5.8, 2, len(axes))
    rows = (("seconds", "time_exponent", "seconds per step"), ("peak_memory_mb", "memory_exponent", "peak memory, MB"))
    for row, (key, power, unit) in enumerate(rows):
        values = [value for axis in axes for value in result[axis][key]]
        for column, axis in enumerate(axes):
            panel, of_axis = panels[row * len(axes) + column], result[axis]
            panel.plot(of_axis["values"], of_axis[key], "o-", color=COLOURS[0], markersize=5)
            panel.set_title(f"grows with exponent {of_axis[power]}", loc="left", fontsize=10)
            panel.set_yscale("log")
            panel.set_ylim(0.8 * min(values), 1.25 * max(values))  # alike in a row
            set_log_axis(panel, "y")
            set_log_axis(panel, "x", of_axis["values"], base=2)
            panel.tick_params(axis="x", labelsize=8, rotation=45)
            if row == 1:
                panel.set_xlabel(LABELS[axis])
            if column == 0:
                panel.set_ylabel(unit)
            else:
                panel.tick_params(axis="y", labelleft=False)
    save_svg(figure, path)


if __name__ == "__main__":
    main()
