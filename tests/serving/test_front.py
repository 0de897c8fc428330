"""What every request passes first: paths, the prefix, sites, limits of HTTP; and the pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from starlette.testclient import TestClient

from said import says
from transduce.serving.app import make_app
from transduce.serving.openapi import openapi

GOOD = {"q": "A cat", "source": "en", "target": "de"}


@pytest.mark.parametrize("path", ["//translate", "/translate/", "///translate//", "//v2//translate"])
def test_slashes_may_be_doubled(client: TestClient, path: str) -> None:
    fields = {"text": ["A cat"], "target_lang": "DE"} if "v2" in path else GOOD
    assert client.post(f"http://testserver{path}", json=fields).status_code == 200


def test_all_paths_may_have_a_prefix(client: TestClient) -> None:
    state = client.app_state  # type: ignore[attr-defined]
    behind = TestClient(make_app(state, prefix="/mt/x"), follow_redirects=False)
    assert behind.post("/mt/x/translate", json=GOOD).json() == client.post("/translate", json=GOOD).json()
    assert behind.post("/mt//x/v2/translate", json={"text": "A cat", "target_lang": "DE"}).status_code == 200
    assert behind.get("/mt/x/").headers["content-type"].startswith("text/html")
    assert (behind.get("/mt/x").status_code, behind.get("/mt/x").headers["location"]) == (307, "/mt/x/")
    for path in ("/translate", "/", "/mt", "/mt/xtranslate", "/v2/translate", "/mt/x/v2/nothing"):
        answer = behind.get(path)
        assert answer.status_code == 404
        assert list(answer.json()) == ["message" if "/v2/" in path else "error"]
    assert behind.get("/mt/x/openapi.json").json() == openapi() | {"servers": [{"url": "/mt/x"}]}


@pytest.mark.parametrize("prefix", ["mt", "/m t", "/mt//x", "/mt?x", "http://x"])
def test_a_prefix_is_a_path(transduce: Callable[..., Any], translator_folder: Any, prefix: str) -> None:
    outcome = transduce("serve", translator_folder, "--port", 0, "--prefix", prefix)
    assert outcome.code == 1
    assert says(outcome.err, "--prefix", repr(prefix))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200), ({"Origin": "https://my.site"}, 200), ({"Origin": "http://testserver"}, 200),
        ({"Origin": "https://evil.com"}, 403), ({"Origin": "null"}, 403), ({"Origin": "https://my.site.evil.com"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, 200),
    ],
)  # fmt: skip
def test_scripts_of_other_sites_are_refused(client: TestClient, headers: dict[str, str], status: int) -> None:
    """Also requests that need no permission of the browser."""
    app = make_app(client.app_state, cors_origins=["https://my.site"])  # type: ignore[attr-defined]
    strict = TestClient(app)
    simple = {"Content-Type": "text/plain", **headers}
    body = b'{"q": "A cat", "source": "en", "target": "de"}'
    assert strict.post("/translate", content=body, headers=simple).status_code == status
    assert strict.get("/v1/translate?text=A&target_lang=DE", headers=headers).status_code == status
    assert client.post("/translate", content=body, headers=simple).status_code == 200  # without --cors all may


def test_large_headers_are_refused(client: TestClient) -> None:
    assert client.get("/health", headers={"X-A": "b" * 30_000}).status_code == 200
    for path, headers in (
        ("/health", {"X-A": "b" * 40_000}), ("/health", {f"X-{n}": "b" for n in range(9000)}),
        (f"/v2/translate?text={'a' * 40_000}", {}),
    ):  # fmt: skip
        answer = client.get(path, headers=headers)
        assert answer.status_code == 431
        assert answer.headers["connection"] == "close"
        assert list(answer.json()) == ["message" if path.startswith("/v2") else "error"]


def test_the_description_is_a_page(client: TestClient) -> None:
    answer = client.get("/docs")
    assert answer.headers["content-type"].startswith("text/html")
    shown = unescape(re.sub("<[^>]*>", " ", answer.text))
    for path, methods in openapi()["paths"].items():
        for method, operation in methods.items():
            assert f"{method.upper()} {path}" in shown
            assert operation["summary"] in shown
    assert "translation_memory_id" in shown
    assert "<script" not in answer.text
    assert "http" not in answer.text.replace("http-equiv", "")
