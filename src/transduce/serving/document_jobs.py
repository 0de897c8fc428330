"""Documents that are translated while their clients ask again and again how far they are."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from transduce.serving.http import ApiError, as_api_error

__all__ = ["DocumentJob", "DocumentJobs"]

MAX_JOBS, MAX_AGE_S = 1000, 3600.0  # that are remembered


class DocumentJob:
    """The translation of a document: its key in the store, and its characters."""

    def __init__(self, work: Coroutine[Any, Any, tuple[str, int]], since: float, on_done: Callable[[], object]) -> None:
        self.id, self.key, self.since = secrets.token_hex(16).upper(), secrets.token_hex(32).upper(), since
        self._task = asyncio.ensure_future(work)
        self._task.add_done_callback(lambda task: on_done())

    @property
    def status(self) -> Literal["translating", "done", "error"]:
        """How far it is."""
        if not self._task.done():
            return "translating"
        return "error" if self._task.cancelled() or self._task.exception() is not None else "done"

    @property
    def result(self) -> tuple[str, int]:
        """What the work has returned."""
        return self._task.result()

    @property
    def error(self) -> ApiError:
        """Why there is no result."""
        error = None if self._task.cancelled() else self._task.exception()
        return as_api_error(error if isinstance(error, Exception) else TimeoutError())

    def cancel(self) -> None:
        """End the work, if it is not done."""
        self._task.cancel()


class DocumentJobs:
    """The jobs of a server, bounded in number and age."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._jobs, self._clock = dict[str, DocumentJob](), clock  # by id, the oldest first

    def begin(
        self, work: Coroutine[Any, Any, tuple[str, int]], *, on_done: Callable[[], object] = lambda: None
    ) -> DocumentJob:
        """Begin a job; ``on_done`` is called at its end, whatever that is."""
        job = DocumentJob(work, self._clock(), on_done)
        self._jobs[job.id] = job
        self._make_room()
        return job

    def find(self, id: str, key: str) -> DocumentJob | None:
        """Return the job of an id for whoever has its key; None if there is none, or not any more."""
        self._make_room()
        job = self._jobs.get(id)
        return job if job is not None and hmac.compare_digest(job.key.encode(), key.encode()) else None

    def _make_room(self) -> None:
        oldest = self._clock() - MAX_AGE_S
        for id, job in list(self._jobs.items()):
            if len(self._jobs) <= MAX_JOBS and job.since >= oldest:
                return
            job.cancel()
            del self._jobs[id]
