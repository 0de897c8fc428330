"""The server: its APIs' clients, those that do harm, and long requests."""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from register import Setting, case, wrong
from running_server import Server


@case("split-sentences-0", models=["demo"])
def _all_sentences(setting: Setting) -> str | None:
    status, answer = setting.ask(["demo"], "/v2/translate", setting.input("split-sentences-0"))
    text = answer["translations"][0]["text"] if status == 200 else ""
    is_right = status == 400 or (text.count(".") == 3 and text.count("\n") == 1)
    return None if is_right else wrong(status, answer)


@case("double-slash", "glossary-null", models=["demo"])
def _clients(setting: Setting) -> str | None:
    slash, _ = setting.ask(["demo"], "//translate", {"q": "The dog sleeps.", "source": "en", "target": "de"})
    null, _ = setting.ask(["demo"], "/v2/translate", setting.input("glossary-null"))
    return None if slash in (200, 307, 308) and null == 200 else wrong(slash, null)


@case("language-codes", models=["demo", "chinese"])
def _codes(setting: Setting) -> str | None:
    spellings = [("demo", "EN", "de"), ("demo", "en", "DE"), ("chinese", "zh-Hans", "en"), ("chinese", "ZH", "EN"),
                 ("chinese", "zh_Hans", "en")]  # fmt: skip
    found = [
        (source, target, setting.ask([model], "/translate", {"q": "你好。", "source": source, "target": target})[0])
        for model, source, target in spellings
    ]
    return None if all(status == 200 for *_, status in found) else wrong(found)


@case("html-500", "sigpipe", models=["demo"])
def _clients_that_do_harm(setting: Setting) -> str | None:
    body = {"q": "&#" + "1" * 4301, "source": "en", "target": "de", "format": "html"}
    status, _ = setting.ask(["demo"], "/translate", body)
    for _ in range(100):
        setting.server("demo").connect(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 20).close()
    alive, _ = setting.ask(["demo"], "/health", None)
    return None if status in (200, 400) and alive == 200 else wrong(status, alive)


@case("queue-order", models=["demo"])
def _short_beside_long(setting: Setting) -> str | None:
    texts = [f"The dog {n} sleeps in the garden of the old man because the woman sings." for n in range(600)]
    with Server([setting.model("demo")], "--beam", 12, "--timeout-s", 300) as server:
        server.ask("/translate", _libre("The old dog sleeps."))
        alone = _seconds_of_short(server, lambda n: n == 20)
        with ThreadPoolExecutor(1) as pool:
            long = pool.submit(server.ask, "/translate", _libre(texts), timeout_s=300)
            time.sleep(0.5)
            beside = _seconds_of_short(server, lambda _: long.done())
    status, _ = long.result()
    is_fair = median(beside) < 3 * median(alone) + 0.1 and max(beside) < 3 * max(alone) + 1
    found = (status, len(beside), *(f"{of(times):.2f} s" for times in (alone, beside) for of in (median, max)))
    return None if status == 200 and len(beside) > 5 and is_fair else wrong(*found)


def _libre(text: str | Sequence[str]) -> dict[str, object]:
    return {"q": text, "source": "en", "target": "de"}


def _seconds_of_short(server: Server, is_over: Callable[[int], bool]) -> list[float]:
    """Send short requests, one after another; return the time of each."""
    times = list[float]()
    while not is_over(len(times)):
        begun = time.monotonic()
        status, _ = server.ask("/translate", _libre("The cat sleeps."))
        if status != 200:
            raise ValueError(f"a short request: {status}")
        times.append(time.monotonic() - begun)
        time.sleep(0.2)
    return times


REQUEST_S, ANSWER_S, STOPPING_S = 60, 30, 10  # docs/serving.md: to translate, to read an answer, to end after that


@case("slow-reader", models=["demo"])
def _answers_that_nobody_reads(setting: Setting) -> str | None:
    request = _posted("/alignment", source="en", target="de", q="The dog " * 200, translation="Der " * 400)
    n_clients, memory_mb, are_reset = 80, list[float](), list[bool]()
    with Server([setting.model("demo")], "--timeout-s", REQUEST_S) as server:
        answers_mb = n_clients * _n_read(server.connect(request)) / 1e6
        n_files = server.n_files()
        for _ in range(2):  # freed memory stays with the process, which uses it again
            silent = [server.connect(request, receive_bytes=4096) for _ in range(n_clients)]
            are_reset.append(_are_reset(silent, within_s=REQUEST_S + ANSWER_S + 5))
            memory_mb.append(server.memory_mb())
        more_files = server.n_files() - n_files
        silent = [server.connect(request, receive_bytes=4096) for _ in range(n_clients // 4)]
        time.sleep(1)
        code, ending_s = server.end(within_s=REQUEST_S + STOPPING_S)
    more_mb = memory_mb[1] - memory_mb[0]
    is_right = all(are_reset) and more_files <= 0 and code == 0
    found = f"{answers_mb=:.0f} {more_mb=:.0f} {are_reset=} {more_files=} {code=} {ending_s=:.1f}"
    return None if is_right and answers_mb > 50 and more_mb < 0.6 * answers_mb else wrong(found)


def _posted(path: str, **fields: object) -> bytes:
    """The bytes of a request after whose answer the connection ends."""
    body = json.dumps(fields).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _n_read(client: socket.socket) -> int:
    """Read an answer to its end; return its bytes."""
    client.settimeout(120)
    with client:
        return sum(map(len, iter(lambda: client.recv(1 << 20), b"")))


def _are_reset(clients: Sequence[socket.socket], *, within_s: float) -> bool:
    """Whether the server ends all connections in time, without anything being read."""
    poll, waiting = select.poll(), {client.fileno() for client in clients}
    for client in clients:
        poll.register(client, select.POLLHUP)
    until = time.monotonic() + within_s
    while waiting and time.monotonic() < until:
        for descriptor, _ in poll.poll(1000):
            poll.unregister(descriptor)
            waiting.discard(descriptor)
    for client in clients:
        client.close()
    return not waiting


@case("fd-exhaustion", models=["demo"])
def _more_connections_than_files(setting: Setting) -> str | None:
    bad = []
    for n_files, n_idle in ((64, 300), (256, 1100)):
        with Server([setting.model("demo")], open_files=n_files) as server:
            idle = [server.connect() for _ in range(n_idle)]
            request = _posted("/translate", **_libre([f"The dog {n} sleeps." for n in range(20)]))
            asking = [server.connect(request) for _ in range(8)]
            begun = time.monotonic()
            status, _ = server.ask("/health", None, timeout_s=20)
            health_s = time.monotonic() - begun
            n_answered = sum(client.recv(12) == b"HTTP/1.1 200" for client in asking)
            time.sleep(2)
            log = server.log()
            for client in (*idle, *asking):
                client.close()
            code, _ = server.end()
        if (status, n_answered, code) != (200, 8, 0) or health_s > 5 or len(log) > 1000 or "Traceback" in log:
            bad.append((n_files, status, f"{health_s:.1f} s", n_answered, code, len(log), log[-300:]))
    return wrong(*bad) if bad else None
