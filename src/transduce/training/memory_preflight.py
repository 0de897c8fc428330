"""Memory preflight: run the largest batch before the first update, so that a run that will not fit fails at once.

It also fixes DDP's order of summation: all updates, also those after a resume, sum gradients in the same order.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from math import ceil

import torch

from transduce.errors import TrainingError
from transduce.memory import USABLE_FRACTION, format_bytes, free_bytes, is_out_of_memory
from transduce.training.gradients import BatchIndex, BatchT, GradientAccumulator
from transduce.training.memory import LinearFit, PeakMemory
from transduce.training.parallel import local_tensor

__all__ = ["BatchTooLargeError", "memory_preflight", "out_of_memory"]

MEASURED_PARTS = (16, 8)  # measure a sixteenth and an eighth of the rows
FIRST_PARTS = (128, 64)  # measured first for large batches, where an eighth may not fit
ROUGH_TOLERANCE = 2.0  # the rough first estimate fails only beyond this multiple of the free memory
ROUND_TO = 100  # tokens, of the suggested budget


class BatchTooLargeError(TrainingError):
    """A batch needs more memory than there is; ``problem`` is the message without advice on the settings of a run."""

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(f"{problem}; {advice}")
        self.problem = problem


def memory_preflight(accumulator: GradientAccumulator[BatchT], optimiser: torch.optim.Optimizer, *, epoch: int) -> None:
    """Compute the gradient of the largest batches once and discard it, without changing random states.

    It is computed as at the end of the run, when an objective that grows (R-Drop) needs the most memory.
    With one process, the memory they need is estimated first, because the system may kill a process that runs out of
    memory. Raises TrainingError, with the budget to use, if they do not fit.
    """
    devices = [torch.cuda.current_device()] if accumulator.device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        for index in accumulator.batches.largest(epoch):
            try:
                if accumulator.distributed.n == 1:
                    _require_memory(accumulator, (epoch, index), optimiser)
                accumulator.accumulate([(epoch, index)], update=accumulator.config.max_updates)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                when = "preflight of the largest batch before the first update"
                raise out_of_memory(accumulator, when, has_started=bool(optimiser.state)) from error
            finally:
                accumulator.clear()


def _require_memory(
    accumulator: GradientAccumulator[BatchT], batch_index: BatchIndex, optimiser: torch.optim.Optimizer
) -> None:
    """Raise TrainingError if a batch needs more than the free memory, extrapolated from small parts of it."""
    fixed_bytes = _gradient_and_moment_bytes(accumulator, optimiser)
    n_rows, free = accumulator.batches.n_rows(*batch_index), free_bytes(accumulator.device)
    if free is None or n_rows < 2:  # a single row cannot be split
        return
    available = USABLE_FRACTION * free
    for n_parts, tolerance in _measurements(n_rows):
        fit = LinearFit.from_points(*[_measure(accumulator, batch_index, n) for n in n_parts])
        needed = fit.predict(n_rows) + fixed_bytes
        if needed > tolerance * available:
            budget = accumulator.config.max_tokens_per_batch
            tokens_that_fit = fit.fraction_that_fits(n_rows, available - fixed_bytes) * budget
            raise BatchTooLargeError(
                f"the largest batch needs about {format_bytes(needed)} in addition to the weights, "
                f"{format_bytes(free)} are free",
                _advice(accumulator, int(tokens_that_fit / ROUND_TO) * ROUND_TO, has_started=bool(optimiser.state)),
            )


def _measurements(n_rows: int) -> Iterator[tuple[tuple[int, int], float]]:
    """Yield the two numbers of parts to measure with, and the multiple of the free memory beyond which to fail.

    The first pair is small enough to run even where the batch is far too large.
    """
    if n_rows >= 2 * FIRST_PARTS[0]:
        yield FIRST_PARTS, ROUGH_TOLERANCE
    yield MEASURED_PARTS if n_rows >= 2 * MEASURED_PARTS[0] else (n_rows, ceil(n_rows / 2)), 1.0


def _measure(accumulator: GradientAccumulator[BatchT], batch_index: BatchIndex, n_parts: int) -> tuple[int, int]:
    """Measure (rows, peak bytes) of forward pass and loss on one part of a batch; with R-Drop, if configured."""
    with _eager_layers(), PeakMemory() as peak:
        accumulator.loss_of(
            accumulator.batches.batch(*batch_index, part=0, n_parts=n_parts), update=accumulator.config.max_updates
        )
    return ceil(accumulator.batches.n_rows(*batch_index) / n_parts), peak.bytes


def _eager_layers() -> AbstractContextManager[object]:
    """Run compiled layers uncompiled: torch would never compile what it first meets under a dispatch mode."""
    if "torch._dynamo" not in sys.modules:  # nothing is compiled, and to load the compiler takes seconds
        return nullcontext()
    stance: AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
    return stance


def _gradient_and_moment_bytes(accumulator: GradientAccumulator[BatchT], optimiser: torch.optim.Optimizer) -> int:
    """Bytes of the gradient and of two moments for each weight without optimiser state."""
    new = [weight for group in optimiser.param_groups for weight in group["params"] if weight not in optimiser.state]
    return accumulator.gradient_bytes + 2 * sum(part.numel() * part.itemsize for part in map(local_tensor, new))


def out_of_memory(accumulator: GradientAccumulator[BatchT], when: str, *, has_started: bool) -> BatchTooLargeError:
    """Make the error for a device that is out of memory."""
    budget = accumulator.config.max_tokens_per_batch
    return BatchTooLargeError(
        f"{when}: {accumulator.device} does not have enough memory for batches of {budget:,} tokens",
        _advice(accumulator, budget // 2, has_started=has_started),
    )


def _advice(accumulator: GradientAccumulator[BatchT], budget: int, *, has_started: bool) -> str:
    """Suggest settings that fit, with the same number of tokens per update."""
    config = accumulator.config
    if budget < ROUND_TO:
        return "no batch fits in addition to this model; use a smaller model, or free some memory"
    n_accumulate = ceil(config.max_tokens_per_batch * config.n_accumulate / budget)
    advice = f"use training.max_tokens_per_batch={budget} with training.n_accumulate={n_accumulate}"
    return f"{advice} in a new run (a started run keeps its batches)" if has_started else f"{advice} and --resume"
