"""Keys, limits, rates and quotas: who is let in, and what each API says to the others."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from serving_tools import serving
from starlette.requests import ClientDisconnect

from said import naming, says
from transduce.errors import ConfigError
from transduce.serving import access as access_module
from transduce.serving import http
from transduce.serving.access import Access, TooManyRequests, _Rates, read_access
from transduce.serving.batching import DeadlineExceeded, QueueFull, TooLong
from transduce.serving.http import ApiError, counted

KEYS = f"""
usage_file = "USAGE"
[[key]]
name = "office"
key = "open sesame"
characters = 50
texts = 2
characters_per_month = 60
[[key]]
name = "hasty"
sha256 = "{hashlib.sha256(b"quick").hexdigest()}"
requests_per_minute = 2
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_each_key_has_its_limits(translator_folder: Path, tmp_path: Path) -> None:
    usage = tmp_path / "usage.json"
    file = written(tmp_path / "keys.toml", KEYS.replace("USAGE", str(usage)))
    with serving(translator_folder, access=read_access(file)) as client:
        fields = {"q": "A cat", "source": "en", "target": "de"}
        for key, status in ((None, 403), ("wrong", 403), ("open sesame", 200)):
            answer = client.post("/translate", json=fields | ({} if key is None else {"api_key": key}))
            assert answer.status_code == status
            assert "sesame" not in answer.text
        deepl = {"Authorization": "DeepL-Auth-Key open sesame"}
        assert client.post("/v2/usage", headers=deepl).json() == {"character_count": 5, "character_limit": 60}
        assert client.get("/v2/usage").status_code == 403
        body = {"text": ["x" * 51], "target_lang": "DE"}
        assert "50 characters" in client.post("/v2/translate", json=body, headers=deepl).json()["message"]
        body = {"text": ["x"] * 3, "target_lang": "DE"}
        assert "limit is 2" in client.post("/v2/translate", json=body, headers=deepl).json()["message"]
        body = {"text": ["x" * 45], "target_lang": "DE"}
        assert client.post("/v2/translate", json=body, headers=deepl).status_code == 200
        refused = client.post("/v2/translate", json=body, headers=deepl)
        assert (refused.status_code, refused.json()) == (456, {"message": "Quota exceeded"})
        refused = client.post("/translate", json=fields | {"api_key": "open sesame", "q": "x" * 30})
        assert (refused.status_code, list(refused.json())) == (403, ["error"])
        bearer = {"Authorization": "Bearer quick"}
        assert [client.post("/translate", json=fields, headers=bearer).status_code for _ in range(3)] == [200, 200, 429]
        refused = client.post("/translate", json=fields, headers=bearer)
        assert 1 <= int(refused.headers["Retry-After"]) <= 31
        assert client.get("/frontend/settings").json()["keyRequired"]
        assert client.get("/ready").status_code == 200  # of no concern to a client
        assert "office" not in client.get("/metrics").text
    again = read_access(file)  # the counts survive the end of the server
    office = again.client("open sesame")
    assert office is not None
    assert office.characters_used == 50


def test_requests_without_a_key_have_limits_of_their_own(translator_folder: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "keys.toml", "[anonymous]\ncharacters = 4\nrequests_per_minute = 3\n")
    with serving(translator_folder, access=read_access(file)) as client:
        fields = {"q": "A cat", "source": "en", "target": "de"}
        assert client.post("/translate", json=fields).status_code == 400
        assert [client.post("/translate", json=fields | {"q": "Cat"}).status_code for _ in range(3)] == [200, 200, 429]
        assert client.get("/frontend/settings").json()["charLimit"] == 4
        any_key = {"Authorization": "DeepL-Auth-Key any"}  # DeepL's clients always send one; there is none to be wrong
        assert client.get("/v2/languages", headers=any_key).status_code == 429


def test_requests_at_once_share_a_quota_and_refused_ones_do_not_count(translator_folder: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "keys.toml", "[anonymous]\ncharacters_per_month = 8\n")
    with serving(translator_folder, access=read_access(file)) as client:
        fields = {"q": "A cat", "source": "en", "target": "de"}
        for path, refused in (("/translate", {"target": "zz"}), ("/sentences", {"target": "zz"}), ("/parse", {})):
            assert client.post(path, json=fields | refused).status_code == 400
        assert client.get("/v2/usage").json()["character_count"] == 0
        with ThreadPoolExecutor(4) as pool:
            answers = pool.map(lambda _: client.post("/translate", json=fields).status_code, range(4))
        assert sorted(answers) == [200, 403, 403, 403]
        assert client.post("/sentences", json=fields).status_code == 403
        assert client.get("/v2/usage").json()["character_count"] == 5


def test_keys_cannot_be_guessed_fast(translator_folder: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "keys.toml", '[[key]]\nname = "a"\nkey = "right"\n')
    with serving(translator_folder, access=read_access(file)) as client:
        statuses = [client.post("/v2/usage", data={"auth_key": f"wrong-{n}"}).status_code for n in range(70)]
        assert statuses == [403] * 60 + [429] * 10
        assert client.post("/v2/usage", data={"auth_key": "right"}).status_code == 200
        assert client.post("/v2/usage").status_code == 403


def test_a_wrong_key_in_the_headers_is_refused_before_the_body_is_read(translator_folder: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "keys.toml", '[[key]]\nname = "a"\nkey = "right"\n')
    with serving(translator_folder, access=read_access(file)) as client:
        for key, status in (("wrong", 403), ("right", 413)):
            headers = {"Authorization": f"Bearer {key}"}
            assert client.post("/detect", content=b"x" * (3 << 20), headers=headers).status_code == status
            assert client.post("/detect", content=b"{", headers=headers).status_code == (403 if status == 403 else 400)


def test_all_bodies_together_have_a_limit(translator_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_HELD_BYTES", 300_000)
    with serving(translator_folder) as client:
        state: Any = client.app_state  # see serving()
        with state.bodies.held() as hold:
            hold(250_000)
            refused = client.post("/detect", json={"q": "x" * 200_000})
            assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
            packed = gzip.compress(json.dumps({"q": "x" * 200_000}).encode())
            assert client.post("/detect", content=packed, headers={"Content-Encoding": "gzip"}).status_code == 503
            assert client.post("/detect", json={"q": "x" * 50_000}).status_code == 200
        assert client.post("/detect", json={"q": "x" * 90_000}).status_code == 200
        assert state.bodies.n_bytes == 0


def test_generated_text_counts(language_model_folder: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "keys.toml", "[anonymous]\ncharacters_per_month = 20\n")
    with serving(language_model_folder, access=read_access(file)) as client:
        for is_streamed in (True, False):
            before = client.get("/v2/usage").json()["character_count"]
            fields = {"prompt": "the", "max_tokens": 5, "stream": is_streamed, "seed": 3}
            answer = client.post("/generate", json=fields)
            lines = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
            text = "".join(each.get("text", "") for each in lines) if is_streamed else answer.json()["text"]
            assert len(text) > 0
            assert client.get("/v2/usage").json()["character_count"] == before + 3 + len(text)
        while client.get("/v2/usage").json()["character_count"] <= 17:
            client.post("/generate", json={"prompt": "the", "stream": False})
        assert client.post("/generate", json={"prompt": "the"}).status_code == 403


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (ClientDisconnect(), 5), (asyncio.CancelledError(), 5), (DeadlineExceeded(3, 9), 5),
        (DeadlineExceeded(0, 9), 0), (QueueFull(1), 0), (TooLong(9, 3, 1.0), 0),
        (ApiError(400, ""), 0), (ValueError(), 0),
    ],
)  # fmt: skip
def test_what_was_begun_counts(error: BaseException, counts: int) -> None:
    """Also if the client has gone away."""
    client = Access().anonymous
    assert client is not None
    with pytest.raises(type(error)), counted(client, 1, 5, over_quota=ApiError(403, "")):
        raise error
    assert client.characters_used == counts


def test_a_usage_file_that_cannot_be_written_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usage = tmp_path / "usage.json"
    access = read_access(written(tmp_path / "keys.toml", f"usage_file = {str(usage)!r}\n[anonymous]\n"))
    usage.mkdir()
    for _ in range(3):
        access.save()
    [line] = capsys.readouterr().err.splitlines()
    assert str(usage) in line
    usage.rmdir()
    access.save()
    assert usage.is_file()


@pytest.mark.parametrize("counts", ['{"a": -1}', '{"a": 1.5}', '{"a": true}', "[]", "null"])
def test_a_usage_file_with_nonsense_is_named(tmp_path: Path, counts: str) -> None:
    usage = written(tmp_path / "usage.json", f'{{"month": "2026-01", "characters": {counts}}}')
    file = written(tmp_path / "keys.toml", f"usage_file = {str(usage)!r}\n[anonymous]\n")
    with pytest.raises(ConfigError, match=naming(usage, "characters")):
        read_access(file)


def test_rates_recover() -> None:
    rates = _Rates()
    assert [rates.take("a", 60, 0.0) for _ in range(61)] == [0] * 60 + [1]
    assert rates.take("b", 60, 0.0) == 0
    assert (rates.take("a", 60, 1.0), rates.take("a", 60, 1.0)) == (0, 1)
    assert TooManyRequests(60, 3).retry_after_s == 3


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("[", ("TOML",)),
        pytest.param(f"a = {'1' * 5000}", ("TOML",), id="many digits"),
        pytest.param(f"a = {'[' * 10_000}", ("TOML",), id="many brackets"),
        ("[[key]]\nname = 'a'", ("'a'", "sha256")),
        ("[[key]]\nname = 'a'\nkey = 'x'\nsha256 = '" + "0" * 64 + "'", ("sha256",)),
        ("[[key]]\nname = 'a'\nkey = 'x'\n[[key]]\nname = 'a'\nkey = 'y'", ("'a'",)),
        ("[[key]]\nname = 'a'\nkey = 'x'\n[[key]]\nname = 'b'\nkey = 'x'", ("twice",)),
        ("", ("nobody",)),
        ("[anonymous]\ncharacter = 1", ("character", "characters")),
        ("[anonymous]\ntexts = 0", ("texts",)),
        ("[key]\nname = 'a'\nkey = 'sesame'", ("[[key]]",)),
        ("[[key]]\nname = 'a'\nsha256 = 'sesame'", ("key.0.sha256",)),
        ("[anonymous]\n[[key]]\nname = 'a'\nkey = ['sesame']", ("key.0.key",)),
        ("usage_file = 'no/such/usage.json'\n[anonymous]", ("usage_file", "no/such")),
    ],
)
def test_mistakes_in_the_file_are_named(tmp_path: Path, text: str, facts: tuple[str, ...]) -> None:
    file = written(tmp_path / "keys.toml", text)
    with pytest.raises(ConfigError, match=naming(file, *facts)) as raised:
        read_access(file)
    assert "sesame" not in str(raised.value)
    with pytest.raises(ConfigError, match=naming("none.toml")):
        read_access(tmp_path / "none.toml")


@pytest.mark.parametrize("site", ["my.site", "https://my.site/", "null"])
def test_a_site_is_an_origin(transduce: Callable[..., Any], translator_folder: Path, site: str) -> None:
    outcome = transduce("serve", translator_folder, "--port", 0, "--cors", site)
    assert outcome.code == 1
    assert says(outcome.err, "--cors", repr(site))


def test_what_is_counted_is_written_soon_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if no other request follows, so that a crash loses seconds of it."""
    monkeypatch.setattr(access_module, "SAVE_INTERVAL_S", 0.05)
    usage = tmp_path / "usage.json"
    access = read_access(written(tmp_path / "keys.toml", f"usage_file = {str(usage)!r}\n[anonymous]\n"))
    client = access.client(None)
    assert client is not None
    for n_characters in (5, 7):
        before = usage.read_bytes() if usage.exists() else b""
        client.use(n_characters)
        deadline = time.monotonic() + 30
        while not usage.exists() or usage.read_bytes() == before:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert json.loads(usage.read_text())["characters"] == {"": 12}
