"""Runs cases in forked children, which start quickly, since this process has imported all libraries.

A lane runs cases one after the other; there is one lane per processor, but two at most. If a child dies or hangs, its
current case has failed, and the next child continues after it.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, TextIO

from fuzzing.cases import Case, CaseFolders, Fault, Format, told

__all__ = ["Played", "play_all"]

MOST_LANES = 2
GRACE_S = 5.0  # after a hang, for the child's own traceback
CANARY = b"Nobody touches this.\n"


@dataclass(frozen=True, slots=True)
class Played:
    """The result of a case."""

    name: str
    outcome: str | None  # None: a fault
    fault: str
    detail: str
    command: str
    seconds: float  # of a processor; of the clock, where the child was ended


def play_all(
    formats: Mapping[str, Format], names: Sequence[str], scratch: Path, *, watched: Path, hang_s: float
) -> Iterator[Played]:
    """Run the cases and yield each result; files below ``watched`` must not change."""
    n_lanes = max(1, min(MOST_LANES, os.cpu_count() or 1, len(names)))
    readers: dict[int, tuple[int, bytes]] = {}
    for number in range(n_lanes):
        reader, writer = os.pipe()
        lane = os.fork()
        if lane == 0:
            try:
                _die_with_parent()
                for earlier in (*readers, reader):
                    os.close(earlier)
                with os.fdopen(writer, "w") as out:
                    _Lane(formats, scratch / f"lane-{number}", watched, hang_s).play(
                        _dealt(formats, names, number, n_lanes), out
                    )
                code = 0
            except BaseException:
                traceback.print_exc()
                code = 1
            sys.stderr.flush()
            os._exit(code)
        os.close(writer)
        readers[reader] = (lane, b"")
    try:
        while readers:
            for reader in select.select(list(readers), [], [])[0]:
                lane, rest = readers[reader]
                chunk = os.read(reader, 1 << 16)
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (Played(**json.loads(line)) for line in lines)
                readers[reader] = (lane, rest)
                if not chunk:
                    os.close(reader)
                    del readers[reader]
                    _, status = os.waitpid(lane, 0)
                    if status:
                        raise RuntimeError(f"a lane of the fuzzer has ended with {status}")
    finally:
        for lane, _ in readers.values():
            os.kill(lane, signal.SIGKILL)
            os.waitpid(lane, 0)


def _dealt(formats: Mapping[str, Format], names: Sequence[str], number: int, n_lanes: int) -> list[list[str]]:
    """Return the cases of one lane, in groups of one child each."""
    bunches = []
    for name, group in groupby(names, key=lambda name: Case(name).format):
        size = formats[name].cases_per_child
        members = list(group)
        bunches += [members[start : start + size] for start in range(0, len(members), size)]
    return bunches[number::n_lanes]


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class _Lane:
    """One case after the other."""

    def __init__(self, formats: Mapping[str, Format], folder: Path, watched: Path, hang_s: float) -> None:
        self.formats, self.watched = formats, watched
        self.place = CaseFolders(folder / "case", folder / "outside", folder / "streams", hang_s)
        self.report = folder / "report"
        folder.mkdir(parents=True)
        self.place.streams.mkdir()
        self._make_outside()
        self.before = self._seen()

    def play(self, bunches: list[list[str]], out: TextIO) -> None:
        for bunch in bunches:
            rest = bunch
            while rest:
                for played in self._play_some(rest):
                    out.write(json.dumps(played) + "\n")
                    rest = rest[1:]
                out.flush()

    def _play_some(self, names: list[str]) -> list[dict[str, Any]]:
        """Run cases in a child until one ends it."""
        self.report.write_bytes(b"")
        self._clear()
        begin = time.monotonic()
        child = os.fork()
        if child == 0:
            _die_with_parent()
            os.setsid()
            self._be_child(names)
        status = self._wait(child, (self.place.hang_s + GRACE_S) * len(names))
        lines = [json.loads(line) for line in self.report.read_text().splitlines()]
        played = [line for line in lines if "outcome" in line]
        if len(played) < len(names):
            name = names[len(played)]
            words = self._last_words()
            kind = "hangs" if "Timeout (" in words or status is None else _end_in_words(status)
            seconds = time.monotonic() - begin
            played.append(self._as_fault(name, Fault(kind, words), seconds))
        if self._seen() != self.before:
            difference = sorted(set(self._seen().items()) ^ set(self.before.items()))[:4]
            played[-1] = self._as_fault(played[-1]["name"], Fault("changed files outside", str(difference)), 0.0)
            shutil.rmtree(self.place.outside, ignore_errors=True)
            self._make_outside()
            self.before = self._seen()
        return played

    def _be_child(self, names: list[str]) -> None:
        """Run cases and record the result of each."""
        report = os.open(self.report, os.O_WRONLY | os.O_APPEND)
        os.dup2(report, 100, inheritable=False)  # out of the way of what cases do to low numbers
        log = os.open(self.place.streams / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        os.close(report)
        for name in names:
            begin = time.process_time()
            case = Case(name)
            self.place.folder.mkdir(exist_ok=True)
            try:
                outcome = self.formats[case.format].play(case, self.place)
                line = self._as_line(name, outcome, time.process_time() - begin)
            except Fault as fault:
                line = self._as_fault(name, fault, time.process_time() - begin)
            except MemoryError as error:
                fault = Fault("took more than 4 GB", told(error))
                line = self._as_fault(name, fault, time.process_time() - begin)
            except BaseException as error:  # panics of libraries are no Exception
                fault = Fault("an uncaught exception", told(error))
                line = self._as_fault(name, fault, time.process_time() - begin)
            os.write(100, json.dumps(line).encode() + b"\n")
            if len(names) > 1:
                os.chdir("/")
                shutil.rmtree(self.place.folder, ignore_errors=True)
        os._exit(0)

    def _as_line(self, name: str, outcome: str, seconds: float) -> dict[str, Any]:
        return asdict(Played(name, outcome, "", "", self._command(), seconds))

    def _command(self) -> str:
        path = self.place.streams / "command"
        return path.read_text(errors="replace")[:1000] if path.exists() else ""

    def _as_fault(self, name: str, fault: Fault, seconds: float) -> dict[str, Any]:
        return asdict(Played(name, None, fault.kind, fault.detail, self._command(), seconds))

    def _wait(self, child: int, seconds: float) -> int | None:
        """Return the exit status of a child, None if it had to be killed. Its own children are killed too."""
        fd = os.pidfd_open(child)
        is_over = bool(select.select([fd], [], [], seconds)[0])
        os.close(fd)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        return status if is_over else None

    def _last_words(self) -> str:
        words = ""
        for name in ("hang", "log", "stderr"):
            path = self.place.streams / name
            if path.exists():
                text = path.read_text(errors="replace")
                words += text[:2500] if name != "stderr" else text[-2500:]  # the innermost call is the first
        return words

    def _clear(self) -> None:
        """Remove the files of an earlier case."""
        for folder in (self.place.folder, self.place.streams):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(exist_ok=True)

    def _make_outside(self) -> None:
        (self.place.outside / "folder").mkdir(parents=True)
        for path in (self.place.outside / "canary", self.place.outside / "folder" / "canary"):
            path.write_bytes(CANARY)

    def _seen(self) -> dict[str, tuple[int, int]]:
        """Return sizes and times of the files that must not change."""
        seen = {}
        for top in (self.place.outside, self.watched):
            for folder, folders, files in os.walk(top):
                for name in (*folders, *files):
                    found = os.lstat(os.path.join(folder, name))
                    seen[os.path.join(folder, name)] = (found.st_size, found.st_mtime_ns)
        return seen


def _end_in_words(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"ended the process with code {os.WEXITSTATUS(status)}"
