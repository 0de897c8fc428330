"""Translation of a stream of lines by several worker processes (``translate --workers``), each with its own models.

Each worker has one chunk of lines at a time: memory does not grow with the input.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from transduce.bulk.job import TranslationJob
from transduce.inference.threads import n_usable_threads, thread_variables
from transduce.text.chunks import chunks
from transduce.worker_pool import Worker, WorkerPool

if TYPE_CHECKING:
    from transduce.inference import Translation

__all__ = ["WORKER", "TranslationWorkers"]

WORKER = "transduce.bulk.worker"  # the module of the workers' program


class TranslationWorkers(WorkerPool):
    """Worker processes that translate a stream of lines together, in order; they run within a ``with`` block."""

    def __init__(self, job: TranslationJob, n_workers: int) -> None:
        self._chunk_lines = job.chunk_lines
        environment = thread_variables(max(1, n_usable_threads() // n_workers))
        super().__init__(n_workers, WORKER, [job.as_message()], environment=environment)

    def wait_until_loaded(self) -> int:
        """Wait for all workers; return the model's maximum source length. Raises what a worker raised."""
        return max(int(maximum) for [maximum] in self.submit_to_each([]))

    def translate_lines(self, lines: Iterable[str]) -> Iterator[Translation]:
        """Translate a stream of lines, in order. Raises what a worker raised, TransduceError if one was killed."""
        for translations in self.map(_translate, chunks(lines, self._chunk_lines, len)):
            yield from translations


def _translate(worker: Worker, lines: Sequence[str]) -> list[Translation]:
    from transduce.bulk.replies import unpack_translations

    [reply] = worker.submit([json.dumps(lines).encode()])
    return unpack_translations(reply)
