"""Standard output and standard error: what is written once is not written again after a signal."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

import pytest

from said import naming
from transduce.cli.streams import StrictText, lossy_text
from transduce.errors import DataError

fcntl = pytest.importorskip("fcntl")  # not on Windows
PIPE_SIZE = 4096
LINES = [f"line {number}\n" for number in range(4000)]  # much more than a pipe and a buffer hold


class Stopped(Exception):
    """Raised by a signal."""


@contextmanager
def raising_after(seconds: float) -> Iterator[None]:
    """Raise ``Stopped`` once, by a signal."""

    def stop(number: int, frame: object) -> None:
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.reliability
@pytest.mark.parametrize(
    "make", [lambda fd: StrictText("stdout", fd), lambda fd: lossy_text(fd, encoding="utf-8")], ids=["out", "err"]
)
@pytest.mark.parametrize("at_once", [1, 7, 4000])
def test_a_signal_repeats_nothing(make: Callable[[int], IO[str]], at_once: int) -> None:
    """It comes while the reader is slow: some bytes of a chunk are in the pipe, the others are not."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, 1031, PIPE_SIZE)  # F_SETPIPE_SZ
    stream, received = make(writer), bytearray()

    def read() -> None:
        while data := os.read(reader, 1 << 16):
            received.extend(data)

    def write() -> None:
        for first in range(0, len(LINES), at_once):
            stream.write("".join(LINES[first : first + at_once]))
        stream.flush()

    slow_reader = threading.Thread(target=read)
    with pytest.raises(Stopped), raising_after(0.05):
        write()
    slow_reader.start()
    stream.flush()
    os.close(writer)
    slow_reader.join()
    os.close(reader)
    whole = "".join(LINES)
    assert len(received) > PIPE_SIZE // 2
    assert whole.startswith(received.decode())


@pytest.mark.parametrize("is_closed", [False, True])
def test_an_output_that_cannot_be_written_is_named(is_closed: bool) -> None:
    reader, writer = os.pipe()
    stream = StrictText("stdout", writer, is_closed=is_closed)
    stream.write("a")
    os.close(reader)
    with pytest.raises(DataError, match=naming("stdout", "it is closed" if is_closed else os.strerror(errno.EPIPE))):
        stream.flush()
    with suppress(OSError):
        stream.close()
    os.close(writer)


def test_lines_for_an_error_stream_that_is_gone_are_dropped() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    stream = lossy_text(writer, encoding="utf-8")
    print("nobody reads this", file=stream)
    stream.flush()
    os.close(writer)
