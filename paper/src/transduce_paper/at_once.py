"""Several experiments at once, each in a process of its own: one model with small batches does not fill a GPU."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from time import monotonic

from transduce.errors import TrainingError, TransduceError
from transduce_paper.experiments import Experiments, Stopped
from transduce_paper.run_records import Experiment

__all__ = ["train_at_once"]

POLL_SECONDS = 0.5


def train_at_once(experiments: Experiments, wanted: Sequence[Experiment], *, jobs: int) -> None:
    """Train the experiments that have no record, in this order, at most ``jobs`` at once; each leaves its record.

    Raises Stopped if the user interrupts: the runs under way are saved and can be resumed. Raises TrainingError if runs
    failed; the others have been trained.
    """
    left = deque(each for each in wanted if not experiments.record_path(each).exists())
    if not left:
        return
    n = min(jobs, len(left))
    for each in left:
        experiments.flops(each.config.training.precision)  # measured while nothing else is running
    make = experiments.in_another_process(runs_at_once=n)
    spawn = get_context("spawn")
    stop, failures = spawn.Event(), spawn.SimpleQueue()
    running: dict[SpawnProcess, tuple[Experiment, float]] = {}
    failed: list[str] = []
    with experiments.while_training:
        while running or (left and not stop.is_set()):
            if experiments.should_stop():
                stop.set()
            while left and len(running) < n and not stop.is_set():
                each = left.popleft()
                process = spawn.Process(target=_train, args=(make, each, stop, failures))
                process.start()
                running[process] = each, monotonic()
                experiments.log(f"{each.name}: training")
            wait([process.sentinel for process in running], timeout=POLL_SECONDS)
            for process in [each for each in running if not each.is_alive()]:
                experiment, started = running.pop(process)
                if experiments.record_path(experiment).exists():
                    experiments.log(_finished(experiments, experiment, monotonic() - started))
                elif process.exitcode:
                    failed.append(experiment.name)
            while not failures.empty():
                experiments.log(failures.get())
    if failed:
        raise TrainingError(f"{len(failed)} of {len(wanted)} runs failed: {', '.join(failed)}; see the lines above")
    if not all(experiments.record_path(each).exists() for each in wanted):
        raise Stopped


def _finished(experiments: Experiments, experiment: Experiment, seconds: float) -> str:
    record = experiments.run(experiment)
    return (
        f"{experiment.name}: {record.updates:,} updates in {60 * record.minutes:.0f} of {seconds:.0f} seconds,"
        f" dev perplexity {record.dev_perplexity:.3f}"
    )


def _train(make: Callable[..., Experiments], experiment: Experiment, stop: Event, failures: SimpleQueue[str]) -> None:
    """Train one experiment: the whole work of a process. Only its parent heeds signals, and asks it to stop."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # not on Windows
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    parent = parent_process()
    try:
        experiments = make(should_stop=lambda: stop.is_set() or parent is None or not parent.is_alive())
        experiments.run(experiment)
    except Stopped:
        pass
    except (TransduceError, OSError) as error:
        failures.put(f"{experiment.name}: {error}")
        raise SystemExit(1) from None
