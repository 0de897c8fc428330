"""Faults under load: malformed requests, kills, full disks; nothing is answered wrongly, and memory stays."""

from __future__ import annotations

import http.client
import json
import random
import select
import signal
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving_tools import WORDS, RunningServer, connected, posted

from forks import Forks

pytestmark = [pytest.mark.reliability, pytest.mark.merge]
RunServer = Callable[..., RunningServer]


class Connection:
    """A connection that is kept open."""

    def __init__(self, url: str) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self._connection = http.client.HTTPConnection(host, int(port), timeout=60)

    def post(self, path: str, **fields: Any) -> tuple[int, Any]:
        self._connection.request("POST", path, json.dumps(fields), {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="module")
def server(forks: Forks, translator_folder: Path) -> Iterator[RunningServer]:
    server = RunningServer(forks, translator_folder)
    yield server
    code, log = server.stop()
    assert code == 0, log
    assert "Traceback" not in "".join(log)


def sentences(n: int, seed: int = 1) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 6))) for _ in range(n)]


def memory_mb(process: int) -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def mangled(draw: random.Random) -> bytes:
    """A request that was right before something happened to it."""
    body = json.dumps({"q": "the dog", "source": "en", "target": "de"}).encode()
    request = bytearray(
        b"POST /translate HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    for _ in range(draw.randint(1, 8)):
        place = draw.randrange(len(request))
        match draw.randrange(4):
            case 0:
                request[place] = draw.randrange(256)
            case 1:
                del request[place : place + draw.randint(1, 20)]
            case 2:
                request[place:place] = draw.randbytes(draw.randint(1, 40))
            case _:
                request[place:place] = request[: draw.randrange(len(request))]
        if not request:
            return b"\r\n"
    return bytes(request)


def throw(url: str, n: int, seed: int) -> Counter[str]:
    """Send mangled requests and count the kinds of answers."""
    draw, kinds = random.Random(seed), Counter[str]()
    for _ in range(n):
        answer = b""
        with suppress(OSError), connected(url) as connection:
            connection.sendall(mangled(draw))
            connection.shutdown(socket.SHUT_WR)  # what is missing will not come
            while part := connection.recv(1 << 16):
                answer += part
        is_of_other_version = answer[9:12] == b"505"  # the client's fault, whatever the first digit says
        kinds["4" if is_of_other_version else answer[9:10].decode("latin-1")] += 1
    return kinds


@pytest.mark.parametrize("n", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_malformed_requests_harm_nobody(server: RunningServer, n: int) -> None:
    connection = Connection(server.url)
    [text] = sentences(1)
    expected = connection.post("/translate", q=text, source="en", target="de")
    connection.close()
    with ThreadPoolExecutor(8) as pool:
        thrown = [pool.submit(throw, server.url, n // 8, seed) for seed in range(8)]
        kinds = sum((each.result() for each in thrown), Counter[str]())
    assert kinds["5"] == 0, kinds
    assert kinds["4"] > n // 4, kinds
    connection = Connection(server.url)
    assert connection.post("/translate", q=text, source="en", target="de") == expected
    connection.close()


@pytest.mark.merge
@pytest.mark.parametrize("n", [400, pytest.param(100_000, marks=pytest.mark.slow)])
def test_each_request_gets_its_own_answer_and_memory_stays(server: RunningServer, n: int) -> None:
    texts = sentences(50)
    connection = Connection(server.url)
    expected = {text: connection.post("/translate", q=text, source="en", target="de")[1] for text in texts}
    connection.close()

    def client(seed: int) -> int:
        draw, connection = random.Random(seed), Connection(server.url)
        n_right = 0
        for _ in range(n // 16):
            text = draw.choice(texts)
            status, answer = connection.post("/translate", q=text, source="en", target="de")
            n_right += (status, answer) == (200, expected[text])
        connection.close()
        return n_right

    sizes = []
    for part in range(2):
        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(client, range(8 * part, 8 * part + 8))) == 8 * (n // 16)
        sizes.append(memory_mb(server.process.pid))
    assert sizes[1] < 1.1 * sizes[0] + 20


@pytest.mark.slow
def test_nothing_is_answered_wrongly_when_the_server_is_killed(translator_folder: Path, run_server: RunServer) -> None:
    server = run_server(translator_folder)
    texts = sentences(20)
    connection = Connection(server.url)
    expected = {text: connection.post("/translate", q=text, source="en", target="de")[1] for text in texts}
    connection.close()
    answers, is_over = Counter[str](), threading.Event()

    def client(seed: int) -> None:
        draw, connection = random.Random(seed), Connection(server.url)
        while not is_over.is_set():
            text = draw.choice(texts)
            try:
                status, answer = connection.post("/translate", q=text, source="en", target="de")
            except (OSError, http.client.HTTPException):
                break
            answers["right" if (status, answer) == (200, expected[text]) else "wrong"] += 1
        connection.close()

    with ThreadPoolExecutor(6) as pool:
        clients = [pool.submit(client, seed) for seed in range(6)]
        time.sleep(0.4)
        server.process.send_signal(signal.SIGKILL)
        is_over.set()
        for each in clients:
            each.result()
    assert server.stop(None)[0] == -signal.SIGKILL
    assert answers["right"] > 0
    assert answers["wrong"] == 0


MANY_FILES = 2000  # fewer than the server would like to have
GET = b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n"
LARGE = posted("/alignment", source="en", target="de", q="The dog " * 200, translation="Der " * 600)


@pytest.mark.parametrize(
    "request_bytes",
    [
        GET % b"/", GET % b"/health" * 20, GET % b"/openapi.json" * 3, LARGE, LARGE * 2,
        posted("/translate", q="the dog", source="en", target="de") * 5, b"nonsense\r\n\r\n" + GET % b"/",
        b"POST /translate HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3000000\r\n\r\n",
    ],
    ids=["page", "pipelined", "large", "alignment", "alignments", "translations", "malformed", "expect"],
)  # fmt: skip
def test_clients_that_close_at_once_end_nothing(server: RunningServer, request_bytes: bytes) -> None:
    """Whatever they have sent: an answer of several writes meets a connection that is gone."""
    for _ in range(12):
        connected(server.url, request_bytes).close()
        connection = connected(server.url, request_bytes)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        connection.close()
    assert server.process.poll() is None
    connection = Connection(server.url)
    assert connection.post("/detect", q="The dog sees the cat.")[0] == 200
    connection.close()


def test_clients_that_do_not_read_are_let_go_and_do_not_delay_the_end(
    translator_folder: Path, run_server: RunServer
) -> None:
    """Of a server that was told to reload while it started, where few files may be open at first."""
    before = f"""
import transduce.serving.connections as connections, transduce.serving.models as models
import transduce.cli.verbs as verbs, transduce.serving.server
make_app = verbs.make_app
verbs.make_app = lambda *a, **k: (os.kill(os.getpid(), signal.SIGHUP), make_app(*a, **k))[1]
transduce.serving.server.SEND_BUFFER_BYTES = 4096
connections.ANSWER_TIMEOUT_S, connections.STOPPING_TIMEOUT_S = 1.0, 0.5
load = models.load_served
models.load_served = lambda *a, **k: (os.kill(os.getpid(), signal.SIGHUP), load(*a, **k))[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (64, {MANY_FILES}))
"""
    server = run_server(translator_folder, before=before)
    limits = Path(f"/proc/{server.process.pid}/limits").read_text().splitlines()
    assert next(line.split()[3] for line in limits if line.startswith("Max open files")) == str(MANY_FILES)
    for is_stopped in (False, True):
        silent = connected(server.url, GET % b"/openapi.json", receive_bytes=4096)
        if is_stopped:
            time.sleep(0.3)
            assert server.stop()[0] == 0  # within a minute
        poll = select.poll()
        poll.register(silent, select.POLLHUP)
        assert poll.poll(60_000)  # it is reset
        silent.close()


@pytest.mark.parametrize("n_files", [64, 128])
def test_idle_connections_make_room_for_new_ones(translator_folder: Path, run_server: RunServer, n_files: int) -> None:
    """Where the system allows few open files: for several that ask at once, too; the log has one line of it."""
    few = f"resource.setrlimit(resource.RLIMIT_NOFILE, ({n_files}, {n_files}))"
    server = run_server(translator_folder, before=few)
    idle = [connected(server.url) for _ in range(300)]
    connection = Connection(server.url)
    for _ in range(3):
        assert connection.post("/translate", q="the dog", source="en", target="de")[0] == 200
    connection.close()
    asking = [connected(server.url, posted("/translate", q=sentences(20), source="en", target="de")) for _ in range(8)]
    for each in asking:
        assert each.recv(1 << 16).startswith(b"HTTP/1.1 200")
    for each in (*idle, *asking):
        each.close()
    code, log = server.stop()
    assert code == 0
    assert sum("connections" in line for line in log) >= 1
    assert len(log) < 10, log


def test_nothing_of_a_malformed_request_is_logged(server: RunningServer) -> None:
    body = b"--x\r\nBnonsense"
    for _ in range(3):
        head = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=x\r\n"
        connection = connected(server.url, head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        assert connection.recv(1000).startswith(b"HTTP/1.1 400")
        connection.close()
    assert not any("boundary" in line or "character" in line for line in server.log), server.log


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /health HTTP/9.9\r\nHost: x\r\n", b"505"),
        (b"POST /detect HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"400"),
        (b"GET /health HTTP/1.1\r\nHost: x\r\nX-A: " + b"b" * 33_000 + b"\r\n", b"431"),
    ],
)
def test_what_no_proper_client_sends_is_refused_and_the_connection_closed(
    server: RunningServer, head: bytes, status: bytes
) -> None:
    connection = connected(server.url, head + b"\r\n0\r\n\r\n" + GET % b"/health")
    answer = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(1 << 16):
            answer += part
    connection.close()
    assert answer.startswith((b"HTTP/1.1 " + status, b"HTTP/1.1 400"))
    assert b"ok" not in answer


def test_short_requests_are_quick_beside_a_long_one_and_neither_changes_the_other(server: RunningServer) -> None:
    """Their time is bounded loosely here; benchmarks/fairness.py measures it."""
    connection = Connection(server.url)
    long = [f"{each}." for each in dict.fromkeys(sentences(1200, seed=2))]

    def ask(n: int) -> tuple[float, Any]:
        begun = time.monotonic()
        answer = connection.post("/translate", q=f"the dog sees {n} cats", source="en", target="de")
        return time.monotonic() - begun, answer

    def translated(texts: list[str]) -> list[str]:
        own = Connection(server.url)
        status, answer = own.post("/translate", q=texts, source="en", target="de")
        own.close()
        assert status == 200
        return list(answer["translatedText"])

    alone, expected = [ask(n) for n in range(5)], translated(long)
    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(translated, long)
        time.sleep(0.1)
        beside = [ask(n) for n in range(5)]
        assert not under_way.done()
        assert under_way.result() == expected
    connection.close()
    assert [answer for _, answer in beside] == [answer for _, answer in alone]
    assert sorted(beside)[2][0] < 10 * sorted(alone)[2][0] + 0.5


def test_clients_that_go_away_free_the_queue(server: RunningServer) -> None:
    text = " ".join(f"{each}." for each in sentences(400))
    for _ in range(10):
        with connected(server.url, posted("/translate", q=text, source="en", target="de")):
            time.sleep(0.02)
    give_up = time.monotonic() + 30
    while 'transduce_waiting_sentences{model="en-de"} 0.0' not in (metrics := httpx.get(f"{server.url}/metrics").text):
        assert time.monotonic() < give_up
        time.sleep(0.05)
    assert 'reason="cancelled"' in metrics


def test_a_full_queue_says_when_to_come_back_and_a_full_disk_stops_nothing(
    translator_folder: Path, tmp_path: Path, run_server: RunServer
) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text('usage_file = "/proc/usage.json"\n[anonymous]\n')  # cannot be written
    server = run_server(translator_folder, "--queue", 8, "--batch", 2, "--keys", keys)
    text = " ".join(f"{each}." for each in sentences(10))

    def ask(_: int) -> tuple[int, str | None]:
        answer = httpx.post(f"{server.url}/v2/translate", json={"text": [text], "target_lang": "DE"}, timeout=60)
        return answer.status_code, answer.headers.get("Retry-After")

    with ThreadPoolExecutor(12) as pool:
        results = list(pool.map(ask, range(12)))
    statuses = Counter(status for status, _ in results)
    assert statuses.keys() == {200, 429}
    assert all(retry is not None and int(retry) >= 1 for status, retry in results if status == 429)
    assert server.stop()[0] == 0
