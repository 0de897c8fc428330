"""Documents over HTTP: as LibreTranslate's page and DeepL's clients send them, their limits, and what is kept."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving_tools import RunningServer, make_state, serving
from starlette.testclient import TestClient

from said import says
from transduce.inference import Translator
from transduce.serving import document_store, documents
from transduce.serving.access import read_access
from transduce.serving.app import make_app
from transduce.serving.document_jobs import MAX_JOBS, DocumentJobs
from transduce.serving.document_store import DocumentStore
from transduce.serving.http import ApiError
from transduce.serving.openapi import openapi

PAGE = b"<html><p>the <b>dog</b> sees the cat</p>\r\n<p>the dog</p></html>"
DIRECTION = {"source": "en", "target": "de"}
DEEPL = {"source_lang": "EN", "target_lang": "DE"}


@pytest.fixture(scope="module")
def expected(translator_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The page as the library translates it."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "page.html").write_bytes(PAGE)
    Translator.load(translator_folder).translate_file(folder / "page.html", folder / "out.html")
    return (folder / "out.html").read_bytes()


def sent(client: TestClient, data: bytes = PAGE, name: str = "page.html", **fields: str) -> Any:
    return client.post("/translate_file", files={"file": (name, data)}, data=DIRECTION | fields)


def test_as_the_page_of_libretranslate(client: TestClient, expected: bytes) -> None:
    settings = client.get("/frontend/settings").json()
    assert settings["filesTranslation"]
    assert {".txt", ".html"} <= set(settings["supportedFilesFormat"])
    answer = sent(client, api_key="")
    assert answer.status_code == 200, answer.text
    url = answer.json()["translatedFileUrl"]
    assert url.startswith("http://testserver/download_file/")
    assert url.endswith(".page.de.html")
    fetched = client.get(url)
    assert fetched.content == expected
    assert 'lang="de"' in fetched.text
    assert fetched.headers["content-disposition"] == 'attachment; filename="page.de.html"'
    assert fetched.headers["content-type"].startswith("text/html")
    assert (fetched.headers["x-content-type-options"], fetched.headers["content-security-policy"]) == (
        "nosniff", "sandbox",
    )  # fmt: skip
    recognised = client.get(sent(client, source="auto").json()["translatedFileUrl"])
    assert recognised.content == expected
    same = client.get(
        sent(client, b"<html><p>Die Katze sieht den alten Hund nicht", source="de").json()["translatedFileUrl"]
    )
    assert same.text == "<html><p>Die Katze sieht den alten Hund nicht"


def test_from_a_page_of_another_host_and_behind_a_prefix(translator_folder: Path, expected: bytes) -> None:
    """As LibreTranslate's own page sends it, and follows the address in the answer."""
    state, origin = make_state(translator_folder), {"Origin": "https://page.example"}
    try:
        with TestClient(make_app(state, prefix="/mt"), base_url="https://server.example") as client:
            asked = {**origin, "Access-Control-Request-Method": "POST"}
            assert client.options("/mt/translate_file", headers=asked).status_code == 200
            fields = DIRECTION | {"api_key": "", "secret": "ABC123"}
            answer = client.post("/mt/translate_file", files={"file": ("page.html", PAGE)}, data=fields, headers=origin)
            url = answer.json()["translatedFileUrl"]
            assert url.startswith("https://server.example/mt/download_file/")
            fetched = client.get(url, headers=origin)
            assert fetched.content == expected
            assert {each.headers["access-control-allow-origin"] for each in (answer, fetched)} == {"*"}
            assert client.head(url).headers["content-length"] == str(len(expected))
    finally:
        state.close()


@pytest.mark.parametrize("data", [b"", b"2024\r\n", "\ufeff\n".encode()], ids=str)
def test_what_has_no_words_comes_back(client: TestClient, data: bytes) -> None:
    for source in ("en", "auto"):
        answer = sent(client, data, "a.txt", source=source)
        assert answer.status_code == 200, answer.text
        assert client.get(answer.json()["translatedFileUrl"]).content == data


def test_as_a_client_of_deepl(client: TestClient, expected: bytes) -> None:
    headers = {"Authorization": "DeepL-Auth-Key any"}
    form = DEEPL | {"formality": "default"}
    handle = client.post("/v2/document", files={"file": ("page.html", PAGE)}, data=form, headers=headers).json()
    path, key = f"/v2/document/{handle['document_id']}", {"document_key": handle["document_key"]}
    give_up = time.monotonic() + 60
    while (status := client.post(path, json=key, headers=headers).json())["status"] == "translating":
        assert status == {"document_id": handle["document_id"], "status": "translating", "seconds_remaining": 2}
        assert time.monotonic() < give_up
        time.sleep(0.02)
    assert status["status"] == "done"
    assert status["billed_characters"] == len("the dog sees the cat") + len("the dog")
    assert client.post(f"{path}/result", json=key, headers=headers).content == expected
    for wrong in (client.post(path, json={"document_key": "x"}), client.post("/v2/document/x/result", json=key)):
        assert wrong.status_code == 404
        assert "document" in wrong.json()["message"]
    assert client.post(path).status_code == 400


@pytest.mark.parametrize(
    ("data", "name", "fields", "status", "facts"),
    [
        (b"\0\1", "a.bin", {}, 400, ["a.bin", ".html"]),
        (b"<a>", "a.xml", {}, 400, ["a.xml", "line 1"]),
        (PAGE, "a.html", {"target": "xx"}, 400, ["xx"]),
        (PAGE, "a.html", {"target": ""}, 400, ["target"]),
    ],
    ids=str,
)
def test_what_is_refused(
    client: TestClient, data: bytes, name: str, fields: dict[str, str], status: int, facts: list[object]
) -> None:
    answer = sent(client, data, name, **fields)
    assert answer.status_code == status
    assert says(answer.json()["error"], *facts)
    of_deepl = DEEPL | ({"target_lang": fields["target"]} if fields else {})
    assert client.post("/v2/document", files={"file": (name, data)}, data=of_deepl).status_code == status


def test_what_is_no_file_is_refused(client: TestClient) -> None:
    for body in ({"json": DIRECTION | {"file": "text"}}, {"data": DIRECTION | {"file": "text"}}, {"data": DIRECTION}):
        answer = client.post("/translate_file", **body)  # type: ignore[arg-type]
        assert (answer.status_code, "file" in answer.json()["error"]) == (400, True)
    two = client.post("/translate_file", files=[("file", ("a.txt", b"a")), ("file", ("b.txt", b"b"))], data=DIRECTION)
    assert two.status_code == 400
    assert client.post("/translate", files={"q": ("a.txt", b"a")}, data=DIRECTION).status_code == 400
    other = client.post("/v2/document", files={"file": ("a.txt", b"a")}, data=DEEPL | {"output_format": "pdf"})
    assert says(other.json()["message"], "output_format")
    assert client.get("/download_file/0123.txt").status_code == 404


def test_limits(translator_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text(
        '[[key]]\nname = "a"\nkey = "k"\ndocument_bytes = 100\ndocument_characters = 20\ncharacters_per_month = 30\n'
    )
    with serving(translator_folder, access=read_access(keys)) as client:
        assert sent(client, b"the dog", "a.txt").status_code == 403
        assert sent(client, b"-" * 101, "a.txt", api_key="k").status_code == 413
        assert says(sent(client, b"dog " * 10, "a.txt", api_key="k").json()["error"], 39, 20)
        answer = sent(client, b"the dog sees the cat", "a.txt", api_key="k")
        assert answer.status_code == 200
        assert client.get(answer.json()["translatedFileUrl"]).status_code == 200  # whoever knows it needs no key
        used_up = sent(client, b"the dog sees the cat", "a.txt", api_key="k")
        assert says(used_up.json()["error"], "quota")
        header = {"Authorization": "DeepL-Auth-Key k"}
        deepl = client.post("/v2/document", files={"file": ("a.txt", b"the dog sees")}, data=DEEPL, headers=header)
        assert deepl.status_code == 456
        monkeypatch.setattr("transduce.serving.http.MAX_UPLOAD_BYTES", 1000)
        assert sent(client, b"-" * 1001, "a.txt", api_key="k").status_code == 413
        monkeypatch.setattr(document_store, "MAX_AT_ONCE", 0)
        busy = sent(client, b"the dog", "a.txt", api_key="k")
        assert (busy.status_code, busy.headers["retry-after"]) == (429, "10")


def test_a_document_that_takes_too_long(translator_folder: Path) -> None:
    with serving(translator_folder) as client:
        client.app_state.document_timeout_s = 0.0  # type: ignore[attr-defined]
        assert sent(client).status_code == 503
        handle = client.post("/v2/document", files={"file": ("page.html", PAGE)}, data=DEEPL).json()
        path, key = f"/v2/document/{handle['document_id']}", {"document_key": handle["document_key"]}
        status = client.post(path, json=key).json()
        assert (status["status"], says(status["error_message"], "in time")) == ("error", True)
        assert client.post(f"{path}/result", json=key).status_code == 404


@pytest.mark.merge
def test_a_long_document_waits_for_room_in_the_queue(translator_folder: Path) -> None:
    lines = "".join(f"the dog {n} sleeps\n" for n in range(300)).encode()
    with serving(translator_folder, capacity=70, max_batch=32) as client:
        with ThreadPoolExecutor(3) as threads:
            answers = list(threads.map(lambda _: sent(client, lines, "a.txt"), range(3)))
        assert [each.status_code for each in answers] == [200] * 3
        texts = {client.get(each.json()["translatedFileUrl"]).content for each in answers}
        assert len(texts) == 1


def test_the_store_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    store = DocumentStore(clock=lambda: now)
    monkeypatch.setattr(document_store, "MAX_KEPT", 3)
    monkeypatch.setattr(document_store, "MAX_KEPT_BYTES", 10)
    keys = [store.keep(b"abc", f"{n}.txt") for n in range(5)]
    assert [store.find(key) is not None for key in keys] == [False, False, True, True, True]
    last = store.keep(b"1234567", "long.txt")
    assert [store.find(key) is not None for key in keys] == [False] * 4 + [True]
    found = store.find(last)
    assert found is not None
    monkeypatch.setattr(document_store, "BLOCK_BYTES", 3)
    assert list(found.blocks()) == [b"123", b"456", b"7"]
    now = document_store.MAX_AGE_S + 1
    assert store.find(last) is None
    assert b"".join(found.blocks()) == b"1234567"  # for whoever still reads it
    kept = store.keep(b"a", "a.txt")
    store.close()
    assert store.find(kept) is None


def test_without_space_for_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(document_store.tempfile, "TemporaryFile", fails)
    with pytest.raises(ApiError, match="No space left") as raised:
        DocumentStore().keep(b"a", "a.txt")
    assert raised.value.status == 503


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are listed in /proc")
def test_documents_are_files_without_names() -> None:
    store = DocumentStore()
    key = store.keep(b"a", "a.txt")
    kept = store.find(key)
    assert kept is not None
    assert os.readlink(f"/proc/self/fd/{kept._file.fileno()}").endswith("(deleted)")


@pytest.mark.merge
def test_a_killed_server_leaves_no_files(
    run_server: Callable[..., RunningServer], translator_folder: Path, tmp_path: Path
) -> None:
    server = run_server(translator_folder, before=f"import tempfile; tempfile.tempdir = {str(tmp_path)!r}")
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for name in ("page.html", "large.txt"):
            answer = client.post("/translate_file", files={"file": (name, PAGE + b"\n" * 2_000_000)}, data=DIRECTION)
            assert answer.status_code == 200
    server.stop(signal.SIGKILL)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/passwd.txt", 'filename="passwd.de.txt"'),
        ("C:\\x\\a b.txt", "filename*=utf-8''a%20b.de.txt"),
        ("Straße \u202e.txt", "filename*=utf-8''Stra%C3%9Fe.de.txt"),
        ("a" * 500 + ".txt", f'{"a" * 96}.de.txt"'),
        ("a;b&c.txt", 'filename="abc.de.txt"'),
    ],
    ids=ascii,
)
def test_odd_names(client: TestClient, name: str, kept: str) -> None:
    answer = sent(client, b"2024", name)
    assert answer.status_code == 200, answer.text
    fetched = client.get(answer.json()["translatedFileUrl"])
    assert fetched.content == b"2024"
    assert fetched.headers["content-disposition"].endswith(kept)
    assert fetched.headers["content-length"] == "4"


def test_many_documents_at_once_are_refused_before_they_begin(
    translator_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_store, "MAX_AT_ONCE", 2)
    with serving(translator_folder) as client, ThreadPoolExecutor(6) as pool:
        files = {"file": ("a.txt", b"the dog sees the cat\n" * 50)}
        uploads = [pool.submit(client.post, "/v2/document", files=files, data=DEEPL) for _ in range(6)]
        accepted = [each.result().json() for each in uploads if each.result().status_code == 200]
        assert {each.result().status_code for each in uploads} <= {200, 429}
        for handle in accepted:
            path, key = f"/v2/document/{handle['document_id']}", {"document_key": handle["document_key"]}
            while (status := client.post(path, json=key).json()["status"]) == "translating":
                time.sleep(0.02)
            assert status == "done"
        assert client.app_state.documents._n_working == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize(("path", "fields"), [("/translate_file", DIRECTION), ("/v2/document", DEEPL)])
def test_a_document_has_room_while_it_is_read(
    translator_folder: Path, monkeypatch: pytest.MonkeyPatch, path: str, fields: dict[str, str]
) -> None:
    monkeypatch.setattr(document_store, "MAX_AT_ONCE", 1)
    read, is_begun, may_end = documents._read, threading.Event(), threading.Event()

    def waits(*arguments: Any, **options: Any) -> Any:
        is_begun.set()
        may_end.wait(2)
        return read(*arguments, **options)

    monkeypatch.setattr(documents, "_read", waits)
    with serving(translator_folder) as client, ThreadPoolExecutor(1) as pool:
        file = {"file": ("a.txt", b"the dog")}
        first = pool.submit(client.post, path, files=file, data=fields)
        assert is_begun.wait(10)
        second = client.post(path, files=file, data=fields)
        may_end.set()
        assert (first.result().status_code, second.status_code) == (200, 429)


def test_work_whose_client_has_gone_away_is_awaited() -> None:
    async def run() -> None:
        may_end = threading.Event()
        task = asyncio.ensure_future(documents._to_its_end(lambda: may_end.wait(2)))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def test_jobs_are_bounded() -> None:
    async def run() -> None:
        now = 0.0
        jobs = DocumentJobs(clock=lambda: now)

        async def work() -> tuple[str, int]:
            await asyncio.sleep(0)
            raise ApiError(503, "no")

        first = jobs.begin(work())
        assert (jobs.find(first.id, first.key), jobs.find(first.id, "é")) == (first, None)
        await asyncio.sleep(0.01)
        assert (first.status, first.error.message) == ("error", "no")
        others = [jobs.begin(work()) for _ in range(MAX_JOBS)]
        assert jobs.find(first.id, first.key) is None
        assert jobs.find(others[0].id, others[0].key) is others[0]
        now = 1e5
        assert jobs.find(others[0].id, others[0].key) is None
        await asyncio.sleep(0.01)
        assert others[-1].status == "error"

    asyncio.run(run())


def test_the_description_has_files_and_paths() -> None:
    paths = openapi()["paths"]
    [(kind, content)] = paths["/translate_file"]["post"]["requestBody"]["content"].items()
    assert (kind, content["schema"]["properties"]["file"]["format"]) == ("multipart/form-data", "binary")
    status = paths["/v2/document/{document_id}"]["post"]
    assert [(each["name"], each["in"], each["required"]) for each in status["parameters"]] == [
        ("document_id", "path", True)
    ]
    assert status["requestBody"]["content"]["application/json"]["schema"]["required"] == ["document_key"]
    assert [each["in"] for each in paths["/v2/document/{document_id}"]["get"]["parameters"]][:2] == ["path", "query"]


@pytest.mark.merge
def test_by_the_package_of_deepl(
    run_server: Callable[..., RunningServer], translator_folder: Path, tmp_path: Path, expected: bytes
) -> None:
    deepl = pytest.importorskip("deepl")
    server = run_server(translator_folder)
    client = deepl.Translator("key", server_url=server.url)
    (tmp_path / "page.html").write_bytes(PAGE)
    client.translate_document_from_filepath(tmp_path / "page.html", tmp_path / "out.html", target_lang="DE")
    assert (tmp_path / "out.html").read_bytes() == expected
    server.stop()
