"""The three standard streams: always open, even if the caller closed them, and safe for any text."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from transduce.errors import DataError

__all__ = ["StrictText", "discard_stdout", "is_stdout_open", "lossy_text", "open_streams"]

STDIN, STDOUT, STDERR = 0, 1, 2
# Modes for the null device; reversed for stdin and stdout, so that using a closed one remains an error.
NULL_MODES = {STDIN: os.O_WRONLY, STDOUT: os.O_RDONLY, STDERR: os.O_WRONLY}


def open_streams() -> None:
    """Open all three streams, before any other file is opened.

    If the reader of stdout goes away ("... | head"), the process tidies up and ends with the exit code of SIGPIPE, as
    other filters do. The signal itself stays ignored, as Python starts: else whoever closes a connection could end the
    process.

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
    sys.stdout = StrictText("stdout", STDOUT, is_closed=is_missing[STDOUT])
    stderr: Any = sys.stderr
    sys.stderr = lossy_text(STDERR, encoding=getattr(stderr, "encoding", None) or "utf-8")


def is_stdout_open() -> bool:
    """Return whether stdout is open; the caller may have closed it."""
    stdout: object = sys.stdout
    return stdout is not None and not (isinstance(stdout, StrictText) and stdout.is_closed)


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


class StrictText(io.TextIOWrapper):
    """An output stream of text that raises DataError, with its name, if it cannot be written.

    UTF-8 whatever the locale; lone surrogates, as in undecodable file names, are escaped. The layers below are Python's
    own: a signal that raises between the writing of some bytes and their removal from a buffer would repeat them.
    """

    def __init__(self, label: str, descriptor: int, *, is_closed: bool = False) -> None:
        raw = io.FileIO(descriptor, "w", closefd=False)
        super().__init__(
            io.BufferedWriter(raw),
            encoding="utf-8",
            errors="backslashreplace",
            newline="\n",
            line_buffering=raw.isatty(),
        )
        self._label, self.is_closed = label, is_closed

    def write(self, text: str, /) -> int:
        """Write a text, or keep it for later; return its length."""
        with self._named_in_errors():
            return super().write(text)

    def flush(self) -> None:
        """Write what is kept."""
        with self._named_in_errors():
            super().flush()

    @contextmanager
    def _named_in_errors(self) -> Iterator[None]:
        try:
            yield
        except BlockingIOError:
            raise
        except OSError as error:
            if isinstance(error, BrokenPipeError) and self.fileno() == STDOUT:
                _end_as_a_filter()
            why = "it is closed" if self.is_closed else error.strerror
            raise DataError(f"{self._label} cannot be written: {why}") from error


def _end_as_a_filter() -> None:
    """Raise SystemExit as if by SIGPIPE, where there is such a signal; only in the main thread."""
    if hasattr(signal, "SIGPIPE") and threading.current_thread() is threading.main_thread():
        discard_stdout()
        raise SystemExit(128 + signal.SIGPIPE)


def lossy_text(descriptor: int, *, encoding: str) -> io.TextIOWrapper:
    """Return an output stream of text that drops lines which cannot be written: the terminal may be gone.

    It has no buffer of bytes, so that a signal repeats none.
    """
    raw: Any = _LossyOutput(descriptor, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding=encoding, errors="backslashreplace", newline="\n", line_buffering=True)


class _LossyOutput(io.FileIO):
    """An output file that ignores errors."""

    def write(self, data: Any) -> int:
        """Write all bytes; on an error, discard the rest."""
        rest = memoryview(data).cast("B")
        n_bytes = len(rest)
        with suppress(OSError):
            while rest:
                rest = rest[super().write(rest) or len(rest) :]  # nothing is written where it would block
        return n_bytes
