"""Workers as Ray actors, on the machines of a cluster that share a file system."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from transduce.bulk.driver import Executor
from transduce.bulk.job import THREADS, Shard, TranslationJob
from transduce.errors import ConfigError, TransduceError
from transduce.imports import library
from transduce.inference.threads import thread_variables
from transduce.worker_pool import WorkerDied, described, rebuilt

__all__ = ["connect"]

LOCAL = "local"  # in place of an address: a cluster of this machine only


def connect(address: str, n_local: int | None) -> tuple[int, Callable[[TranslationJob], Executor]]:
    """Connect to a cluster; return its number of processors, and what makes a worker.

    ``n_local``: processors of a ``local`` cluster. Raises ConfigError if Ray is not installed, or does not answer.
    """
    ray = _ray()
    try:
        if address == LOCAL:
            ray.init(num_cpus=n_local, include_dashboard=False, log_to_driver=False, logging_level="error")
        else:
            ray.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ConfigError(f"--ray {address}: the cluster does not answer: {error}") from error
    return max(1, int(ray.cluster_resources().get("CPU", 1))), RayExecutor


def _ray() -> Any:
    """Import Ray, which is optional and large."""
    return library("ray", needed_for="translate --ray", extra="bulk")


class _Actor:
    """Runs on a node of the cluster: text in, text out."""

    def __init__(self, message: bytes) -> None:
        from transduce.bulk.worker import ShardTranslator

        self._translator = ShardTranslator(TranslationJob.from_message(message))

    def translate(self, source: str, out: str, name: str) -> list[str]:
        """Translate a shard; return the description of an error, nothing if it is done."""
        try:
            self._translator.translate(Path(source), Path(out), name)
        except TransduceError as error:
            return described(error)
        return []


class RayExecutor:
    """A worker of the cluster."""

    def __init__(self, job: TranslationJob) -> None:
        ray = _ray()
        remote = ray.remote(num_cpus=1, max_restarts=0, runtime_env={"env_vars": thread_variables(THREADS)})(_Actor)
        self._actor: Any = remote.remote(job.as_message())

    def translate(self, shard: Shard, out: Path) -> None:
        """Translate a shard. Raises WorkerDied, or what the worker raised."""
        ray = _ray()
        try:
            problem = ray.get(self._actor.translate.remote(str(shard.path.resolve()), str(out.resolve()), shard.name))
        except ray.exceptions.RayActorError as error:
            raise WorkerDied(str(error).splitlines()[0]) from error
        if problem:
            raise rebuilt(*problem)

    def end(self) -> None:
        """End the actor."""
        _ray().kill(self._actor)

    close = end
