"""Translation by several worker processes (``translate --workers``), each with its own copy of the model.

Chunks of lines go to the workers in turn, and results are read in the same turn, so the output has the order of the
input. Each worker has one chunk at a time: memory does not grow with the input. Messages are JSON.
"""

from __future__ import annotations

import json
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from transduce import errors
from transduce.errors import TransduceError
from transduce.text.chunks import chunks

if TYPE_CHECKING:
    from transduce.tasks import Translation

__all__ = ["TranslationJob", "TranslationWorkers"]


@dataclass(frozen=True, slots=True)
class TranslationJob:
    """What every worker does: the model to load and how to search; see ``translate``."""

    folders: Sequence[Path]
    device: str
    precision: str
    rerank: Path | None
    rerank_weight: float
    n_best: int | None
    beam: int | None
    alpha: float | None
    shortlist: Path | None
    split: bool
    is_scored: bool
    chunk_lines: int

    def serve(self, connection: Connection, n_workers: int) -> None:
        """Load the model, send its maximum source length, then translate chunks until the connection closes."""
        import torch

        from transduce.cli.models import load_translator, requested_search

        torch.set_num_threads(max(1, torch.get_num_threads() // n_workers))
        translator = load_translator(
            self.folders,
            device=self.device,
            precision=self.precision,
            rerank=self.rerank,
            weight=self.rerank_weight,
            shortlist=self.shortlist,
        )
        search = requested_search(translator.search, n_best=self.n_best, beam=self.beam, alpha=self.alpha)
        _send(connection, translator.max_source_tokens)
        while True:
            lines = _receive(connection)
            translations = translator.translate_lines(
                lines, search=search, chunk_lines=self.chunk_lines, split=self.split, is_scored=self.is_scored
            )
            _send(connection, [asdict(each) for each in translations])


class TranslationWorkers:
    """Worker processes that translate a stream of lines together, in order; they end with the context."""

    def __init__(self, job: TranslationJob, n_workers: int) -> None:
        self.job = job
        context = get_context("spawn")  # fork would copy the threads' locks of an initialised torch
        # Ctrl-C also goes to the workers, which would print tracebacks: they inherit that it is ignored.
        previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self._workers = [_Worker(context, job, n_workers) for _ in range(n_workers)]
        finally:
            signal.signal(signal.SIGINT, previous)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()

    def wait_until_loaded(self) -> int:
        """Wait for all workers; return the model's maximum source length. Raises what a worker raised."""
        return max(int(worker.receive()) for worker in self._workers)

    def translate_lines(self, lines: Iterable[str]) -> Iterator[Translation]:
        """Translate a stream of lines, in order. Raises the error of the first worker that fails."""
        from transduce.tasks import ScoredText, Translation

        def translations(results: list[dict[str, Any]]) -> Iterator[Translation]:
            for result in results:
                yield Translation(**result | {"n_best": tuple(ScoredText(**best) for best in result["n_best"])})

        idle, busy = deque(self._workers), deque[_Worker]()
        for chunk in chunks(lines, self.job.chunk_lines, len):
            results = []
            if not idle:
                results = busy[0].receive()
                idle.append(busy.popleft())
            idle[0].send(chunk)
            busy.append(idle.popleft())
            yield from translations(results)
        for worker in busy:
            yield from translations(worker.receive())


class _Worker:
    """One worker process and the connection to it."""

    def __init__(self, context: Any, job: TranslationJob, n_workers: int) -> None:
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_run, args=(theirs, job, n_workers), daemon=True)
        self._process.start()
        theirs.close()  # so that receiving ends if the process dies

    def send(self, message: object) -> None:
        """Send a message; a worker that has died is found when its answer is received."""
        try:
            _send(self._connection, message)
        except (BrokenPipeError, ConnectionResetError):
            return

    def receive(self) -> Any:
        """Receive the answer. Raises the worker's error, or TransduceError if it died."""
        try:
            answer = _receive(self._connection)
        except (EOFError, ConnectionResetError):
            self._process.join()
            raise TransduceError(
                f"a worker ended with exit status {self._process.exitcode}; with too little memory, use fewer --workers"
            ) from None
        if isinstance(answer, dict):
            raise getattr(errors, answer["kind"], TransduceError)(answer["message"])
        return answer

    def end(self) -> None:
        """End the process now, also within a chunk."""
        self._connection.close()
        self._process.terminate()
        self._process.join()


def _run(connection: Connection, job: TranslationJob, n_workers: int) -> None:
    """The main function of a worker; sends its errors."""
    try:
        job.serve(connection, n_workers)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the command has ended
    except TransduceError as error:
        _send(connection, {"kind": type(error).__name__, "message": str(error)})
    except Exception as error:
        _send(connection, {"kind": "", "message": f"a worker failed: {type(error).__name__}: {error}"})


def _send(connection: Connection, message: object) -> None:
    connection.send_bytes(json.dumps(message).encode())


def _receive(connection: Connection) -> Any:
    return json.loads(connection.recv_bytes())
