"""Cases that misbehave on purpose: the fuzzer must detect each. Only its own test runs them."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from fuzzing.cases import Case, CaseFolders, Format, require
from fuzzing.commands import run_command
from fuzzing.sandbox import guarded
from fuzzing.sources import Sources
from transduce.cli import main as command

__all__ = ["misbehaving_format"]


def _write_natively(path: Path) -> None:
    """Past the audit hooks of Python, as a library would."""
    import ctypes

    library = ctypes.CDLL(None)
    opened = library.open(os.fsencode(path), os.O_WRONLY | os.O_APPEND)
    library.write(opened, b"no", 2)
    library.close(opened)


def _follow_a_link(place: CaseFolders) -> None:
    (place.folder / "link").symlink_to(place.outside / "canary")
    (place.folder / "link").write_text("no")


def _remove_by_folder(place: CaseFolders) -> None:
    """By a name relative to an open folder."""
    opened = os.open(place.outside / "folder", os.O_RDONLY)
    os.unlink("canary", dir_fd=opened)


def _swallow(place: CaseFolders) -> None:
    """What is caught by an ``except`` that catches too much is told all the same."""
    try:
        (place.outside / "canary").write_text("no")
    except BaseException:
        print("all is well")


class _Malice:
    def __reduce__(self) -> tuple[object, ...]:
        return os.getcwd, ()


WORKS: dict[str, Callable[[CaseFolders], object]] = {
    "good": lambda place: (place.folder / "mine").write_text("yes"),
    "aborts": lambda place: os.abort(),
    "segfaults": lambda place: os.kill(os.getpid(), 11),
    "leaves": lambda place: os._exit(3),
    "hangs": lambda place: threading.Event().wait(),
    "eats_memory": lambda place: bytearray(5 << 30),
    "raises": lambda place: {}["nothing"],
    "writes_outside": lambda place: (place.outside / "canary").write_text("no"),
    "renames_outside": lambda place: (place.outside / "canary").rename(place.folder / "taken"),
    "makes_outside": lambda place: os.mkdir(place.outside / "new"),
    "removes_by_folder": _remove_by_folder,
    "links_outside": lambda place: os.symlink("x", place.outside / "x"),
    "writes_natively": lambda place: _write_natively(place.outside / "canary"),
    "follows_a_link": _follow_a_link,
    "swallows": _swallow,
    "executes": lambda place: subprocess.run(["true"], check=False),
    "calls_a_shell": lambda place: os.system("true"),
    "becomes_another": lambda place: os.execv(sys.executable, [sys.executable, "-c", ""]),
    "connects": lambda place: socket.create_connection(("127.0.0.1", 9), timeout=1),
    "unpickles": lambda place: pickle.loads(pickle.dumps(_Malice())),
    "changes_silently": lambda place: require((place.folder / "x").exists(), "was loaded, and is another"),
}


def _fail(*words: str, code: int = 1, to: object = None) -> int:
    for word in words:
        print(word, file=to or sys.stderr)
    return code


def _wait_for_a_signal() -> int:
    while True:
        time.sleep(0.05)


def _ignore_signals() -> int:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return _wait_for_a_signal()


SPEECHES: dict[str, Callable[[], int]] = {
    "refuses": lambda: _fail("error: a line"),
    "is_silent": lambda: _fail(code=1),
    "speaks_twice": lambda: _fail("error: a line", "error: another"),
    "prints_esc": lambda: _fail("error: \x1b[31ma line"),
    "prints_esc_on_stdout": lambda: _fail("\x1b[31m", code=0, to=sys.stdout),
    "talks_long": lambda: _fail("error: " + "x" * 3000),
    "talks_much": lambda: _fail(*["warning"] * 100, "error: a line"),
    "prints_a_traceback": lambda: _fail("Traceback (most recent call last):", "error: x"),
    "warns": lambda: _fail("/x/y.py:3: UserWarning: careful", "error: x"),
    "exits_oddly": lambda: _fail("error: x", code=77),
    "command_hangs": lambda: threading.Event().wait() or 0,
    "command_writes_outside": lambda: Path("../outside/canary").write_text("no"),
    "does_not_stop": _ignore_signals,
    "stops": _wait_for_a_signal,
    "ends": lambda: 0,
    "command_raises": lambda: int("none"),
    "command_eats_memory": lambda: len(bytearray(5 << 30)),
}


def misbehaving_format(sources: Sources) -> Format:
    """Cases named after what they do."""

    def play(case: Case, place: CaseFolders) -> str:
        if case.stem in WORKS:
            with guarded(place):
                WORKS[case.stem](place)
            return "sound"
        command.run = lambda arguments: SPEECHES[case.stem]()  # in this child alone
        stop_after_s = 0.3 if case.stem in ("stops", "does_not_stop") else None
        return run_command(place, [case.stem], codes=(0, 1, 2, 143), stop_after_s=stop_after_s).word

    return Format("misbehaving", [*WORKS, *SPEECHES], play, cases_per_child=1)
