"""A server of the command line in a process of its own, as its clients and its administrator see it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

TRANSDUCE = Path(sys.executable).with_name("transduce")


class Server:
    """``transduce serve`` with some models on a free port. Raises ValueError if it does not start.

    ``open_files``: the most that its process may have, by ``ulimit -n``.
    """

    def __init__(self, models: Sequence[Path], *options: object, open_files: int | None = None) -> None:
        command = [TRANSDUCE, "serve", *models, "--port", 0, *options]
        if open_files is not None:
            command = ["sh", "-c", 'ulimit -n "$0" && exec "$@"', open_files, *command]
        self._folder = tempfile.TemporaryDirectory()
        self._log = Path(self._folder.name) / "log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            raise ValueError(f"the server did not start: {self.log()}")

    def ask(self, path: str, body: object, *, timeout_s: float = 120) -> tuple[int, Any]:
        """Post a JSON body, or get if it is None; return status and answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            return error.code, json.loads(text) if text.startswith("{") else text

    def connect(self, request: bytes = b"", *, receive_bytes: int | None = None) -> socket.socket:
        """Open a connection and send the bytes of a request; ``receive_bytes``: room for its answer in the system."""
        host, _, port = self.url.removeprefix("http://").partition(":")
        client = socket.socket()
        if receive_bytes is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        client.settimeout(20)
        client.connect((host, int(port)))
        client.sendall(request)
        return client

    def log(self) -> str:
        """What it has written to stderr so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def memory_mb(self) -> float:
        """Resident memory of its process."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def n_files(self) -> int:
        """Files and connections that its process has open."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def end(self, *, within_s: float = 120) -> tuple[int, float]:
        """End it by SIGTERM, in the end by SIGKILL; return its exit code and the seconds that it took."""
        begun = time.monotonic()
        self.process.terminate()
        try:
            code = self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        return code, time.monotonic() - begun

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._folder.cleanup()
