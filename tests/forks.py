"""Commands as processes of their own that start at once: forked from a process that has imported everything before.

The server is this file as a program. What only a real start shows (the entry point, the order of imports, variables
that the interpreter reads) is tested with ``subprocess``.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from subprocess import DEVNULL, PIPE
from typing import IO, Any, Self

IMPORTED = (
    "torch._dynamo", "torch.distributed.fsdp", "torch.utils.tensorboard", "transduce.tasks", "transduce.diagnostics",
    "transduce.bulk.driver", "transduce.cli.main", "transduce.cli.verbs", "transduce.cli.progress", "rich.progress",
)  # fmt: skip
STREAMS = (("stdin", "r", -1, "strict"), ("stdout", "w", -1, "strict"), ("stderr", "w", 1, "backslashreplace"))
SIZE, NUMBER = struct.Struct("<Q"), struct.Struct("<i")


class Process:
    """A started command: what the tests use of ``subprocess.Popen``."""

    def __init__(self, told: int, streams: list[IO[Any] | None]) -> None:
        self._told = told  # a pipe with two numbers: the process id, and after its end the status as of os.waitpid
        self.pid = self._read_number()
        self.stdin, self.stdout, self.stderr = streams
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or None while it runs."""
        if self.returncode is None and select.select([self._told], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code. Raises TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            self.returncode = os.waitstatus_to_exitcode(self._read_number())
            os.close(self._told)
        return self.returncode

    def _read_number(self) -> int:
        number: int = NUMBER.unpack(os.read(self._told, NUMBER.size))[0]
        return number

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        """Write ``input`` to its stdin, read the other pipes and wait for its end. Raises TimeoutExpired."""
        give_up = None if timeout is None else time.monotonic() + timeout
        pipes, read = (self.stdout, self.stderr), [None, None]

        def read_pipe(index: int, pipe: IO[Any]) -> None:
            read[index] = pipe.read()

        def write_pipe(pipe: IO[Any]) -> None:
            with contextlib.suppress(BrokenPipeError):
                if input:
                    pipe.write(input)
                pipe.close()

        threads = [threading.Thread(target=read_pipe, args=(n, p), daemon=True) for n, p in enumerate(pipes) if p]
        if self.stdin and not self.stdin.closed:
            threads.append(threading.Thread(target=write_pipe, args=(self.stdin,), daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(None if give_up is None else max(0.0, give_up - time.monotonic()))
        self.wait(None if give_up is None else max(0.0, give_up - time.monotonic()))
        self._close()
        return read[0], read[1]

    def _close(self) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._close()
        self.wait()


class Forks:
    """The server, begun at the first command; ``close`` ends it."""

    def __init__(self) -> None:
        self._server: tuple[subprocess.Popen[bytes], socket.socket] | None = None

    def start(
        self,
        *arguments: object,
        program: str | None = None,
        before: str = "",
        stdin: int | IO[Any] = DEVNULL,
        stdout: int | IO[Any] = PIPE,
        stderr: int | IO[Any] = PIPE,
        env: dict[str, str] | None = None,
        text: bool = True,
    ) -> Process:
        """Start ``transduce`` with these arguments, or a Python program.

        ``before`` is Python code that runs first, with ``os``, ``resource`` and ``signal``. Torch has one thread.
        """
        variables = {**os.environ, **(env or {}), "OMP_NUM_THREADS": "1"}
        request = json.dumps([program, list(map(str, arguments)), before, variables, os.getcwd()]).encode()
        theirs, ours, opened = list[int](), list[IO[Any] | None](), list[int]()
        for number, stream in enumerate((stdin, stdout, stderr)):
            pipe = None
            if stream == PIPE:
                read, write = os.pipe()
                end, other = (read, write) if number == 0 else (write, read)
                mode = "w" if number == 0 else "r"
                pipe = os.fdopen(other, mode, encoding="utf-8") if text else os.fdopen(other, mode + "b")
                opened.append(end)
            elif stream == DEVNULL:
                end = os.open(os.devnull, os.O_RDWR)
                opened.append(end)
            else:
                end = stream if isinstance(stream, int) else stream.fileno()
            theirs.append(end)
            ours.append(pipe)
        told, tell = os.pipe()
        connection = self._connection()
        socket.send_fds(connection, [SIZE.pack(len(request))], [*theirs, tell])
        connection.sendall(request)
        for descriptor in (*opened, tell):
            os.close(descriptor)
        return Process(told, ours)

    def run(
        self, *arguments: object, input: Any = None, timeout: float = 120, **options: Any
    ) -> subprocess.CompletedProcess[Any]:
        """Run a command to its end, as ``subprocess.run`` does."""
        if input is not None:
            options["stdin"] = PIPE
        process = self.start(*arguments, **options)
        try:
            out, err = process.communicate(input, timeout)
        finally:
            process.kill()
        return subprocess.CompletedProcess(arguments, process.wait(), out, err)

    def _connection(self) -> socket.socket:
        if self._server is None:
            ours, theirs = socket.socketpair()
            with theirs:
                server = subprocess.Popen(
                    [sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()],
                    stdin=DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"}, start_new_session=True,
                )  # fmt: skip
            self._server = server, ours
        return self._server[1]

    def close(self) -> None:
        """End the server."""
        if self._server is not None:
            server, connection = self._server
            connection.close()
            server.wait()


def main() -> None:
    """Serve: each request makes a process that ends as a program of its own does; this one ends with the connection."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    for name in IMPORTED:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the watchers
    gc.collect()
    gc.freeze()  # else each process would copy all pages when it looks for garbage at its end
    while True:
        head, descriptors, _, _ = socket.recv_fds(connection, SIZE.size, 4)
        if not head:
            return
        request = connection.recv(SIZE.unpack(head)[0], socket.MSG_WAITALL)
        if os.fork() == 0:
            connection.close()
            watch(descriptors)  # returns in the command alone
            run(descriptors, *json.loads(request))
            return
        for descriptor in descriptors:
            os.close(descriptor)


def watch(descriptors: list[int]) -> None:
    """Fork once more; the first process waits for the second, tells its exit status and ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    command = os.fork()
    if command:
        *streams, told = descriptors
        for descriptor in streams:
            os.close(descriptor)
        os.write(told, NUMBER.pack(os.waitpid(command, 0)[1]))
        os._exit(0)


def run(
    descriptors: list[int],
    program: str | None,
    arguments: list[str],
    before: str,
    variables: dict[str, str],
    folder: str,
) -> None:
    """Run a command in this process as an interpreter would that has just been started."""
    *streams, told = descriptors
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    try:
        exec(before, {"os": os, "resource": importlib.import_module("resource"), "signal": signal})
    finally:
        os.write(told, NUMBER.pack(os.getpid()))
        os.close(told)
    for number, (name, mode, buffering, errors) in enumerate(STREAMS):
        stream = None  # if ``before`` has closed it
        with contextlib.suppress(OSError):
            stream = os.fdopen(number, mode, buffering, "utf-8", errors, closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.path[0] = ""
    sys.argv = ["transduce" if program is None else "-c", *arguments]
    if program is None:
        sys.modules["transduce.cli.main"].main()
    else:
        exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    main()
