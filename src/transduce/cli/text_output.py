"""Line output of commands: to stdout, or to a file that gets its name only when it is complete."""

from __future__ import annotations

import gzip
import lzma
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from transduce.cli.output import STANDARD, echo
from transduce.cli.paths import require_writable
from transduce.errors import ConfigError, DataError
from transduce.files import created_folder, open_in_place, open_regular

__all__ = ["is_terminal", "line_writer", "part_path", "require_not_read", "require_own_file"]


def part_path(path: Path) -> Path:
    """Return the name of an output file while it is being written."""
    target = path.resolve()
    return target.with_name(f"{target.name}.part")


def is_terminal(out: Path | None) -> bool:
    """Return whether output goes to a terminal."""
    return out in (None, STANDARD) and sys.stdout.isatty()


def require_not_read(out: Path | None, read: Path | None, *, option: str = "--in", written: str = "--out") -> None:
    """Raise ConfigError if the file of ``written``, or its partial file, is the file that another option reads."""
    if out is None or read is None or STANDARD in (out, read) or not read.is_file():
        return
    for path in (out, part_path(out)):
        if path.is_file() and path.samefile(read):
            raise ConfigError(f"{written} {out} would overwrite {read}, which {option} reads; name another file")


def require_own_file(option: str, path: Path | None, *, source: Path | None, out: Path | None) -> None:
    """Raise ConfigError if the file of an option cannot be written, or would overwrite what is read or written."""
    if path is None:
        return
    if path in (STANDARD, out):
        raise ConfigError(f"{option} should be a file of its own: --out, or stdout, has the translations")
    require_writable(option, path)
    require_not_read(path, source, written=option)


@contextmanager
def line_writer(out: Path | None) -> Iterator[Callable[[str], None]]:
    """Yield a function that writes a line: to stdout for None and ``-``, else to a file.

    A file (plain, .gz or .xz) is written as ``NAME.part`` and renamed when the block ends without an error. After an
    error or Ctrl-C the partial file stays, and its number of lines is printed. A pipe, a device or an open descriptor
    such as ``/dev/stdout`` is written directly.
    """
    if out is None or out == STANDARD:
        yield lambda line: print(line, flush=True)
        return
    in_place = open_in_place(out)
    part = part_path(out) if in_place is None else out
    with created_folder(part.parent):
        writer = _LineFile(part, in_place or _open_empty(part), out.suffix, is_part=in_place is None)
        try:
            yield writer
            writer.close()
        except BaseException:
            writer.abort(out)
            raise
        if in_place is None:
            part.replace(out.resolve())


def _open_empty(part: Path) -> IO[bytes]:
    """Create or truncate a file. Raises DataError if its path is not a regular file."""
    stream = open_regular(part, "ab")
    stream.truncate(0)
    return stream


class _LineFile:
    """A line-buffered output file."""

    def __init__(self, path: Path, raw: IO[bytes], suffix: str, *, is_part: bool) -> None:
        self.path, self.n_lines = path, 0
        self._raw, self._is_part, self._is_cut = raw, is_part, False
        self._stream: IO[bytes] | gzip.GzipFile | lzma.LZMAFile = raw
        if suffix == ".gz":
            self._stream = gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0)
        elif suffix == ".xz":
            self._stream = lzma.LZMAFile(raw, mode="wb")  # noqa: SIM115 - close ends it

    def __call__(self, line: str) -> None:
        try:
            self._stream.write(f"{line}\n".encode())
            if self._stream is self._raw:  # flushing a compressed stream would reduce compression
                self._raw.flush()
        except OSError as error:
            raise self._error(error) from error
        self.n_lines += 1

    def close(self) -> None:
        """Close the file and flush it to disk."""
        try:
            if self._stream is not self._raw:
                self._stream.close()
            self._raw.flush()
            if self._is_part:
                os.fsync(self._raw.fileno())
            self._raw.close()
        except OSError as error:
            raise self._error(error) from error

    def abort(self, out: Path) -> None:
        """Close a partial file and print what it holds; remove it if it is empty."""
        for stream in (self._stream, self._raw):
            try:
                stream.close()
            except OSError:  # writing may have failed before
                self._is_cut = True
        if not self._is_part:
            return
        if self.n_lines:
            is_cut = self._is_cut and self._stream is not self._raw  # else each line was flushed
            what = "its beginning, cut off, is" if is_cut else f"its first {self.n_lines:,} lines are"
            echo(f"{out} was not written; {what} in {self.path}")
        else:
            self.path.unlink()

    def _error(self, error: OSError) -> DataError:
        self._is_cut = True
        return DataError(f"{self.path} cannot be written after line {self.n_lines:,}: {error.strerror or error}")
