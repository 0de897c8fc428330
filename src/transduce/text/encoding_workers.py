"""Worker processes that encode chunks of pairs side by side; the results come in order, and equal those of one process.

The workers are new Python processes, connected by pipes: no state is inherited by forking, so threads of torch and of
the tokenizers library do no harm, and the program that calls this needs no main guard. Each has a session of its own,
so Ctrl-C reaches only the process that started it, which ends them. They also end if it is killed.

A thread for each worker writes the requests and waits for the replies. At most two chunks for each worker are under
way, so memory does not depend on the number of pairs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Protocol, Self

from transduce.errors import DataError
from transduce.text.encoding_worker import pack_counts, pack_encoder, pack_pairs, unpack_counts, unpack_encoded
from transduce.text.pair_encoding import EncodedPairs, PairDropout, PairEncoder, TextPair
from transduce.text.tokenizer import Tokenizers
from transduce.text.worker_messages import pack_message, read_message

__all__ = ["ChunkEncoder", "EncodingWorkers", "OneProcess", "chunk_encoder"]

CHUNKS_PER_WORKER = 2  # under way: one is encoded, the next one waits
PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from transduce.text.encoding_worker import main; main()"


class ChunkEncoder(Protocol):
    """Encodes chunks of pairs, in order; used in a ``with`` block."""

    def encode(self, chunks: Iterable[Sequence[TextPair]]) -> Iterator[EncodedPairs]:
        """Yield the rows of each chunk, in order; BPE-dropout continues from one call to the next."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


def chunk_encoder(
    tokenizers: Tokenizers, *, max_length: int, dropout: PairDropout | None = None, n_workers: int = 1
) -> ChunkEncoder:
    """Return an encoder in this process, or in ``n_workers`` processes if there are several."""
    if n_workers == 1:
        return OneProcess(PairEncoder(tokenizers, max_length=max_length, dropout=dropout))
    return EncodingWorkers(n_workers, pack_encoder(tokenizers, max_length, dropout))


class OneProcess:
    """An encoder in this process."""

    def __init__(self, encoder: PairEncoder) -> None:
        self._encoder, self._n_kept = encoder, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def encode(self, chunks: Iterable[Sequence[TextPair]]) -> Iterator[EncodedPairs]:
        """Yield the rows of each chunk."""
        for chunk in chunks:
            kept = self._encoder.keep(chunk)
            yield self._encoder.encode(kept, n_before=self._n_kept)
            self._n_kept += len(kept.texts)


class EncodingWorkers:
    """Worker processes with one encoder each."""

    def __init__(self, n_workers: int, description: Sequence[bytes]) -> None:
        """Start the processes with ``__enter__``; ``description`` is the first request to each."""
        self._n_workers, self._description = n_workers, description
        self._workers: list[_Worker] = []
        self._idle = SimpleQueue[_Worker]()
        self._threads = ThreadPoolExecutor(n_workers, thread_name_prefix="encoding", initializer=_ignore_broken_pipes)
        self._n_kept = Future[int]()  # pairs kept in all chunks so far
        self._n_kept.set_result(0)

    def __enter__(self) -> Self:
        try:
            for _ in range(self._n_workers):
                self._workers.append(_Worker(self._description))
                self._idle.put(self._workers[-1])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self._workers:
            worker.end()  # first: a thread that waits for a reply then raises EOFError
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.close()

    def encode(self, chunks: Iterable[Sequence[TextPair]]) -> Iterator[EncodedPairs]:
        """Yield the rows of each chunk, in order. Raises DataError if a worker was killed."""
        under_way = deque[Future[EncodedPairs]]()
        for chunk in chunks:
            if len(under_way) == CHUNKS_PER_WORKER * self._n_workers:
                yield under_way.popleft().result()
            n_before, self._n_kept = self._n_kept, Future[int]()
            under_way.append(self._threads.submit(self._encode, chunk, n_before, self._n_kept))
        while under_way:
            yield under_way.popleft().result()

    def _encode(self, chunk: Sequence[TextPair], n_before: Future[int], n_after: Future[int]) -> EncodedPairs:
        """Encode a chunk in an idle worker. Chunks are begun in order, so ``n_before`` comes from one begun earlier."""
        worker = self._idle.get()
        try:
            [n_kept] = unpack_counts(worker.ask(pack_pairs(chunk)))
            n_after.set_result(n_before.result() + n_kept)
            return unpack_encoded(worker.ask(pack_counts(n_before.result())))
        except BaseException as error:
            if not n_after.done():
                n_after.set_exception(error)
            raise
        finally:
            self._idle.put(worker)


def _ignore_broken_pipes() -> None:
    """Make a request to a dead worker an error in this thread; the command line lets SIGPIPE end the process."""
    if hasattr(signal, "pthread_sigmask"):  # not on Windows
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})


class _Worker:
    """A worker process and the pipes to it."""

    def __init__(self, description: Sequence[bytes]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "TOKENIZERS_PARALLELISM": "false"},  # a worker is one core's work
            start_new_session=True,
            bufsize=0,  # nothing is left to be written when the pipe is closed
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests = self._process.stdin.fileno()
        self._replies = open(self._process.stdout.fileno(), "rb", closefd=False)  # noqa: SIM115  (buffered)
        self._unsent = pack_message(*description)

    def ask(self, request: Sequence[bytes]) -> list[bytes]:
        """Send a request and return the reply. Raises the worker's error, DataError if it was killed."""
        unsent, self._unsent = self._unsent + pack_message(*request), b""
        try:
            view = memoryview(unsent)
            while view:
                view = view[os.write(self._requests, view) :]
            reply = read_message(self._replies)
        except (EOFError, OSError) as error:
            raise self._death() from error
        if len(reply) == 1:
            raise _error(*json.loads(reply[0]))
        return reply

    def end(self) -> None:
        """Kill the process: it has no state to save."""
        self._process.kill()

    def close(self) -> None:
        """Wait for the process and close the pipes."""
        with self._process:
            pass

    def _death(self) -> DataError:
        code = self._process.wait()
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return DataError(
            f"a worker process that encodes text ended {how}, perhaps for lack of memory; use fewer workers"
        )


def _error(name: str, message: str) -> Exception:
    """Return the error that a worker has reported."""
    if name == "MemoryError":
        return MemoryError(message)
    return RuntimeError(f"in a worker process: {name}: {message}")
