"""The process that hands shards to workers, on this machine or on Ray, until all are done, by whomever."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from transduce.bulk.job import THREADS, Shard, TranslationJob, open_job
from transduce.bulk.shards import (
    Claims,
    ShardResult,
    done_shards,
    is_done,
    read_result,
    remove_parts,
    write_final_manifest,
)
from transduce.bulk.workers import WORKER
from transduce.errors import DataError, TransduceError
from transduce.inference.threads import thread_variables
from transduce.worker_pool import Worker, WorkerDied

__all__ = ["BulkReport", "Executor", "translate_shards"]

HEARTBEAT_S = 10.0
POLL_S = 1.0  # while others hold what is left
MAX_DEATHS = 3  # of workers with the same shard in hand
MAX_WARNED = 20  # shards whose warnings are logged; all are in the manifest


class Executor(Protocol):
    """A worker, wherever it is."""

    def translate(self, shard: Shard, out: Path) -> None:
        """Translate a shard. Raises WorkerDied, or what the worker raised."""

    def end(self) -> None:
        """End the worker from another thread: ``translate`` then raises WorkerDied."""

    def close(self) -> None:
        """End the worker and wait for it."""


class ShardsFailed(DataError):
    """Some shards could not be translated; ``failed`` has the error of each."""

    def __init__(self, failed: Mapping[str, TransduceError], n_shards: int) -> None:
        name, error = min(failed.items())
        super().__init__(f"{len(failed):,} of {n_shards:,} shards failed; the first, {name}: {error}")
        self.failed = failed


class LocalExecutor(Worker):
    """A worker process of this machine."""

    def __init__(self, job: TranslationJob) -> None:
        super().__init__(WORKER, [job.as_message()], thread_variables(THREADS))

    def translate(self, shard: Shard, out: Path) -> None:
        """Translate a shard. Raises WorkerDied, or what the worker raised."""
        self.submit([str(each).encode("utf-8", "surrogateescape") for each in (shard.path, out, shard.name)])

    def close(self) -> None:
        """End the process and wait for it."""
        self.end()
        super().close()


@dataclass(frozen=True, slots=True)
class BulkReport:
    """What a call has done."""

    n_shards: int  # of the job
    n_translated: int  # by this process; the others were done before or by others
    results: Sequence[ShardResult] = ()  # of all shards


def translate_shards(
    job: TranslationJob,
    shards: Sequence[Shard],
    out: Path,
    *,
    n_workers: int,
    make_executor: Callable[[TranslationJob], Executor] = LocalExecutor,
    on_progress: Callable[[int], None] = lambda n_done: None,
    log: Callable[[str], None] = lambda line: None,
) -> BulkReport:
    """Translate all shards that are not done yet; return when all are. Other processes may work on the same folder.

    ``on_progress`` is called with the number of shards that are done. A worker that dies is replaced. A shard that
    cannot be read does not keep the others from being translated; DataError names it at the end.
    """
    open_job(job, shards, out)
    return _Driver(job, shards, out, make_executor, on_progress, log).run(n_workers)


class _Driver:
    def __init__(
        self,
        job: TranslationJob,
        shards: Sequence[Shard],
        out: Path,
        make_executor: Callable[[TranslationJob], Executor],
        on_progress: Callable[[int], None],
        log: Callable[[str], None],
    ) -> None:
        self.job, self.shards, self.out = job, shards, out
        self._make_executor, self._on_progress, self._log = make_executor, on_progress, log
        self._claims = Claims(out)
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._done = done_shards(out, shards)
        self._failed: dict[str, TransduceError] = {}
        self._deaths = Counter[str]()
        self._executors: list[Executor] = []
        self._n_translated = self._n_warned = 0
        self._fatal: BaseException | None = None

    def run(self, n_workers: int) -> BulkReport:
        """Work until all is done."""
        self._on_progress(len(self._done))
        threads = [
            threading.Thread(target=self._work, name=f"shards {n}", daemon=True)
            for n in range(min(n_workers, len(self.shards) - len(self._done)))
        ]
        with self._heartbeat():
            for thread in threads:
                thread.start()
            try:
                while any(thread.is_alive() for thread in threads):
                    time.sleep(0.05)
            finally:
                self._stop.set()
                for executor in list(self._executors):
                    executor.end()
                for thread in threads:
                    thread.join(HEARTBEAT_S)
                self._claims.give_back_all()
        if self._fatal is not None:
            raise self._fatal
        if self._failed:
            raise ShardsFailed(self._failed, len(self.shards))
        results = write_final_manifest(self.out, self.shards)
        return BulkReport(len(self.shards), self._n_translated, results)

    @contextmanager
    def _heartbeat(self) -> Iterator[None]:
        def beat() -> None:
            while not self._stop.wait(HEARTBEAT_S):
                self._claims.touch()

        thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _work(self) -> None:
        """Translate shards until none is left, with a worker of this thread's own."""
        executor: Executor | None = None
        try:
            while not self._stop.is_set():
                shard = self._next()
                if shard is None:
                    if self._all_settled():
                        return
                    self._stop.wait(POLL_S)
                    self._look()
                    continue
                if executor is None:
                    executor = self._make_executor(self.job)
                    self._executors.append(executor)
                    if self._stop.is_set():  # perhaps after the others were ended
                        executor.end()
                executor = self._translate(executor, shard)
        except BaseException as error:
            self._fatal = self._fatal or error
            self._stop.set()
        finally:
            if executor is not None:
                executor.close()

    def _translate(self, executor: Executor, shard: Shard) -> Executor | None:
        """Translate a claimed shard; return the worker, None if it has died."""
        try:
            remove_parts(self.out, shard.name)
            executor.translate(shard, self.out)
        except WorkerDied as error:
            executor.close()
            remove_parts(self.out, shard.name)
            if self._stop.is_set():
                return None
            self._deaths[shard.name] += 1
            if self._deaths[shard.name] >= MAX_DEATHS:
                raise TransduceError(
                    f"{self._deaths[shard.name]} workers have ended at {shard.name}: {error}"
                ) from error
            self._log(f"a worker has ended at {shard.name}, another takes over: {error}")
            return None
        except DataError as error:
            with self._lock:
                self._failed[shard.name] = error
            self._log(f"warning: {shard.name} is left out: {error}")
            executor.close()  # an error ends a worker
            return None
        finally:
            self._claims.give_back(shard.name)
        with self._lock:
            self._done.add(shard.name)
            self._n_translated += 1
            self._on_progress(len(self._done))
            self._warn(shard)
        return executor

    def _warn(self, shard: Shard) -> None:
        """Log what is missing from a translation."""
        warnings = read_result(self.out, shard.name).warnings()
        self._n_warned += bool(warnings)
        if self._n_warned <= MAX_WARNED:
            for warning in warnings:
                self._log(f"warning: {warning}")

    def _next(self) -> Shard | None:
        """Claim a shard; None if there is none to claim now."""
        with self._lock:
            for shard in self.shards:
                if shard.name in self._done or shard.name in self._failed:
                    continue
                if self._claims.take(shard.name):
                    if is_done(self.out, shard):  # by another process, since the listing
                        self._claims.give_back(shard.name)
                        self._done.add(shard.name)
                        self._on_progress(len(self._done))
                        continue
                    return shard
            return None

    def _look(self) -> None:
        """List what other processes have done."""
        with self._lock:
            self._done |= done_shards(self.out, self.shards, known=self._done)
            self._on_progress(len(self._done))

    def _all_settled(self) -> bool:
        with self._lock:
            return len(self._done | self._failed.keys()) == len(self.shards)
