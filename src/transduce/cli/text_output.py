"""Lines that a command writes: to stdout, or to a file that has its name only when all of it is there."""

from __future__ import annotations

import gzip
import lzma
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from transduce.cli.output import STANDARD, echo
from transduce.errors import ConfigError, DataError
from transduce.files import created_folder, open_in_place, open_regular

__all__ = ["is_terminal", "line_writer", "part_path", "require_not_read"]


def part_path(path: Path) -> Path:
    """The name of an output file while it is written."""
    target = path.resolve()
    return target.with_name(f"{target.name}.part")


def is_terminal(out: Path | None) -> bool:
    """Whether what is written is seen on a terminal at once."""
    return out in (None, STANDARD) and sys.stdout.isatty()


def require_not_read(out: Path | None, read: Path | None, *, option: str = "--in") -> None:
    """Raises ConfigError if the file of ``--out`` is that of another option, or becomes it while it is written."""
    if out is None or read is None or STANDARD in (out, read) or not read.is_file():
        return
    for path in (out, part_path(out)):
        if path.is_file() and path.samefile(read):
            raise ConfigError(f"--out {out} would overwrite {read}, which {option} reads; name another file")


@contextmanager
def line_writer(out: Path | None) -> Iterator[Callable[[str], None]]:
    """What writes a line: to stdout for None and ``-``, else to a file, compressed where its name is .gz or .xz.

    A file is written as ``NAME.part``, line by line, and gets its name when the block ends without an error. After an
    error or a Ctrl-C it stays a part, and says how many lines it has. A pipe, a device or what ``/dev/stdout`` names is
    written to as it is.
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
    """A file that is begun anew. Raises DataError if something else than a file has its name."""
    stream = open_regular(part, "ab")
    stream.truncate(0)
    return stream


class _LineFile:
    """A file to which lines are written; each is on its way to the disk before the next one comes."""

    def __init__(self, path: Path, raw: IO[bytes], suffix: str, *, is_part: bool) -> None:
        self.path, self.n_lines = path, 0
        self._raw, self._is_part = raw, is_part
        self._stream: IO[bytes] | gzip.GzipFile | lzma.LZMAFile = raw
        if suffix == ".gz":
            self._stream = gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0)
        elif suffix == ".xz":
            self._stream = lzma.LZMAFile(raw, mode="wb")  # noqa: SIM115 - close ends it

    def __call__(self, line: str) -> None:
        try:
            self._stream.write(line.encode("utf-8") + b"\n")
            if self._stream is self._raw:  # else a flush would cost compression
                self._raw.flush()
        except OSError as error:
            raise self._error(error) from error
        self.n_lines += 1

    def close(self) -> None:
        """End the file, and have it on the disk."""
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
        """End the file as it is, and tell what is in it; remove it if that is nothing."""
        for stream in (self._stream, self._raw):
            with suppress(OSError):  # what made it end may well be this
                stream.close()
        if not self._is_part:
            return
        if self.n_lines:
            echo(f"{out} was not written; its first {self.n_lines:,} lines are in {self.path}")
        else:
            self.path.unlink()

    def _error(self, error: OSError) -> DataError:
        return DataError(f"{self.path} cannot be written after line {self.n_lines:,}: {error.strerror or error}")
