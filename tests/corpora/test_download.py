"""Downloads from a faulty server: partial files, range requests, retries and error messages."""

from __future__ import annotations

import hashlib
import http.server
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal

import pytest

from said import naming
from transduce.corpora import download as module
from transduce.corpora.download import ChecksumLedger, checksum_of_file, download
from transduce.errors import DataError

CONTENT = bytes(range(256)) * 4096  # 1 MiB
OTHER = CONTENT[::-1][:-1000]
SHA256 = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"

Fault = Literal["drops", "drops at once", "hangs", "hangs midway", "ignores range", "other range", 403, 404, 503]


@dataclass
class FileServer:
    """Serve ``content``, each request with the next of ``faults``; with ``forever`` the last one repeats."""

    content: bytes = CONTENT
    headers: dict[str, str] = field(default_factory=lambda: {"ETag": '"one"'})
    faults: list[Fault | None] = field(default_factory=list)
    forever: bool = False
    requests: list[dict[str, str]] = field(default_factory=list)
    end: threading.Event = field(default_factory=threading.Event)
    address: str = ""

    def next_fault(self) -> Fault | None:
        if not self.faults:
            return None
        return self.faults[0] if self.forever and len(self.faults) == 1 else self.faults.pop(0)

    @property
    def ranges(self) -> list[str | None]:
        return [request.get("Range") for request in self.requests]


class Handler(http.server.BaseHTTPRequestHandler):
    file: FileServer

    def do_GET(self) -> None:
        file = self.file
        file.requests.append(dict(self.headers))
        if self.path == "/moved":
            self._head(HTTPStatus.FOUND, {"Location": "/file", "Content-Length": "0"})
            return
        fault = file.next_fault()
        if isinstance(fault, int):
            self._head(fault, {"Content-Length": "0"})
            return
        if fault == "hangs":
            file.end.wait(5)
            return
        body = self._choose(ignores_range=fault == "ignores range", shift=7 if fault == "other range" else 0)
        if fault == "drops at once":
            return
        self.wfile.write(body[: len(body) // 2] if fault in ("drops", "hangs midway") else body)
        if fault == "hangs midway":
            file.end.wait(5)

    def _choose(self, *, ignores_range: bool, shift: int) -> bytes:
        """Send the headers of a response; return its body."""
        file, n_total = self.file, len(self.file.content)
        asked = self.headers["Range"]
        version = file.headers.get("ETag") or file.headers.get("Last-Modified")
        if ignores_range or asked is None or self.headers["If-Range"] != version:
            self._head(HTTPStatus.OK, {"Content-Length": str(n_total), **file.headers})
            return file.content
        start = int(asked.removeprefix("bytes=").removesuffix("-"))
        if start >= n_total:
            self._head(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, {"Content-Range": f"bytes */{n_total}"})
            return b""
        start += shift
        content_range = f"bytes {start}-{n_total - 1}/{n_total}"
        length = str(n_total - start)
        self._head(HTTPStatus.PARTIAL_CONTENT, {"Content-Range": content_range, "Content-Length": length})
        return file.content[start:]

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *arguments: Any) -> None:
        pass


class QuietServer(http.server.ThreadingHTTPServer):
    def handle_error(self, *arguments: Any) -> None:
        """Ignore clients that disconnect, as some tests do."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    file = FileServer()
    with QuietServer(("127.0.0.1", 0), type("FileHandler", (Handler,), {"file": file})) as http_server:
        file.address = f"http://127.0.0.1:{http_server.server_port}/file"
        thread = threading.Thread(target=http_server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield file
        file.end.set()
        http_server.shutdown()
        thread.join()


def _download(server: FileServer, path: Path, **options: Any) -> str:
    options = {"checksum": SHA256, "pauses_s": (0.0, 0.0), "timeout_s": 5.0} | options
    return download(server.address, path, **options)


def _interrupt(server: FileServer, path: Path, *, after: int = len(CONTENT) // 3) -> bytes:
    """Start a download and interrupt it as Ctrl-C does; return the partial content."""

    def progress(n_bytes: int, n_total: int | None) -> None:
        if n_bytes > after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _download(server, path, progress=progress)
    server.requests.clear()
    return _part(path).read_bytes()


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def test_a_file_comes_whole_and_leaves_nothing_else(server: FileServer, tmp_path: Path) -> None:
    steps: list[tuple[int, int | None]] = []
    path = tmp_path / "new" / "file.bin"
    sha256 = _download(server, path, progress=lambda *step: steps.append(step))
    assert f"sha256:{sha256}" == SHA256
    assert path.read_bytes() == CONTENT
    assert list(path.parent.iterdir()) == [path]
    assert steps == sorted(steps)
    assert (steps[0], steps[-1]) == ((0, len(CONTENT)), (len(CONTENT), len(CONTENT)))
    assert server.requests[0]["User-Agent"].startswith("transduce/0.")


@pytest.mark.parametrize("algorithm", ["md5", "sha256", None])
def test_a_file_that_is_there_is_verified_and_not_fetched(
    server: FileServer, tmp_path: Path, algorithm: str | None
) -> None:
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    checksum = checksum_of_file(path, algorithm) if algorithm else None
    assert f"sha256:{_download(server, path, checksum=checksum)}" == SHA256
    path.write_bytes(OTHER)
    if checksum:
        with pytest.raises(DataError, match=naming(path, re.compile(rf"{algorithm}:\w+"), checksum)):
            _download(server, path, checksum=checksum)
    assert path.read_bytes() == OTHER
    assert server.requests == []


def test_a_broken_connection_is_taken_up_where_it_broke(server: FileServer, tmp_path: Path) -> None:
    """Fail more often than there are pauses, with progress at each attempt."""
    server.faults = ["drops", "drops", "drops", "drops"]
    _download(server, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    size = len(CONTENT)
    assert server.ranges == [None, *(f"bytes={size - size // 2**n}-" for n in range(1, 5))]
    assert {request.get("If-Range") for request in server.requests[1:]} == {'"one"'}


def test_an_interrupted_download_goes_on_at_the_next_call(server: FileServer, tmp_path: Path) -> None:
    kept = _interrupt(server, tmp_path / "file")
    assert CONTENT.startswith(kept)
    assert len(kept) > len(CONTENT) // 3
    steps: list[int] = []
    _download(server, tmp_path / "file", progress=lambda n_bytes, n_total: steps.append(n_bytes))
    assert server.ranges == [f"bytes={len(kept)}-"]
    assert steps[0] == len(kept)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_server_that_ignores_ranges(server: FileServer, tmp_path: Path) -> None:
    kept = _interrupt(server, tmp_path / "file")
    server.faults = ["ignores range"]
    _download(server, tmp_path / "file")
    assert server.ranges == [f"bytes={len(kept)}-"]
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_server_that_sends_another_range(server: FileServer, tmp_path: Path) -> None:
    _interrupt(server, tmp_path / "file")
    server.faults = ["other range"]
    _download(server, tmp_path / "file")
    assert server.ranges[1:] == [None]
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_file_that_has_changed_is_begun_anew(server: FileServer, tmp_path: Path) -> None:
    _interrupt(server, tmp_path / "file")
    server.content, server.headers = OTHER, {"ETag": '"two"'}
    sha256 = _download(server, tmp_path / "file", checksum=None)
    assert (tmp_path / "file").read_bytes() == OTHER
    assert sha256 == hashlib.sha256(OTHER).hexdigest()


@pytest.mark.parametrize(
    ("headers", "if_range"),
    [
        ({"Last-Modified": "Fri, 21 Nov 2014 07:00:00 GMT"}, "Fri, 21 Nov 2014 07:00:00 GMT"),
        ({"ETag": 'W/"weak"'}, None),
        ({}, None),
    ],
)
def test_only_what_names_a_version_is_gone_on_with(
    server: FileServer, tmp_path: Path, headers: dict[str, str], if_range: str | None
) -> None:
    server.headers, server.faults = headers, ["drops"]
    _download(server, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert server.requests[1].get("If-Range") == if_range
    assert (server.ranges[1] is None) == (if_range is None)


@pytest.mark.parametrize(("surplus", "n_requests"), [(b"", 1), (b"more than there is", 2)])
def test_a_part_that_has_all_or_more(server: FileServer, tmp_path: Path, surplus: bytes, n_requests: int) -> None:
    _interrupt(server, tmp_path / "file")
    _part(tmp_path / "file").write_bytes(CONTENT + surplus)
    _download(server, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert len(server.requests) == n_requests


def test_a_part_of_another_address_is_not_gone_on_with(server: FileServer, tmp_path: Path) -> None:
    _interrupt(server, tmp_path / "file")
    download(f"{server.address}?other", tmp_path / "file", checksum=SHA256)
    assert server.ranges == [None]


def test_redirects_are_followed_with_the_range(server: FileServer, tmp_path: Path) -> None:
    moved = server.address.replace("/file", "/moved")
    server.faults = ["drops"]
    download(moved, tmp_path / "file", checksum=SHA256, pauses_s=(0.0,))
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert server.ranges == [None, None, *[f"bytes={len(CONTENT) // 2}-"] * 2]


@pytest.mark.parametrize("status", [403, 404])
def test_what_is_not_to_be_had_is_asked_for_once(server: FileServer, tmp_path: Path, status: Literal[403, 404]) -> None:
    server.faults = [status]
    with pytest.raises(DataError, match=naming("/file", status, "--from")):
        _download(server, tmp_path / "file")
    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", [503, "hangs", "hangs midway", "drops at once"])
def test_faults_that_pass(server: FileServer, tmp_path: Path, fault: Fault) -> None:
    server.faults = [fault, fault]
    _download(server, tmp_path / "file", timeout_s=0.2)
    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("fault", "got"),
    [
        (503, [503]),
        ("hangs", ["time"]),
        ("drops at once", [0, "1,048,576"]),
    ],
)
def test_faults_that_do_not(
    server: FileServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault,
    got: str,
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(module.time, "sleep", pauses.append)
    server.faults, server.forever = [fault], True
    with pytest.raises(DataError, match=naming("/file", *got, 3)):
        _download(server, tmp_path / "file", timeout_s=0.1, pauses_s=(1.0, 4.0))
    assert pauses == [1.0, 4.0]
    assert not (tmp_path / "file").exists()


def test_a_server_that_always_begins_anew_and_breaks_off_is_not_tried_for_ever(
    server: FileServer, tmp_path: Path
) -> None:
    server.headers, server.faults, server.forever = {}, ["drops"], True
    with pytest.raises(DataError, match=naming("524,288", "1,048,576", 3)):
        _download(server, tmp_path / "file")
    assert len(server.requests) == 3


def test_the_wrong_file_is_thrown_away(server: FileServer, tmp_path: Path) -> None:
    server.content = OTHER
    with pytest.raises(DataError, match=naming(re.compile(r"sha256:\w+"), SHA256, "--from")):
        _download(server, tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_addresses_that_lead_nowhere(server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=naming("http", "https", tmp_path.as_uri())):
        download(tmp_path.as_uri(), tmp_path / "file", checksum=None)
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as taken:
        free_port = taken.server_port
    with pytest.raises(DataError, match=naming("refused", free_port, "--from")):
        download(f"http://127.0.0.1:{free_port}/file", tmp_path / "file", checksum=None)


def test_the_ledger(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"text")
    ledger = ChecksumLedger(tmp_path / "new" / "checksums.json")
    ledger.compare("http://a/file", file, "aa")
    ledger.record("http://a/file", file, "aa")
    ledger.record("http://b/file", file, "bb")
    again = ChecksumLedger(ledger.path)
    again.compare("http://a/file", file, "aa")
    again.compare("http://c/file", file, "cc")
    with pytest.raises(DataError, match=naming(file, "sha256:aa", "sha256:bb", ledger.path)):
        again.compare("http://b/file", file, "aa")
    assert '"bytes": 4' in ledger.path.read_text()
