"""``transduce serve`` as a process: clients that others wrote, signals, slow and broken connections."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from serving_tools import RunningServer, connected, make_state, posted

from forks import Forks
from said import says
from transduce.inference import Translator
from transduce.serving import server as server_module
from transduce.serving.app import make_app
from transduce.serving.server import bound_socket, serve

RunServer = Callable[..., RunningServer]
KEYS = '[anonymous]\ncharacters = 20000\n[[key]]\nname = "a"\nkey = "secret:fx"\ncharacters_per_month = 2000\n'


@pytest.fixture(scope="module")
def running(
    forks: Forks, translator_folder: Path, language_model_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    keys = tmp_path_factory.mktemp("keys") / "keys.toml"
    keys.write_text(KEYS)
    server = RunningServer(forks, translator_folder, language_model_folder, "--keys", keys)
    yield server
    code, log = server.stop()
    assert code == 0, log
    assert not any("Traceback" in line or "secret" in line or "A cat" in line for line in log)


def ask(url: str, path: str, **fields: Any) -> Any:
    request = urllib.request.Request(
        url + path, json.dumps(fields).encode() if fields else None, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def test_the_client_of_deepl(running: RunningServer, translator_folder: Path) -> None:
    deepl = pytest.importorskip("deepl")
    expected = Translator.load(translator_folder).translate(["A cat", "The dog sleeps."])
    translator = deepl.Translator("secret:fx", server_url=running.url)
    results = translator.translate_text(["A cat", "The dog sleeps."], source_lang="EN", target_lang="DE")
    assert [result.text for result in results] == expected
    one = translator.translate_text("The dog sees the cat.", target_lang="DE")
    assert one.detected_source_lang == "EN"
    assert one.billed_characters == len("The dog sees the cat.")
    html = translator.translate_text("<p>A <b>cat</b></p>", target_lang="DE", tag_handling="html").text
    assert sorted(re.findall("<[^>]*>", html)) == sorted(["<p>", "<b>", "</b>", "</p>"])
    xml = translator.translate_text(
        'A <x id="1">cat</x> <g>dog</g>',
        target_lang="DE",
        tag_handling="xml",
        ignore_tags=["x"],
        split_sentences=deepl.SplitSentences.OFF,
    ).text
    assert xml.count('<x id="1">cat</x>') == xml.count("<g>") == xml.count("</g>") == 1
    assert [(each.code, each.name) for each in translator.get_source_languages()] == [("EN", "English")]
    assert [each.code for each in translator.get_target_languages()] == ["DE"]
    assert [(each.source_lang, each.target_lang) for each in translator.get_glossary_languages()] == [("en", "de")]
    usage = translator.get_usage()
    assert 0 < usage.character.count < usage.character.limit == 2000
    with pytest.raises(deepl.DeepLException, match="target_lang"):
        translator.translate_text("A cat", target_lang="FR")
    with pytest.raises(deepl.QuotaExceededException):
        translator.translate_text("A cat. " * 280, target_lang="DE")
    with pytest.raises(deepl.AuthorizationException):
        deepl.Translator("wrong:fx", server_url=running.url).get_usage()


def test_the_command_of_deepl(running: RunningServer, translator_folder: Path) -> None:
    pytest.importorskip("deepl")
    [expected] = Translator.load(translator_folder).translate(["A cat"])
    command = [sys.executable, "-m", "deepl", "--auth-key", "secret:fx", "--server-url", running.url]
    done = subprocess.run([*command, "text", "--to", "DE", "A cat"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{expected}\n"), done.stderr
    done = subprocess.run([*command, "languages"], capture_output=True, text=True, check=True)
    assert "EN: English" in done.stdout


def test_the_client_of_libretranslate(running: RunningServer, translator_folder: Path) -> None:
    libretranslatepy = pytest.importorskip("libretranslatepy")
    [expected] = Translator.load(translator_folder).translate(["A cat"])
    client = libretranslatepy.LibreTranslateAPI(running.url)
    assert client.translate("A cat", "en", "de") == expected
    assert client.detect("The dog sees the cat.")[0]["language"] == "en"
    assert {each["code"]: each["targets"] for each in client.languages()} == {"de": [], "en": ["de"]}
    with pytest.raises(urllib.error.HTTPError) as refused:
        client.translate("A cat", "en", "zz")
    assert json.loads(refused.value.read()) == {"error": "zz is not supported"}
    refused.value.close()


def test_requests_are_done_together(running: RunningServer) -> None:
    texts = [f"The {word} cat sleeps" for word in ("old", "young", "red")] * 20
    alone = {
        text: ask(running.url, "/translate", q=text, source="en", target="de")["translatedText"] for text in set(texts)
    }
    with ThreadPoolExecutor(30) as pool:
        asked = [pool.submit(ask, running.url, "/translate", q=text, source="en", target="de") for text in texts]
        assert [each.result()["translatedText"] for each in asked] == [alone[text] for text in texts]
    with urllib.request.urlopen(f"{running.url}/metrics") as answer:
        metrics = answer.read().decode()
    n_batches = float(re.search(r'transduce_batch_sentences_count\{model="en-de"\} (\S+)', metrics)[1])  # type: ignore[index]
    n_sentences = float(re.search(r'transduce_sentences_total\{model="en-de"\} (\S+)', metrics)[1])  # type: ignore[index]
    assert n_sentences > 1.5 * n_batches


def test_a_reader_who_goes_away_ends_the_generation(running: RunningServer) -> None:
    with connected(running.url, posted("/generate", prompt="the", max_tokens=4096)) as connection:
        received = b""
        while received.count(b"data: ") < 3:
            received += connection.recv(1 << 16)
    begun = time.monotonic()
    assert ask(running.url, "/generate", prompt="the", max_tokens=1, stream=False)["tokens"] == 1
    assert time.monotonic() - begun < 3  # all tokens of the first would take longer


def raw(url: str, *parts: bytes, pause_s: float = 0.0) -> bytes:
    """What the server answers to bytes, until it closes the connection."""
    with connected(url) as connection:
        answer = b""
        try:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause_s)
            while received := connection.recv(1 << 16):
                answer += received
        except (ConnectionResetError, BrokenPipeError):
            pass
        return answer


def test_a_huge_body_is_refused_before_it_has_arrived(running: RunningServer) -> None:
    head = (
        b"POST /v2/translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000000\r\n\r\n"
    )
    answer = raw(running.url, head)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b'"message"' in answer
    chunked = b"POST /translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = raw(running.url, chunked, *[b"100000\r\n" + b"x" * 0x100000 + b"\r\n"] * 4)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 413")
    assert ask(running.url, "/health") == {"status": "ok"}


def test_a_half_sent_body_does_not_reach_the_model(running: RunningServer) -> None:
    head = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n"
    for _ in range(20):
        connected(running.url, head + b'{"q": "A cat').close()
    assert ask(running.url, "/health") == {"status": "ok"}


@pytest.fixture
def in_thread(translator_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server in a thread of this process, impatient with slow headers."""
    monkeypatch.setattr("transduce.serving.connections.HEADER_TIMEOUT_S", 0.3)
    monkeypatch.setattr("transduce.serving.http.BODY_TIMEOUT_S", 0.3)
    monkeypatch.setattr(uvicorn.Server, "install_signal_handlers", lambda self: None, raising=False)
    servers = list[uvicorn.Server]()
    monkeypatch.setattr(
        server_module,
        "_Server",
        lambda config: servers.append(_OfThread(config)) or servers[-1],  # type: ignore[func-returns-value]
    )
    state, bound, is_ready = make_state(translator_folder), bound_socket("127.0.0.1", 0), threading.Event()
    thread = threading.Thread(
        target=serve, args=(make_app(state), state, [bound]), kwargs={"log": print, "on_ready": is_ready.set}
    )
    port = bound.getsockname()[1]
    thread.start()
    assert is_ready.wait(10)
    yield f"http://127.0.0.1:{port}"
    servers[0].should_exit = True
    thread.join(10)
    assert not thread.is_alive()


_OfThread = server_module._Server


def test_slow_clients_are_let_go(in_thread: str) -> None:
    begun = time.monotonic()
    assert raw(in_thread) == b""  # says nothing
    assert raw(in_thread, b"GET /health HTTP/1.1\r\n", b"X-A: b\r\n", pause_s=0.1) == b""  # never ends its headers
    slow = raw(in_thread, b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", b"{", pause_s=0.1)
    assert slow.startswith(b"HTTP/1.1 408")
    assert time.monotonic() - begun < 10
    kept = raw(in_thread, *[b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"] * 3, b"GET /health HTTP/1.1\r\n", pause_s=0.05)
    assert kept.count(b'{"status":"ok"}') == 3


@pytest.mark.reliability
def test_no_signal_loses_a_request(translator_folder: Path, run_server: RunServer) -> None:
    server = run_server(translator_folder, "--drain-s", "0.3")
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask, server.url, "/translate", q="A cat", source="en", target="de") for _ in range(40)]
        server.process.send_signal(signal.SIGHUP)
        assert len({each.result()["translatedText"] for each in asked}) == 1
    server.wait_for_log("en-de: read anew")
    text = "The dog sleeps. " * 40
    expected = ask(server.url, "/translate", q=text, source="en", target="de")
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask, server.url, "/translate", q=text, source="en", target="de") for _ in range(8)]
        time.sleep(0.05)
        server.process.send_signal(signal.SIGTERM)
        server.wait_for_log("SIGTERM")
        with pytest.raises(urllib.error.HTTPError, match="503") as refused:
            ask(server.url, "/ready")
        refused.value.close()
        assert [each.result() for each in asked] == [expected] * 8
    code, log = server.stop(None)
    assert code == 0, log
    assert "Traceback" not in "".join(log)


@pytest.mark.reliability
def test_in_the_background_of_a_script_it_heeds_sighup_and_sigterm(
    translator_folder: Path, run_server: RunServer
) -> None:
    """Under nohup SIGHUP ends nothing anyway, so it reads the models anew; SIGINT stays ignored."""
    ignore = "signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    server = run_server(translator_folder, before=ignore)
    server.process.send_signal(signal.SIGINT)
    server.process.send_signal(signal.SIGHUP)
    server.wait_for_log("en-de: read anew")
    code, log = server.stop()
    assert (code, [line.strip() for line in log if "finishing" in line]) == (0, ["SIGTERM: finishing"])


def test_the_missing_extra_is_named(
    transduce: Callable[..., Any], translator_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)  # type: ignore[arg-type]
    refused = transduce("serve", translator_folder)
    assert refused.code == 1
    assert says(refused.err, "uvicorn", "transduce[serve]")


def test_mistakes_are_one_line(transduce: Callable[..., Any], translator_folder: Path, tmp_path: Path) -> None:
    taken = bound_socket("127.0.0.1", 0)
    taken.listen()
    port = taken.getsockname()[1]
    refused = transduce("serve", translator_folder, "--port", port)
    taken.close()
    assert refused.code == 1
    assert says(refused.err, str(port), "--port")
    assert transduce("serve", tmp_path).code == 1
    assert transduce("serve", translator_folder, "--host", "no.such.host.invalid").code == 1
    assert transduce("serve", translator_folder, "--keys", tmp_path / "none.toml").code == 1
    for wrong, fact in (
        (["--terms-hard"], "--terms"),
        (["--terms", tmp_path / "none.tsv"], "none.tsv"),
        (["--memory", tmp_path / "none.tm"], "none.tm"),
        (["--glossaries", translator_folder / "config.json"], "config.json"),
    ):
        refused = transduce("serve", translator_folder, *wrong)
        assert (refused.code, says(refused.err, fact)) == (1, True)
    contrary = transduce("serve", translator_folder, "--min-length", 9, "--max-length", 3)
    assert (contrary.code, len(contrary.err.splitlines())) == (1, 1)
    assert says(contrary.err, "min_length", "max_length", 9, 3)


def test_limits_of_translations_are_those_of_the_server(run_server: RunServer, translator_folder: Path) -> None:
    server, translator = run_server(translator_folder, "--max-length", 2), Translator.load(translator_folder)
    [limited], [free] = translator.translate(["A cat"], max_length=2), translator.translate(["A cat"])
    assert ask(server.url, "/translate", q="A cat", source="en", target="de") == {"translatedText": limited}
    assert limited != free


def test_the_client_of_deepl_for_node(running: RunningServer) -> None:
    """Where ``npm install deepl-node`` was run in a folder that NODE_PATH names."""
    import shutil

    node = shutil.which("node")
    program = """
    const deepl = require("deepl-node");
    const translator = new deepl.Translator("secret:fx", { serverUrl: process.argv[1] });
    (async () => {
      const one = await translator.translateText("A <b>cat</b>", null, "de", { tagHandling: "html" });
      const languages = await translator.getTargetLanguages();
      const usage = await translator.getUsage();
      console.log(JSON.stringify([one.text, languages.map((each) => each.code), usage.character.limit]));
    })();
    """
    found = (
        node and subprocess.run([node, "-e", 'require("deepl-node")'], capture_output=True, check=False).returncode == 0
    )
    if not found:
        pytest.skip("no deepl-node on this machine")
    done = subprocess.run([str(node), "-e", program, running.url], capture_output=True, text=True, check=True)
    text, languages, limit = json.loads(done.stdout)
    assert text.count("<b>") == text.count("</b>") == 1
    assert (languages, limit) == (["de"], 2000)
