"""Limits of a case: memory, time, files, programs, network. For a process that exits after it.

Python's audit hooks only see actions of Python code. Actions of native libraries are detected by ``lanes.py``, which
compares files outside.
"""

from __future__ import annotations

import errno
import faulthandler
import os
import resource
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from fuzzing.cases import CaseFolders, Fault

__all__ = ["ROOM_BYTES", "NotAllowed", "guarded"]

ROOM_BYTES = 4 << 30  # beside what the process has already
DEVICES = frozenset(f"/dev/{name}" for name in ("null", "zero", "full", "tty"))
# Programs that transduce runs: for packages of Debian (corpora/debian_packages.py), and nothing else.
PROGRAMS = frozenset({"dpkg-deb", "apt-get"})
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

# Events of changes to files: the places, among their arguments, of a path and of the folder that it is relative to.
CHANGES: dict[str, tuple[tuple[int, int | None], ...]] = {
    "os.rename": ((0, 2), (1, 3)),
    "os.remove": ((0, 1),),
    "os.rmdir": ((0, 1),),
    "os.mkdir": ((0, 2),),
    "os.symlink": ((1, 2),),
    "os.link": ((1, 3),),
    "os.truncate": ((0, None),),
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
    "os.utime": ((0, 3),),
    "os.setxattr": ((0, None),),
}
FOLLOWING = frozenset({"os.truncate", "os.chmod", "os.chown", "os.utime", "os.setxattr"})
STARTS = frozenset({"os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "pty.spawn"})
CONNECTIONS = frozenset({"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"})


class NotAllowed(BaseException):
    """Raised inside transduce on a forbidden action; a BaseException, so that ``except Exception`` does not hide it."""


@dataclass
class _Guard:
    """The limits that are active at the moment."""

    allowed: tuple[str, ...]  # folders
    may_connect: bool
    broken: list[Fault] = field(default_factory=list)

    def refuse(self, kind: str, detail: str) -> None:
        fault = Fault(kind, detail[:500])
        self.broken.append(fault)
        raise NotAllowed(str(fault))

    def require_inside(self, event: str, path: Any, base: int | None, *, follows: bool) -> None:
        if isinstance(path, int):
            path, base, follows = f"/proc/self/fd/{path}", None, True
        full = os.fsdecode(path)
        if base is not None and base >= 0:
            full = os.path.join(os.readlink(f"/proc/self/fd/{base}"), full)
        if "\0" in full:
            return  # the system refuses it
        if follows:
            real = os.path.realpath(full)
        else:
            head, tail = os.path.split(os.path.normpath(full) if full.endswith("/") else full)
            real = os.path.join(os.path.realpath(head), tail)
        if real in DEVICES or any(real == folder or real.startswith(folder + "/") for folder in self.allowed):
            return
        if event == "os.mkdir" and os.path.lexists(real):
            return  # the system refuses that, too
        if real.startswith(("/proc/self/fd/", f"/proc/{os.getpid()}/fd/")):
            return  # a pipe that is open already
        self.refuse("wrote outside", f"{event} {full!r}, which is {real!r}")


_guard: _Guard | None = None
_is_hooked = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    guard = _guard
    if guard is None:
        return
    if event == "open":
        path, mode, flags = arguments
        writes = isinstance(flags, int) and flags & WRITING
        if (writes or (isinstance(mode, str) and set(mode) & set("wax+"))) and not isinstance(path, int):
            is_strict = isinstance(flags, int) and bool(flags & (os.O_NOFOLLOW | os.O_EXCL))
            guard.require_inside(event, path, None, follows=not is_strict)
    elif event in CHANGES:
        for place, base in CHANGES[event]:
            folder = arguments[base] if base is not None and base < len(arguments) else None
            guard.require_inside(event, arguments[place], folder, follows=event in FOLLOWING)
    elif event in STARTS or (event == "subprocess.Popen" and os.path.basename(_program(arguments)) not in PROGRAMS):
        guard.refuse("started a program", f"{event} {arguments!r}")
    elif event in CONNECTIONS:
        if guard.may_connect:
            raise OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH))
        guard.refuse("used the network", f"{event} {arguments!r}")
    elif event == "pickle.find_class":
        guard.refuse("read a pickle", f"{arguments!r}")


def _program(arguments: tuple[Any, ...]) -> str:
    executable, words = arguments[0], arguments[1]
    return os.fsdecode(executable or (words if isinstance(words, str | bytes) else words[0]))


@contextmanager
def guarded(place: CaseFolders, *, may_connect: bool = False, last_words: TextIO | None = None) -> Iterator[None]:
    """Apply the limits within the block; raise Fault for each violation.

    Only the folders of the case may be written to. With ``may_connect``, connecting fails but is not a fault.
    A hang ends the process, with a traceback in ``last_words``.
    """
    global _guard, _is_hooked
    if not _is_hooked:
        sys.addaudithook(_hook)
        _is_hooked = True
    socket.setdefaulttimeout(place.hang_s)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + ROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.dump_traceback_later(place.hang_s, exit=True, file=last_words or sys.stderr)
    guard = _guard = _Guard(tuple(os.path.realpath(folder) for folder in (place.folder, place.streams)), may_connect)
    try:
        yield
    except BaseException:
        if guard.broken:
            raise guard.broken[0] from None
        raise
    finally:
        _guard = None
        faulthandler.cancel_dump_traceback_later()
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    if guard.broken:
        raise guard.broken[0]
