"""The three standard streams: always open, even if the caller closed them, and safe for any text."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from typing import Any

from transduce.errors import DataError

__all__ = ["discard_stdout", "is_stdout_open", "open_streams"]

STDIN, STDOUT, STDERR = 0, 1, 2
# Modes for the null device; reversed for stdin and stdout, so that using a closed one remains an error.
NULL_MODES = {STDIN: os.O_WRONLY, STDOUT: os.O_RDONLY, STDERR: os.O_WRONLY}


def open_streams() -> None:
    """Open all three streams, before any other file is opened.

    If the reader of stdout goes away ("... | head"), the process ends as other filters do. SIGPIPE itself stays
    ignored, as Python starts: else whoever closes a connection could end the process.

    A descriptor that the caller closed is redirected to the null device; else the next opened file would get its number
    and receive what is printed on stderr. Reading a closed stdin and writing a closed stdout are errors; output to a
    closed or full stderr is discarded.
    """
    is_missing = {descriptor: _is_missing(descriptor) for descriptor in NULL_MODES}
    for descriptor, mode in NULL_MODES.items():  # in order, since open takes the lowest free number
        if is_missing[descriptor]:
            os.open(os.devnull, mode)
            os.set_inheritable(descriptor, True)
    stdin: object = sys.stdin
    if is_missing[STDIN] or stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(_ClosedInput()), encoding="utf-8")
    # Output is UTF-8 whatever the locale; lone surrogates, as in undecodable file names, are escaped.
    sys.stdout = _text(_StrictOutput("stdout", STDOUT, is_closed=is_missing[STDOUT]), encoding="utf-8")
    stderr: Any = sys.stderr
    sys.stderr = _text(_LossyOutput(STDERR, "w", closefd=False), encoding=getattr(stderr, "encoding", None) or "utf-8")


def is_stdout_open() -> bool:
    """Return whether stdout is open; the caller may have closed it."""
    stdout: object = sys.stdout
    raw = getattr(getattr(stdout, "buffer", None), "raw", None)
    return stdout is not None and not (isinstance(raw, _StrictOutput) and raw.is_closed)


def discard_stdout() -> None:
    """Discard buffered output that could not be written; else Python would write it again at exit."""
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
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor, which is redirected to the null device."""
        return STDIN

    def readinto(self, buffer: Any) -> int:
        """Raises DataError."""
        raise DataError("stdin cannot be read: it is closed; redirect it, as in < FILE, or name a file")


class _StrictOutput(io.FileIO):
    """An output stream that raises DataError, with its name, if it cannot write."""

    def __init__(self, label: str, descriptor: int, *, is_closed: bool) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._label, self.is_closed = label, is_closed

    def write(self, data: Any) -> int:
        """Write some of the bytes; return how many."""
        try:
            return super().write(data)
        except BlockingIOError:
            raise
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                _end_as_a_filter()
            why = "it is closed" if self.is_closed else error.strerror
            raise DataError(f"{self._label} cannot be written: {why}") from error


def _end_as_a_filter() -> None:
    """End the process by SIGPIPE, where there is such a signal; only the main thread may."""
    if hasattr(signal, "SIGPIPE") and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)


class _LossyOutput(io.FileIO):
    """An output stream that ignores errors: the terminal may be gone or the disk full."""

    def write(self, data: Any) -> int:
        """Write the bytes, or discard them on an error."""
        try:
            return super().write(data)
        except BlockingIOError:
            raise
        except OSError:
            return memoryview(data).nbytes
