"""Worker processes: new Python interpreters that answer requests over pipes. Results come in the order of the items.

No state is inherited by forking, so threads of torch and of the tokenizers library do no harm, and the program that
uses workers needs no main guard. Each has a session of its own, so Ctrl-C reaches only the process that started it,
which ends them. They also end at once when it is killed: their stdin is closed then.

A worker's module has a function ``main`` that calls ``serve``. A message is parts of bytes with their sizes; nothing
is pickled. The first message describes the work; then each request gets a reply.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from queue import SimpleQueue
from typing import IO, Self, TypeVar

from transduce import errors
from transduce.errors import TransduceError

__all__ = [
    "Answer", "Message", "Worker", "WorkerDied", "WorkerPool", "described", "pack_message", "read_message", "rebuilt",
    "serve",
]  # fmt: skip

T = TypeVar("T")
R = TypeVar("R")
Message = Sequence[bytes]
Answer = Callable[[list[bytes]], Message]

PROGRAM = "import sys; module, *sys.path = sys.argv[1:]; import importlib; importlib.import_module(module).main()"
SIZE = struct.Struct("<Q")
DONE, FAILED = b"", b"failed"  # the first part of a reply


class WorkerDied(TransduceError):
    """A worker process has ended without an answer."""


class WorkerPool:
    """Worker processes that share the items of a stream; they run within a ``with`` block."""

    def __init__(
        self,
        n_workers: int,
        module: str,
        description: Message,
        *,
        items_per_worker: int = 1,
        environment: dict[str, str] | None = None,
    ) -> None:
        """``module`` is the name of the workers' module, ``environment`` is added to that of this process.

        At most ``items_per_worker`` items for each worker are under way, so memory does not grow with their number.
        """
        self._n_workers, self._max_under_way = n_workers, items_per_worker * n_workers
        self._module, self._description, self._environment = module, description, environment or {}
        self._workers: list[Worker] = []
        self._idle = SimpleQueue[Worker]()
        self._threads = ThreadPoolExecutor(n_workers, thread_name_prefix="worker")

    def __enter__(self) -> Self:
        try:
            for _ in range(self._n_workers):
                self._workers.append(Worker(self._module, self._description, self._environment))
                self._idle.put(self._workers[-1])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self._workers:
            worker.end()  # first: a thread that waits for a reply then raises
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.close()

    def map(self, work: Callable[[Worker, T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield the result of ``work(worker, item)`` for each item, in order; each is done by an idle worker.

        Items are begun in order. Raises what a worker raised, TransduceError if one was killed.
        """
        under_way = deque[Future[R]]()
        for item in items:
            if len(under_way) == self._max_under_way:
                yield under_way.popleft().result()
            under_way.append(self._threads.submit(self._with_idle_worker, work, item))
        while under_way:
            yield under_way.popleft().result()

    def submit_to_each(self, request: Message) -> list[list[bytes]]:
        """Send all workers the same request and return their replies. Raises as ``map``."""
        replies = [self._threads.submit(worker.submit, request) for worker in self._workers]
        return [reply.result() for reply in replies]

    def _with_idle_worker(self, work: Callable[[Worker, T], R], item: T) -> R:
        worker = self._idle.get()
        try:
            return work(worker, item)
        finally:
            self._idle.put(worker)


class Worker:
    """A worker process and the pipes to it."""

    def __init__(self, module: str, description: Message, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, module, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | environment,
            start_new_session=True,
            bufsize=0,  # nothing is left to be written when the pipe is closed
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests = self._process.stdin.fileno()
        self._replies = open(self._process.stdout.fileno(), "rb", closefd=False)  # noqa: SIM115  (buffered)
        self._unsent = pack_message(*description)

    def submit(self, request: Message) -> list[bytes]:
        """Send a request and return the reply. Raises the worker's error, TransduceError if it was killed."""
        unsent, self._unsent = self._unsent + pack_message(*request), b""
        try:
            view = memoryview(unsent)
            while view:
                view = view[os.write(self._requests, view) :]
            kind, *reply = read_message(self._replies)
        except (EOFError, OSError) as error:
            raise self._death() from error
        if kind == FAILED:
            raise rebuilt(*json.loads(reply[0]))
        return reply

    def end(self) -> None:
        """Kill the process: it has no state to save."""
        self._process.kill()

    def close(self) -> None:
        """Wait for the process and close the pipes."""
        with self._process:
            pass

    def _death(self) -> WorkerDied:
        code = self._process.wait()
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return WorkerDied(f"a worker process ended {how}, perhaps for lack of memory; use fewer workers")


def described(error: Exception) -> list[str]:
    """Return an error for another process: the name of its class, or of the class of ``errors`` above it; its message.

    >>> rebuilt(*described(WorkerDied("it has ended")))
    TransduceError('it has ended')
    """
    known = (each for each in type(error).__mro__ if each is MemoryError or hasattr(errors, each.__name__))
    kind = next(known, type(error))
    return [kind.__name__, str(error)]


def rebuilt(name: str, message: str) -> Exception:
    """Return the error that a worker has described."""
    if name == "MemoryError":
        return MemoryError(message)
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, TransduceError):
        return kind.__new__(kind, message)  # not what its class makes a message of
    return RuntimeError(f"in a worker process: {name}: {message}")


def serve(start: Callable[[list[bytes]], Answer]) -> None:
    """Be a worker: call ``start`` with the description, then its result with each request, until stdin is closed."""
    requests, replies = SimpleQueue[list[bytes]](), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing that a library prints comes between the replies
    threading.Thread(target=_read_requests, args=(os.fdopen(os.dup(0), "rb"), requests), daemon=True).start()

    def reply(*parts: bytes) -> None:
        replies.write(pack_message(*parts))
        replies.flush()

    try:
        answer = start(requests.get())
        while True:
            reply(DONE, *answer(requests.get()))
    except BrokenPipeError:
        pass  # the process that started this one has ended
    except Exception as error:
        reply(FAILED, json.dumps(described(error)).encode())


def _read_requests(stream: IO[bytes], requests: SimpleQueue[list[bytes]]) -> None:
    """Read requests until the process that sends them has ended; end this one then, whatever it is doing."""
    with suppress(EOFError):
        while True:
            requests.put(read_message(stream))
    os._exit(0)


def pack_message(*parts: bytes) -> bytes:
    """Return a message of several parts.

    >>> import io
    >>> read_message(io.BytesIO(pack_message(b"one", b"")))
    [b'one', b'']
    """
    sizes = (SIZE.pack(len(part)) for part in parts)
    return SIZE.pack(len(parts)) + b"".join(chain.from_iterable(zip(sizes, parts, strict=True)))


def read_message(stream: IO[bytes]) -> list[bytes]:
    """Read the next message. Raises EOFError if the other process has closed its end."""
    n_parts = _read_size(stream)
    return [_read(stream, _read_size(stream)) for _ in range(n_parts)]


def _read_size(stream: IO[bytes]) -> int:
    size: int = SIZE.unpack(_read(stream, SIZE.size))[0]
    return size


def _read(stream: IO[bytes], n_bytes: int) -> bytes:
    content = stream.read(n_bytes)
    if len(content) != n_bytes:
        raise EOFError("the other process has closed its end of the pipe")
    return content
