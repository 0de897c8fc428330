"""The running server: uvicorn with limits for slow clients, signals, and models that are swapped.

SIGTERM and SIGINT: ``/ready`` answers 503; after ``drain_s`` no connection is accepted; requests under way are
answered; the process ends with exit code 0. SIGHUP reads all model folders anew, also under ``nohup``.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from transduce.errors import ConfigError
from transduce.serving.state import ServerState

__all__ = ["bound_socket", "serve"]

HEADER_TIMEOUT_S = 15.0  # from the first byte of a request, or the connection, to the end of its headers
KEEP_ALIVE_S = 30
WATCH_INTERVAL_S = 2.0
BACKLOG = 2048
MAX_CONNECTIONS = 4096
MAX_HEADER_BYTES = 32 << 10


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that closes connections whose request headers do not arrive in time."""

    _header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_headers()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._stop_watching()  # the keep-alive timer runs until the next byte

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)

    def _watch_headers(self) -> None:
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering:
            self._stop_watching()
        elif self._header_timer is None:
            self._header_timer = self.loop.call_later(HEADER_TIMEOUT_S, self._give_up)

    def _stop_watching(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


class _Server(uvicorn.Server):
    """uvicorn's server without its handling of signals."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to ``serve``."""
        yield


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; port 0 takes a free one. Raises ConfigError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except BaseException:
            bound.close()
            raise
    except (OSError, UnicodeError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigError(f"{host} port {port} cannot be used: {reason}; choose another with --port") from error
    return bound


def serve(
    app: Starlette,
    state: ServerState,
    sockets: list[socket.socket],
    *,
    log: Callable[[str], None],
    on_ready: Callable[[], None] = lambda: None,
    signals: Sequence[int] = (),
    drain_s: float = 0.0,
    shutdown_timeout_s: float | None = None,
    is_watched: bool = False,
) -> None:
    """Serve until SIGTERM or SIGINT, then finish what was accepted. A second signal ends the process at once.

    ``signals``: those that are heeded; only the main thread may. ``is_watched``: model folders that change are read
    anew without a signal.
    """
    config = uvicorn.Config(
        app, http=PatientProtocol, ws="none", lifespan="off", log_config=None, access_log=False, log_level="critical",
        server_header=False, backlog=BACKLOG, timeout_keep_alive=KEEP_ALIVE_S, limit_concurrency=MAX_CONNECTIONS,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        timeout_graceful_shutdown=None if shutdown_timeout_s is None else int(shutdown_timeout_s),
    )  # fmt: skip
    server = _Server(config)
    asyncio.run(_serve(server, state, sockets, log, on_ready, signals, drain_s, is_watched))


async def _serve(
    server: _Server,
    state: ServerState,
    sockets: list[socket.socket],
    log: Callable[[str], None],
    on_ready: Callable[[], None],
    signals: Sequence[int],
    drain_s: float,
    is_watched: bool,
) -> None:
    loop = asyncio.get_running_loop()
    background = set[asyncio.Future[Any]]()

    def run_aside(work: Callable[[], None]) -> None:
        aside = asyncio.ensure_future(asyncio.to_thread(work))
        background.add(aside)
        aside.add_done_callback(background.discard)

    def reload_models(all_models: bool) -> None:
        for served, error in state.reload_changed(all_models=all_models):
            log(f"{served.name}: " + (f"not read anew, the old model stays: {error}" if error else "read anew"))

    def stop(number: int) -> None:
        if state.is_stopping:
            os._exit(128 + number)
        state.is_stopping = True
        log(f"{signal.Signals(number).name}: finishing")
        loop.call_later(drain_s, setattr, server, "should_exit", True)

    async def watch() -> None:
        while not state.is_stopping:
            await asyncio.sleep(WATCH_INTERVAL_S)
            await asyncio.to_thread(reload_models, False)

    async def announce() -> None:
        while not server.started:
            await asyncio.sleep(0.01)
        on_ready()

    for number in signals:
        if number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop, number)
        else:
            loop.add_signal_handler(number, run_aside, lambda: reload_models(True))
    for work in (announce(), *([watch()] if is_watched else [])):
        background.add(asyncio.ensure_future(work))
    run_aside(state.detector.load)
    await server.serve(sockets)
    state.is_stopping = True
    for task in list(background):
        task.cancel()
    await asyncio.to_thread(state.close)
