"""The largest batch is tried before the first update, so that a run that will not fit says so at once."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

import torch

from transduce.errors import TrainingError
from transduce.training.gradients import BatchIndex, BatchT, GradientAccumulator
from transduce.training.memory import SPARE, LinearFit, PeakMemory, format_bytes, free_bytes, is_out_of_memory
from transduce.training.parallel import local_tensor

__all__ = ["memory_preflight", "out_of_memory"]

MEASURED_PARTS = (16, 8)  # a sixteenth and an eighth of the rows
FIRST_PARTS = (128, 64)  # of large batches, of which an eighth may be too much already
CLEARLY = 2.0  # so many times what is free is too much, however rough the estimate
ROUND_TO = 100  # tokens, of a budget that is proposed


def memory_preflight(accumulator: GradientAccumulator[BatchT], optimiser: torch.optim.Optimizer, *, epoch: int) -> None:
    """Make the gradient of the largest batches once and forget it; no random state changes.

    With one process, what they need is estimated first and compared with what is free: a system that has too little
    memory may end a process without a word. Raises TrainingError, with the budget to use, if they do not fit.
    """
    devices = [torch.cuda.current_device()] if accumulator.device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        for index in accumulator.batches.largest(epoch):
            try:
                if accumulator.distributed.n == 1:
                    _require_memory(accumulator, (epoch, index), optimiser)
                accumulator.make([(epoch, index)], update=0)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                when = "the largest batch was tried before the first update"
                raise out_of_memory(accumulator, when, has_begun=bool(optimiser.state)) from error
            finally:
                accumulator.clear()


def _require_memory(
    accumulator: GradientAccumulator[BatchT], batch_index: BatchIndex, optimiser: torch.optim.Optimizer
) -> None:
    """Raises TrainingError if a batch needs more than is free, as far as small parts of it tell."""
    fixed_bytes = _bytes_of_moments_to_come(accumulator, optimiser)
    n_rows, free = accumulator.batches.n_rows(*batch_index), free_bytes(accumulator.device)
    if free is None or n_rows < 2:  # there is no part of a row
        return
    available = SPARE * free
    for n_parts, limit in _measurements(n_rows):
        line = LinearFit.from_points(*[_measure(accumulator, batch_index, number) for number in n_parts])
        needed = line.at(n_rows) + fixed_bytes
        if needed > limit * available:
            budget = accumulator.config.max_tokens_per_batch
            fits = line.fraction_that_fits(n_rows, available - fixed_bytes) * budget
            raise TrainingError(
                f"the largest batch needs about {format_bytes(needed)} beside the weights, "
                f"{format_bytes(free)} are free; "
                + _advice(accumulator, int(fits / ROUND_TO) * ROUND_TO, has_begun=bool(optimiser.state))
            )


def _measurements(n_rows: int) -> Iterator[tuple[tuple[int, int], float]]:
    """Which two parts of a batch are measured, and how much of the free memory may be asked for by what they tell.

    The first are so small that they can be made where the batch is far too large; two rows tell what one takes.
    """
    if n_rows >= 2 * FIRST_PARTS[0]:
        yield FIRST_PARTS, CLEARLY
    yield MEASURED_PARTS if n_rows >= 2 * MEASURED_PARTS[0] else (n_rows, ceil(n_rows / 2)), 1.0


def _measure(accumulator: GradientAccumulator[BatchT], batch_index: BatchIndex, n_parts: int) -> tuple[int, int]:
    """(rows, bytes) of the loss of one part: what the backward pass finds, and what making it takes on the way."""
    with PeakMemory() as peak:
        accumulator.loss_of(
            accumulator.batches.batch(*batch_index, part=0, n_parts=n_parts), update=accumulator.config.max_updates
        )
    return ceil(accumulator.batches.n_rows(*batch_index) / n_parts), peak.bytes


def _bytes_of_moments_to_come(accumulator: GradientAccumulator[BatchT], optimiser: torch.optim.Optimizer) -> int:
    """The gradient, and two moments of each weight that has none yet."""
    waiting = [
        weight for group in optimiser.param_groups for weight in group["params"] if weight not in optimiser.state
    ]
    return accumulator.gradient_bytes + 2 * sum(part.numel() * part.itemsize for part in map(local_tensor, waiting))


def out_of_memory(accumulator: GradientAccumulator[BatchT], when: str, *, has_begun: bool) -> TrainingError:
    """What a run says when a device has no memory left."""
    budget = accumulator.config.max_tokens_per_batch
    return TrainingError(
        f"{when}: {accumulator.device} has not enough memory for batches of {budget:,} tokens; "
        + _advice(accumulator, budget // 2, has_begun=has_begun)
    )


def _advice(accumulator: GradientAccumulator[BatchT], budget: int, *, has_begun: bool) -> str:
    """What to change so that it fits, with the same number of tokens for an update."""
    config = accumulator.config
    if budget < ROUND_TO:
        return "no batch fits beside this model; choose a smaller one, or free some memory"
    n_accumulate = ceil(config.max_tokens_per_batch * config.n_accumulate / budget)
    advice = f"use training.max_tokens_per_batch={budget} with training.n_accumulate={n_accumulate}"
    return f"{advice} in a new run (one that has begun keeps its batches)" if has_begun else f"{advice} and --resume"
