"""Runs a command line in this process, like ``transduce``, and checks its output."""

from __future__ import annotations

import functools
import io
import json
import os
import re
import shlex
import signal
import sys
import threading
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from fuzzing.cases import CaseFolders, Fault, require, told
from fuzzing.sandbox import guarded
from transduce.cli import verbs
from transduce.cli.main import main

__all__ = ["Outcome", "Streams", "controls_in", "run_command"]

# Each verb's commands, which typer makes anew for each command line: once, before there are children.
verbs.make_app = functools.cache(verbs.make_app)
typer.main.get_command = functools.cache(typer.main.get_command)
for app in (verbs.make_app(), *(verbs.make_app(verb) for verb in verbs.VERBS)):
    typer.main.get_command(app)

LONGEST_LINE = 2500
MOST_LINES = 60  # of stderr, where a command is refused
READ_STREAMS = ("stdin", "stdout", "stderr")


@dataclass(frozen=True, slots=True)
class Streams:
    """The standard streams: None for closed, or a path; by default files of the case."""

    stdin: str | None = ""
    stdout: str | None = ""
    stderr: str | None = ""
    broken_pipes: frozenset[int] = frozenset()  # those that nobody reads


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a command."""

    arguments: tuple[str, ...]
    code: int
    out: bytes
    err: str

    @property
    def word(self) -> str:
        """The entry in the table."""
        return "refused" if self.code in (1, 2) else f"exit {self.code}"

    def json(self) -> Any:
        """Parse stdout. Raises Fault if it is not JSON."""
        try:
            return json.loads(self.out)
        except ValueError as error:
            raise Fault("stdout is no JSON", f"{error}: {self.out!r:.500}") from None


def run_command(
    place: CaseFolders,
    arguments: Sequence[object],
    *,
    stdin: bytes = b"",
    streams: Streams | None = None,
    codes: Collection[int] = (0, 1, 2),
    may_connect: bool = False,
    stop_after_s: float | None = None,
    speaks_on_stdout: bool = False,
    repeats: bytes = b"",
) -> Outcome:
    """Run ``transduce`` with these arguments, once in a process, in the folder of a case. Raises Fault.

    ``codes`` are the accepted exit codes. After ``stop_after_s`` it gets SIGTERM and must stop. ``speaks_on_stdout``:
    problems are reported on stdout, and exit code 1 needs no line on stderr. ``repeats`` is input that the command may
    copy to stdout, as a parser does, including its control characters.
    """
    words = [str(argument) for argument in arguments]
    (place.streams / "command").write_text(shlex.join(["transduce", *words]), errors="surrogateescape")
    (place.streams / "stdin").write_bytes(stdin)
    for name in READ_STREAMS[1:]:
        (place.streams / name).touch()
    if streams is not None and streams.broken_pipes:
        codes = (*codes, 128 + signal.SIGPIPE)
    is_heard = streams is None or (streams.stderr == "" and 2 not in streams.broken_pipes)
    with (place.streams / "hang").open("w") as last_words:
        _open_streams(place, streams or Streams())
        _surround(place)
        timer = threading.Timer(stop_after_s or 0, os.kill, (os.getpid(), signal.SIGTERM))
        timer.daemon = True
        if stop_after_s is not None:
            timer.start()
        with guarded(place, may_connect=may_connect, last_words=last_words):
            code = _exit_code(words, is_heard=is_heard)
        timer.cancel()
    out, err = ((place.streams / name).read_bytes() for name in ("stdout", "stderr"))
    outcome = Outcome(tuple(words), code, out, err.decode("utf-8", "replace"))
    _check(outcome, codes, is_heard=is_heard, speaks_on_stdout=speaks_on_stdout, repeats=repeats)
    return outcome


def _open_streams(place: CaseFolders, streams: Streams) -> None:
    """Set up descriptors 0 to 2, and Python's streams on them as at startup."""
    sys.stdout.flush()
    sys.stderr.flush()
    for fd, (name, path) in enumerate(zip(READ_STREAMS, (streams.stdin, streams.stdout, streams.stderr), strict=True)):
        if fd in streams.broken_pipes:
            reader, writer = os.pipe()
            os.close(reader)
            os.dup2(writer, fd)
            os.close(writer)
        else:
            flags = os.O_RDONLY if fd == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND
            opened = os.open(path or place.streams / name, flags, 0o666)
            if opened != fd:
                os.dup2(opened, fd)
                os.close(opened)
    for fd, path in enumerate((streams.stdin, streams.stdout, streams.stderr)):
        if path is None:
            os.close(fd)  # last: the files above would have taken its number
    for fd, name in enumerate(READ_STREAMS):
        setattr(sys, name, _python_stream(fd, name))
        setattr(sys, f"__{name}__", getattr(sys, name))


def _python_stream(fd: int, name: str) -> io.TextIOWrapper | None:
    try:
        os.fstat(fd)
    except OSError:
        return None
    raw = io.FileIO(fd, "r" if fd == 0 else "w", closefd=False)
    raw.name = f"<{name}>"
    buffer: Any = io.BufferedReader(raw) if fd == 0 else io.BufferedWriter(raw)
    errors = "backslashreplace" if fd == 2 else "strict"
    return io.TextIOWrapper(buffer, encoding="utf-8", errors=errors, newline="\n", line_buffering=fd == 2)


def _surround(place: CaseFolders) -> None:
    """Set the working folder, the home folder and the temporary folder to those of the case."""
    os.chdir(place.folder)
    for name in ("home", "tmp"):
        (place.folder / name).mkdir(exist_ok=True)
    import tempfile

    tempfile.tempdir = str(place.folder / "tmp")
    home = str(place.folder / "home")
    os.environ |= {"HOME": home, "XDG_CACHE_HOME": f"{home}/.cache", "TMPDIR": tempfile.tempdir, "COLUMNS": "200"}
    os.environ["TRANSDUCE_TRACEBACK"] = "1"  # else what nobody foresaw is told in a line, too
    os.environ.pop("TRANSDUCE_DATA", None)


def _exit_code(words: list[str], *, is_heard: bool) -> int:
    sys.argv = ["transduce", *words]
    try:
        main()
        code: Any = 0
    except SystemExit as end:
        code = end.code
    except MemoryError as error:
        raise Fault("took more than 4 GB", told(error)) from None
    except Exception as error:
        if isinstance(error, OSError) and not is_heard:
            return 1  # an error that could not be told: Python ends so, too
        kind = "took more than 4 GB" if _is_out_of_memory(error) else "an uncaught exception"
        raise Fault(kind, told(error)) from None
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:  # Python ends with code 120 and a complaint of its own
        raise Fault("stdout is left for Python to flush at the end, which fails", repr(error)) from None
    require(code is None or isinstance(code, int), "ended with words as exit code", code)
    return code or 0


def _is_out_of_memory(error: Exception) -> bool:
    return "can't allocate memory" in str(error) or "Cannot allocate memory" in str(error)


def _check(outcome: Outcome, codes: Collection[int], *, is_heard: bool, speaks_on_stdout: bool, repeats: bytes) -> None:
    """Check what must hold for every command line."""
    out, err = outcome.out.decode("utf-8", "replace"), outcome.err
    require("error: out of memory" not in err, "took more than 4 GB", err[-2000:])
    for name, text in (("stdout", out), ("stderr", err)):
        require("Traceback (most recent call last)" not in text, "a traceback was printed", text[-2900:])
        known = set(repeats.decode("utf-8", "replace")) if name == "stdout" else set()
        found = controls_in(text) - known
        require(not found, f"control characters on {name}", f"{sorted(found)} in {text[-2000:]!r}")
    warned = re.search(r"^\S+\.py:\d+: \w*Warning: .*|^Exception ignored.*", err, re.MULTILINE)
    require(warned is None, "a warning of Python was printed", warned and warned.group())
    longest = max(map(len, err.split("\n")))
    require(longest <= LONGEST_LINE, "a line too long on stderr", f"{longest} characters: {err!r:.300}")
    require(outcome.code in codes, f"exit code {outcome.code}", err[-2000:])
    if outcome.code in (1, 2) and is_heard:
        errors = [line for line in err.split("\n") if line.startswith("error: ")]
        is_help = outcome.code == 2 and "Usage:" in out
        has_spoken = len(errors) == 1 or is_help or (speaks_on_stdout and not errors and out.strip() != "")
        require(has_spoken, "refused without one line 'error: ...'", f"{outcome.code}: {err!r:.2000}")
        n_lines = err.count("\n")
        require(n_lines <= MOST_LINES, "too many lines on stderr", f"{n_lines}: {err!r:.500}")


def controls_in(text: str) -> set[str]:
    """Return the control characters of a text, except line ends and tabs."""
    return {char for char in set(text) - {"\n", "\t"} if unicodedata.category(char) == "Cc"}
