"""Connections of the server, and the end of those that take room and give nothing: HTTP/1.1 with limits of time.

A connection is closed if the headers of its request do not arrive in time, and if its answer is not read. There are as
many as the limits of the system allow; beyond that, the one that has been idle longest makes room.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState as UvicornState

from transduce.serving.document_store import MAX_KEPT

__all__ = ["Connections", "PatientProtocol", "connection_limit"]

HEADER_TIMEOUT_S = 15.0  # from the first byte of a request, or the connection, to the end of its headers
ANSWER_TIMEOUT_S = 30.0  # in which a client reads PROGRESS_BYTES of its answer, or the rest
STOPPING_TIMEOUT_S = 5.0  # instead, when the server stops
PROGRESS_BYTES = 64 << 10
MAX_UNREAD_BYTES = 256 << 20  # of all answers together
MAX_CONNECTIONS = 4096
SPARE_FILES = 64 + MAX_KEPT  # for what is no connection: documents, models read anew, connections not yet counted


class Connections(UvicornState):
    """What the connections of a server share."""

    def __init__(self, limit: int, log: Callable[[str], None]) -> None:
        super().__init__()
        self._limit, self._log, self._has_logged = limit, log, False

    def make_room(self, new: PatientProtocol) -> None:
        """If there are too many connections, close the one that has been idle longest, else the new one."""
        if len(self.connections) <= self._limit:
            return
        opened = [each for each in self._all() if not each.transport.is_closing()]
        if len(opened) <= self._limit:
            return
        if not self._has_logged:
            self._log(f"warning: {self._limit:,} connections are open; those that are idle are closed for new ones")
            self._has_logged = True
        idle = [each for each in opened if each.is_idle and each is not new]
        min(idle, key=lambda each: each.idle_since, default=new).transport.close()

    def end_unread(self, timeout_s: float) -> None:
        """End connections whose answers are not read, and the slowest of those that hold too much memory together."""
        now, unread = time.monotonic(), list[PatientProtocol]()
        for each in self._all():
            each.note_progress(now)
            if each.n_unread:
                unread.append(each)
        n_bytes = sum(each.n_unread for each in unread)
        for each in sorted(unread, key=lambda each: each.unread_since):
            if now - each.unread_since > timeout_s or n_bytes > MAX_UNREAD_BYTES:
                n_bytes -= each.n_unread
                each.reset()

    def _all(self) -> list[PatientProtocol]:
        return [each for each in self.connections if isinstance(each, PatientProtocol)]


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that closes connections whose request headers do not arrive in time."""

    _header_timer: asyncio.TimerHandle | None = None
    idle_since = 0.0
    n_unread = 0  # bytes of answers, when it was looked last
    unread_since = 0.0  # when the client began to read them, or has read PROGRESS_BYTES

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    def note_progress(self, now: float) -> None:
        """Look how much of the answers has not been read."""
        n_unread = self.transport.get_write_buffer_size()
        if not self.n_unread or n_unread <= self.n_unread - PROGRESS_BYTES:
            self.n_unread, self.unread_since = n_unread, now
        elif not n_unread or n_unread > self.n_unread:
            self.n_unread = n_unread

    def reset(self) -> None:
        """End the connection at once; what has not been read is dropped, also by the system."""
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def connection_made(self, transport: Any) -> None:
        """Begin."""
        super().connection_made(transport)
        self.idle_since = time.monotonic()
        self._watch_headers()
        assert isinstance(self.server_state, Connections)
        self.server_state.make_room(self)

    def data_received(self, data: bytes) -> None:
        """Take what a client has sent."""
        super().data_received(data)
        self._watch_headers()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self.idle_since = time.monotonic()
        self._stop_watching()  # the keep-alive timer runs until the next byte

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._stop_watching()
        super().connection_lost(exc)

    def _watch_headers(self) -> None:
        if not self.is_idle:
            self._stop_watching()
        elif self._header_timer is None:
            self._header_timer = self.loop.call_later(HEADER_TIMEOUT_S, self.transport.close)

    def _stop_watching(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None


def connection_limit() -> int:
    """Raise the limit of open files as far as needed and allowed; return how many connections it has room for."""
    try:
        import resource
    except ImportError:  # Windows
        return MAX_CONNECTIONS
    n_open = _n_open_files()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    infinite, wanted = resource.RLIM_INFINITY, MAX_CONNECTIONS + n_open + SPARE_FILES
    if hard != infinite:
        wanted = min(hard, wanted)
    if soft != infinite and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return MAX_CONNECTIONS if soft == infinite else _most_connections(soft - n_open)


def _most_connections(n_free: int) -> int:
    """Return how many of the files that may still be opened are for connections: all but some, at least half.

    >>> _most_connections(1000), _most_connections(40), _most_connections(10_000)
    (736, 20, 4096)
    """
    return max(1, min(MAX_CONNECTIONS, n_free - min(SPARE_FILES, n_free // 2)))


def _n_open_files() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:  # another system
        return SPARE_FILES
