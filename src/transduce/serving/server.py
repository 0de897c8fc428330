"""The running server: uvicorn with signals, and models that are swapped.

SIGTERM and SIGINT: ``/ready`` answers 503; after ``drain_s`` no connection is accepted; requests under way are
answered; the process ends with exit code 0. SIGHUP reads all model folders anew, also under ``nohup``.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette

from transduce.errors import ConfigError
from transduce.serving import connections
from transduce.serving.connections import Connections, PatientProtocol, connection_limit
from transduce.serving.front import MAX_HEADER_BYTES
from transduce.serving.state import ServerState

__all__ = ["bound_socket", "serve"]

KEEP_ALIVE_S = 30
WATCH_INTERVAL_S = 2.0
UNREAD_INTERVAL_S = 1.0
ACCEPTED_TOGETHER = 8  # connections: a few times as many may be open beyond the limit
BACKLOG = 2048  # connections that wait to be accepted
SEND_BUFFER_BYTES = 256 << 10  # of a connection, in the system; the rest of an answer is seen to be unread here
LAST_ANSWERS_S = 10  # for reading the answers of the last requests, when the server stops
TALKATIVE = ("asyncio", "python_multipart")  # libraries that log what clients send


class _Server(uvicorn.Server):
    """uvicorn's server without its handling of signals."""

    server_state: Connections

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
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
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
    is_watched: bool = False,
) -> None:
    """Serve until SIGTERM or SIGINT, then finish what was accepted. A second signal ends the process at once.

    ``signals``: those that are heeded; only the main thread may. ``is_watched``: model folders that change are read
    anew without a signal.
    """
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    limit = connection_limit()
    config = uvicorn.Config(
        app, http=PatientProtocol, ws="none", lifespan="off", log_config=None, access_log=False, log_level="critical",
        server_header=False, backlog=ACCEPTED_TOGETHER, timeout_keep_alive=KEEP_ALIVE_S, limit_concurrency=None,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        timeout_graceful_shutdown=int(state.request_timeout_s) + LAST_ANSWERS_S,
    )  # fmt: skip
    server = _Server(config)
    server.server_state = Connections(limit, log)
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
        for each in sockets:
            each.listen(BACKLOG)  # uvicorn has one number for both
        run_aside(lambda: reload_models(False))  # what has changed since it was read
        on_ready()

    async def end_unread() -> None:
        while True:
            await asyncio.sleep(UNREAD_INTERVAL_S)
            timeout_s = connections.STOPPING_TIMEOUT_S if server.should_exit else connections.ANSWER_TIMEOUT_S
            server.server_state.end_unread(timeout_s)

    for number in signals:
        if number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop, number)
        else:
            loop.add_signal_handler(number, run_aside, lambda: reload_models(True))
    loop.set_exception_handler(_said_once(log))
    for work in (announce(), end_unread(), *([watch()] if is_watched else [])):
        background.add(asyncio.ensure_future(work))
    run_aside(state.detector.load)
    await server.serve(sockets)
    state.is_stopping = True
    for task in list(background):
        task.cancel()
    await asyncio.to_thread(state.close)


def _said_once(log: Callable[[str], None]) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]:
    """Return a handler of errors in the event loop that logs each kind once, in one line without traceback."""
    said = set[str]()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        line = f"warning: {context['message']}" + (f" ({type(error).__name__})" if error is not None else "")
        if line not in said:
            said.add(line)
            log(line)

    return handle
