"""The three standard streams: there, whatever the caller has closed, and good for any text."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

from transduce.errors import DataError

__all__ = ["discard_stdout", "is_stdout_open", "open_streams"]

STDIN, STDOUT, STDERR = 0, 1, 2
# The wrong mode round for the first two: to read from what was closed, or to write to it, stays an error.
NULL_MODES = {STDIN: os.O_WRONLY, STDOUT: os.O_RDONLY, STDERR: os.O_WRONLY}


def open_streams() -> None:
    """Give this process all three streams, before it opens anything else.

    A descriptor that the caller has closed is put on the null device: else the next file to be opened would get its
    number, and what is said on stderr would land in it. To read from a closed stdin, or to write to a closed stdout, is
    an error; what is written to a stderr that is closed, full or gone is lost, as there is nobody left to tell.
    """
    is_missing = {descriptor: _is_missing(descriptor) for descriptor in NULL_MODES}
    for descriptor, mode in NULL_MODES.items():  # in order: the lowest free number is the one that is given out
        if is_missing[descriptor]:
            os.open(os.devnull, mode)
            os.set_inheritable(descriptor, True)
    stdin: object = sys.stdin
    if is_missing[STDIN] or stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(_ClosedInput()), encoding="utf-8")
    # Text is UTF-8, whatever the terminal's settings; what is not even text, as the name of a file may be, is escaped.
    sys.stdout = _text(_StrictOutput("stdout", STDOUT, is_closed=is_missing[STDOUT]), encoding="utf-8")
    stderr: Any = sys.stderr
    sys.stderr = _text(_LossyOutput(STDERR, "w", closefd=False), encoding=getattr(stderr, "encoding", None) or "utf-8")


def is_stdout_open() -> bool:
    """Whether there is a stdout that takes what is written: the caller may have closed it."""
    stdout: object = sys.stdout
    raw = getattr(getattr(stdout, "buffer", None), "raw", None)
    return stdout is not None and not (isinstance(raw, _StrictOutput) and raw.is_closed)


def discard_stdout() -> None:
    """Throw away what could not be written, which Python would try again at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, STDOUT)
    os.close(null)
    sys.stdout.flush()


def _is_missing(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return True
    return False


def _text(raw: io.FileIO, *, encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=encoding,
        errors="backslashreplace",
        newline="\n",
        line_buffering=raw.isatty() or raw.fileno() == STDERR,
    )


class _ClosedInput(io.RawIOBase):
    """A stdin that the caller has closed."""

    def readable(self) -> bool:
        """As every input."""
        return True

    def fileno(self) -> int:
        """Of the null device that stands in its place."""
        return STDIN

    def readinto(self, buffer: Any) -> int:
        """Raises DataError."""
        raise DataError("stdin cannot be read: it is closed; give it a text, as in < FILE, or name a file")


class _StrictOutput(io.FileIO):
    """An output that must not lose anything: it raises DataError, with its name, where it cannot write."""

    def __init__(self, label: str, descriptor: int, *, is_closed: bool) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._label, self.is_closed = label, is_closed

    def write(self, data: Any) -> int:
        """Some of the bytes; how many."""
        try:
            return super().write(data)
        except BlockingIOError:
            raise
        except OSError as error:
            why = "it is closed" if self.is_closed else error.strerror
            raise DataError(f"{self._label} cannot be written: {why}") from error


class _LossyOutput(io.FileIO):
    """An output for remarks: none of them is worth ending for, where the terminal is gone or the disk is full."""

    def write(self, data: Any) -> int:
        """All of the bytes, or none, without a word."""
        try:
            return super().write(data)
        except BlockingIOError:
            raise
        except OSError:
            return memoryview(data).nbytes
