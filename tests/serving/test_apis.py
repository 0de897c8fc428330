"""The endpoints, with the application in this process: answers, errors in each API's shape, and their description."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from serving_tools import fits, serving
from starlette.routing import Route
from starlette.testclient import TestClient

from said import says
from transduce.errors import ConfigError, DataError, SearchError, TransduceError
from transduce.inference import LanguageModel, Translator
from transduce.inference.translation import text_translation
from transduce.serving.app import make_app
from transduce.serving.http import as_api_error
from transduce.serving.models import Served
from transduce.serving.openapi import openapi
from transduce.serving.routing import translated
from transduce.text.markup import html_rules

ELSEWHERE = re.compile("document|file|glossaries")  # in test_documents.py and test_glossaries.py
TEXT = "The dog sleeps. The old woman sees the cat."


@pytest.fixture(scope="module")
def translator(translator_folder: Path) -> Translator:
    return Translator.load(translator_folder)


def test_a_text_is_translated_as_by_the_library(client: TestClient, translator: Translator) -> None:
    sentences = [each.text for each in translator.split_line(TEXT)]
    expected = " ".join(translator.translate(sentences))
    for request in (
        {"json": {"q": TEXT, "source": "en", "target": "de"}},
        {"data": {"q": TEXT, "source": "en", "target": "de"}},
        {"files": {name: (None, value) for name, value in {"q": TEXT, "source": "en", "target": "de"}.items()}},
    ):
        answer = client.post("/translate", **request)  # type: ignore[arg-type]
        assert answer.status_code == 200
        assert answer.json() == {"translatedText": expected}


def test_lines_and_spaces_stay(client: TestClient, translator: Translator) -> None:
    text = "\n  The dog sleeps. \n\n17 + 4\n\tA cat"
    [dog, cat] = translator.translate(["The dog sleeps.", "A cat"])
    answer = client.post("/translate", json={"q": text, "source": "en", "target": "de"})
    assert answer.json()["translatedText"] == f"\n  {dog} \n\n17 + 4\n\t{cat}"


def test_a_list_gives_lists(client: TestClient) -> None:
    fields = {"q": ["The dog sleeps.", "", "A cat"], "source": "auto", "target": "de", "alternatives": 2}
    answer = client.post("/translate", json=fields).json()
    assert answer.keys() == {"translatedText", "detectedLanguage", "alternatives"}
    assert [len(values) for values in answer.values()] == [3, 3, 3]
    assert answer["translatedText"][1] == ""
    assert all(each["language"] == "en" and 0 <= each["confidence"] <= 100 for each in answer["detectedLanguage"])
    for best, others in zip(answer["translatedText"], answer["alternatives"], strict=True):
        assert len(others) <= 2
        assert best not in others


@pytest.mark.parametrize("api", ["libretranslate", "deepl"])
def test_every_tag_comes_back_once(client: TestClient, api: str) -> None:
    tags = ['<b class="x">', "</b>", "<i>", "</i>", "<br>", "<code>a < b</code>", "<!-- no -->", "<p>", "</p>"]
    bold, end_bold, italic, end_italic, line_break, code, comment, paragraph, end_paragraph = tags
    html = f"{paragraph}The {bold}old {italic}dog{end_italic}{end_bold} sleeps."
    html += f"{line_break}See {code} &amp; {comment} sleep{end_paragraph}"
    if api == "deepl":
        fields: dict[str, Any] = {"text": [html], "target_lang": "DE", "tag_handling": "html"}
        result = client.post("/v2/translate", json=fields).json()["translations"][0]["text"]
    else:
        result = client.post("/translate", json={"q": html, "source": "en", "target": "de", "format": "html"}).json()[
            "translatedText"
        ]
    for tag in tags:
        assert result.count(tag) == 1, (tag, result)
    assert result.startswith("<p>")
    assert result.endswith("</p>")


def test_tags_of_a_very_long_paragraph_are_placed_by_sentences(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_translation, "MAX_CELLS", 10)
    monkeypatch.setattr(text_translation, "MAX_SENTENCES_APART", 3)
    html = " ".join(f"The <b>dog</b> sees <img id={n}> a cat." for n in range(8))
    result = client.post("/translate", json={"q": html, "source": "en", "target": "de", "format": "html"}).json()
    tags = re.findall("<[^>]*>", result["translatedText"])
    assert sorted(tags) == sorted(re.findall("<[^>]*>", html))
    assert [tag for tag in tags if "img" in tag] == [f"<img id={n}>" for n in range(8)]


def test_addresses_and_placeholders_stay_in_text(client: TestClient) -> None:
    text = "See https://example.org/a?b=c&d or mail a@b.org about {name}."
    result = client.post("/translate", json={"q": text, "source": "en", "target": "de"}).json()["translatedText"]
    for kept in ("https://example.org/a?b=c&d", "a@b.org", "{name}"):
        assert result.count(kept) == 1


def test_deepl_keeps_ignored_elements(client: TestClient) -> None:
    """As Weblate protects placeholders."""
    text = 'The <x id="0">%s</x> sees <x id="1"></x> dogs.'
    fields = {"text": [text], "source_lang": "EN", "target_lang": "DE", "tag_handling": "xml", "ignore_tags": ["x"]}
    [answer] = client.post("/v2/translate", json=fields).json()["translations"]
    assert answer["text"].count('<x id="0">%s</x>') == 1
    assert answer["text"].count('<x id="1"></x>') == 1
    assert answer["detected_source_language"] == "EN"
    assert answer["billed_characters"] == len(text)
    form = client.post("/v2/translate", data={"text": ["A cat", "A dog"], "target_lang": "DE", "ignore_tags": "x,y"})
    assert len(form.json()["translations"]) == 2


def test_languages_and_settings(client: TestClient) -> None:
    assert client.get("/languages").json() == [
        {"code": "de", "name": "German", "targets": []},
        {"code": "en", "name": "English", "targets": ["de"]},
    ]
    assert client.get("/v2/languages?type=target").json() == [
        {"language": "DE", "name": "German", "supports_formality": False}
    ]
    assert client.request("GET", "/v2/languages", data={"type": "source"}).json() == [
        {"language": "EN", "name": "English"}
    ]
    settings = client.get("/frontend/settings").json()
    assert settings["language"] == {
        "source": {"code": "en", "name": "English"},
        "target": {"code": "de", "name": "German"},
    }
    assert not settings["keyRequired"]
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").status_code == 200
    assert client.post("/detect", data={"q": "The dog sees the cat."}).json()[0]["language"] == "en"


GOOD = {"q": "A cat", "source": "en", "target": "de"}


@pytest.mark.parametrize(
    ("path", "fields", "status", "words"),
    [
        ("/translate", {"source": "en", "target": "de"}, 400, "missing q"),
        ("/translate", {"q": "A cat", "source": "en"}, 400, "missing target"),
        ("/translate", GOOD | {"target": "zz"}, 400, "zz is not supported"),
        ("/translate", GOOD | {"source": "de", "target": "de" * 40}, 400, "not supported"),
        ("/translate", GOOD | {"source": "de", "target": "en"}, 400, "not available"),
        ("/translate", GOOD | {"source": ""}, 400, "missing source"),
        ("/translate", GOOD | {"q": [1]}, 400, "q should be"),
        ("/translate", GOOD | {"q": {"a": "b"}}, 400, "q should be"),
        ("/translate", GOOD | {"format": "pdf"}, 400, "format"),
        ("/translate", GOOD | {"alternatives": 99}, 400, "alternatives"),
        ("/translate", GOOD | {"alternatives": "1e999"}, 400, "alternatives"),
        ("/translate", GOOD | {"alternatives": 1.5}, 400, "alternatives"),
        ("/translate", GOOD | {"q": "x" * 100_001}, 400, "100,000"),
        ("/translate", GOOD | {"q": ["x"] * 1001}, 400, "1,000"),
        ("/v2/translate", {"text": ["x"]}, 400, "target_lang"),
        ("/v2/translate", {"text": ["x"], "target_lang": "FR"}, 400, "target_lang"),
        ("/v2/translate", {"text": ["x"], "target_lang": "DE", "source_lang": "FR"}, 400, "source_lang"),
        ("/v2/translate", {"text": ["x"], "target_lang": "DE", "tag_handling": "tex"}, 400, "tag_handling"),
        ("/v2/translate", {"text": ["x"], "target_lang": "DE", "split_sentences": "7"}, 400, "split_sentences"),
        ("/v2/languages", {"type": "all"}, 400, "type"),
        ("/alternatives", {"q": "x", "target": "de", "n": 0}, 400, "n should be"),
        ("/alternatives", {"q": "x", "target": "de", "prefix": "the " * 2000}, 400, "prefix"),
        ("/completion", {"q": "x", "target": "de", "prefix": "the " * 2000}, 400, "prefix"),
        ("/alignment", {"q": "a " * 2000, "target": "de", "translation": "b " * 2000}, 400, "translation"),
        ("/parse", {"q": "x", "model": "none"}, 400, "parser"),
        ("/generate", {"prompt": "x", "model": "none"}, 400, "language model"),
        ("/generate", {"prompt": "the " * 100}, 400, "prompt has more tokens"),
        ("/generate", {"prompt": "the " * 100, "stream": False}, 400, "prompt has more tokens"),
        ("/generate", {"prompt": "x", "temperature": -1}, 400, "temperature"),
        ("/nothing", {}, 404, "Not Found"),
        ("/v2/nothing", {}, 404, "Not Found"),
        ("/v1/nothing", {}, 404, "Not Found"),
        ("/sentences", GOOD | {"prefix": "x"}, 400, "'prefix'"),
        ("/generate", {"prompt": "x", "temperatur": 1}, 400, "'temperatur'"),
        ("/parse", {"q": "x", "two words": 1}, 400, "the field is not supported"),
        ("/languages", {}, 405, "Method Not Allowed"),
    ],
)  # fmt: skip
def test_errors_have_the_shape_of_their_api(
    client: TestClient, path: str, fields: dict[str, Any], status: int, words: str
) -> None:
    answer = client.post(path, json=fields)
    assert answer.status_code == status
    key = "message" if path.startswith(("/v1", "/v2")) else "error"
    assert list(answer.json()) == [key]
    assert words in answer.json()[key]
    assert "x" * 100 not in answer.text


@pytest.mark.parametrize(
    ("error", "status"), [(SearchError("x" * 100), 500), (ConfigError("x" * 100), 500), (DataError("x" * 100), 400)]
)
def test_what_is_no_fault_of_the_client_is_reported(
    error: TransduceError, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    answered = as_api_error(error)
    assert answered.status == status
    logged = capsys.readouterr().err
    assert says(logged, "error", type(error).__name__) if status == 500 else logged == ""
    assert "x" * 100 not in answered.message + logged


def test_a_field_of_a_form_of_several_parts_may_fill_the_body(client: TestClient) -> None:
    form = b'--x\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n'
    body = b"".join((form % (b"text", b"x" * (3 << 19)), form % (b"target_lang", b"DE"), b"--x--\r\n"))
    answer = client.post("/v2/translate", content=body, headers={"Content-Type": "multipart/form-data; boundary=x"})
    assert (answer.status_code, "characters" in answer.json()["message"]) == (400, True)


@pytest.mark.parametrize(("charset", "status"), [('"UTF-8"', 200), ("punycode", 415), ("utf-8; charset=punycode", 415)])
def test_a_form_of_several_parts_is_utf_8(client: TestClient, charset: str, status: int) -> None:
    fields = {"text": "a cät", "target_lang": "DE", "source_lang": "EN"}
    form = '--x\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    body = "".join([*(form.format(*each) for each in fields.items()), "--x--\r\n"]).encode()
    kind = f"multipart/form-data; charset={charset}; boundary=x"
    assert client.post("/v2/translate", content=body, headers={"Content-Type": kind}).status_code == status


def test_all_steps_of_a_request_have_one_deadline(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    submit, given = Served.submit, list[float]()

    async def noted(self: Served[Any, Any], jobs: Sequence[Any], *, timeout_s: float) -> list[Any]:
        given.append(timeout_s)
        await asyncio.sleep(0.01)
        return await submit(self, jobs, timeout_s=timeout_s)

    monkeypatch.setattr(Served, "submit", noted)
    served = client.app_state.translators["en", "de"]  # type: ignore[attr-defined]
    state: Any = SimpleNamespace(translators={("en", "de"): served, ("fr", "de"): served}, request_timeout_s=50.0)
    asyncio.run(translated(state, ["a cat", "a dog"], ["en", "fr"], "de", rules=html_rules()))
    assert len(given) == 4  # translated and aligned, of two languages
    assert all(before - after > 0.005 for before, after in pairwise([50.01, *given]))


FILE = b'--x\r\nContent-Disposition: form-data; name="q"; filename="f"\r\n\r\na\r\n--x--'


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b"{"), ("application/json", b"[]"), ("application/json", b"\xff"),
        ("application/json", b"[" * 100_000), ("application/json", b'{"q": 1e999, "source": "en", "target": "de"}'),
        ("application/x-www-form-urlencoded", b"q=\xff&source=en"), ("application/x-www-form-urlencoded", b"a&" * 9000),
        ("multipart/form-data", b"q=1"), ("multipart/form-data; boundary=x", b"--x\r\nnonsense"),
        ("multipart/form-data; boundary=x", FILE),
        ("text/plain", b"hello"), ("application/json", b""),
    ],
)  # fmt: skip
def test_malformed_bodies_are_refused(client: TestClient, kind: str, body: bytes) -> None:
    for path, key in (("/translate", "error"), ("/v2/translate", "message")):
        answer = client.post(path, content=body, headers={"Content-Type": kind})
        assert answer.status_code == 400
        assert list(answer.json()) == [key]


def test_a_form_may_have_characters_as_they_are(client: TestClient) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    asked = [
        client.post("/translate", content=body.encode(), headers=form).json()["translatedText"]
        for body in ("q=Käse+%C3%BC+cat&source=en&target=de", "q=K%C3%A4se+%C3%BC+cat&source=en&target=de")
    ]
    assert asked[0] == asked[1]


def test_lone_surrogates_are_replaced(client: TestClient) -> None:
    body = b'{"q": ["\\ud800", "A \\ud800 cat"], "source": "en", "target": "de"}'
    answer = client.post("/translate", content=body, headers={"Content-Type": "application/json"})
    assert answer.json()["translatedText"][0] == "\ufffd"


def test_sentences_alternatives_completion_and_alignment(client: TestClient, translator: Translator) -> None:
    text = "The dog sleeps.\nThe cat sees the man.  A book"
    answer = client.post("/sentences", json={"q": text, "target": "de"}).json()
    assert "".join(each["source"] + each["space"] for each in answer["sentences"]) == text
    assert (answer["source"], answer["target"]) == ("en", "de")
    url = "See https://a.org/b now."
    [kept] = client.post("/sentences", json={"q": url, "target": "de"}).json()["sentences"]
    assert kept["translation"].count("https://a.org/b") == 1
    sentence = "The cat sees the man."
    fields = {"q": sentence, "source": "en", "target": "de"}
    found = client.post("/alternatives", json=fields | {"prefix": "Die ", "n": 4}).json()["alternatives"]
    assert [(each["text"], each["score"]) for each in found] == [
        (each.text, each.score) for each in translator.alternatives(sentence, prefix="Die ", n=4)
    ]
    assert all(each["text"].startswith("Die") for each in found)
    completed = client.post("/completion", json=fields | {"prefix": "Die "}).json()["translation"]
    assert completed == translator.translate([sentence], prefix="Die ")[0]
    aligned = client.post("/alignment", json=fields | {"translation": "Die Katze sieht ihn."}).json()
    words = [aligned["translation"][start:end] for start, end in aligned["target_words"]]
    assert words == ["Die", "Katze", "sieht", "ihn", "."]
    assert len(aligned["probabilities"]) == len(aligned["attention"]) == 5
    assert all(sum(row) == pytest.approx(1, abs=1e-3) and len(row) == 6 for row in aligned["attention"])


def test_parse(client: TestClient) -> None:
    one = client.post("/parse", json={"q": "the dog sleeps ."}).json()
    assert one["words"] == ["the", "dog", "sleeps", "."]
    assert re.sub(r"\([^ ]+ |\)|\([^ ]+$", "", one["tree"]).split() == one["words"]
    many = client.post("/parse", json={"q": ["the dog", ""]}).json()["parses"]
    assert (many[0]["words"], many[1]["tree"]) == (["the", "dog"], None)


def test_generate_streams_what_the_library_gives(client: TestClient, language_model_folder: Path) -> None:
    [expected] = LanguageModel.load(language_model_folder).generate(["the dog"], max_tokens=12, seed=7)
    fields = {"prompt": "the dog", "max_tokens": 12, "seed": 7}
    with client.stream("POST", "/generate", json=fields) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = [json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line]
    assert "".join(event.get("text", "") for event in events) == expected.text
    assert events[-1] == {
        "done": True, "log_prob": expected.log_prob, "tokens": expected.tokens, "is_ended": expected.is_ended
    }  # fmt: skip
    whole = client.post("/generate", json=fields | {"stream": False}).json()
    assert whole["text"] == expected.text


def test_metrics_have_no_texts_and_no_addresses(client: TestClient) -> None:
    client.post("/translate", json=GOOD | {"q": "A secret"}, headers={"User-Agent": "unmistakable"})
    client.get("/languages?unmistakable")
    text = client.get("/metrics").text
    assert 'transduce_requests_total{api="libretranslate",code="200",route="/translate"}' in text
    assert 'transduce_sentences_total{model="en-de"}' in text
    assert "transduce_ready 1.0" in text
    for secret in ("secret", "unmistakable", "testclient", "127.0.0.1"):
        assert secret not in text


def test_the_description_names_every_route(client: TestClient) -> None:
    described = {(path, method.upper()) for path, methods in openapi()["paths"].items() for method in methods}
    app = make_app(client.app_state)  # type: ignore[attr-defined]
    routes = {
        (route.path, method)
        for route in app.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert described == routes
    assert client.get("/openapi.json").json() == client.get("/spec").json() == openapi()


@pytest.mark.parametrize("path", sorted(path for path in openapi()["paths"] if not ELSEWHERE.search(path)))
def test_answers_are_as_described(client: TestClient, path: str) -> None:
    for method, operation in openapi()["paths"][path].items():
        arguments: dict[str, Any] = {}
        if method == "post":
            content = operation["requestBody"]["content"]["application/json"]
            arguments = {"json": content.get("example", {})}
            assert fits(arguments["json"], content["schema"])
        elif "post" in openapi()["paths"][path]:  # with the same fields
            post = openapi()["paths"][path]["post"]
            arguments = {"params": post["requestBody"]["content"]["application/json"].get("example", {})}
        answer = client.request(method.upper(), path, **arguments)
        assert answer.status_code == 200, answer.text
        content = operation["responses"]["200"]["content"]
        kind = answer.headers["content-type"].partition(";")[0]
        assert kind in content
        if kind == "application/json":
            assert fits(answer.json(), content[kind]["schema"]), answer.text
        for code in set(operation["responses"]) & {"400"}:
            bad = client.request(method.upper(), path, json=["no object"])
            assert bad.status_code == int(code)
            assert fits(bad.json(), operation["responses"][code]["content"]["application/json"]["schema"])


def test_two_models_of_a_direction_are_refused(translator_folder: Path) -> None:
    with pytest.raises(ConfigError, match="both translate en-de"), serving(translator_folder, translator_folder):
        pass


def test_other_sites_may_use_it(client: TestClient) -> None:
    answer = client.options("/translate", headers={"Origin": "https://a.org", "Access-Control-Request-Method": "POST"})
    assert answer.headers["access-control-allow-origin"] == "*"
    assert client.get("/languages", headers={"Origin": "https://a.org"}).headers["access-control-allow-origin"] == "*"


def test_a_new_model_takes_over_without_losing_a_request(translator_folder: Path, tmp_path: Path) -> None:
    own_model = Path(shutil.copytree(translator_folder, tmp_path / "model"))
    with serving(own_model) as client:
        state = client.app_state  # type: ignore[attr-defined]
        before = state.models[0].model
        assert not state.models[0].has_changed()
        (own_model / "manifest.json").write_bytes((own_model / "manifest.json").read_bytes())
        assert state.models[0].has_changed()
        [(served, error)] = state.reload_changed()
        assert error is None
        assert served.model is not before
        assert client.post("/translate", json=GOOD).status_code == 200
        (own_model / "config.json").write_text("{}")
        (own_model / "manifest.json").touch()
        [(served, error)] = state.reload_changed(all_models=True)
        assert error is not None
        assert client.post("/translate", json=GOOD).status_code == 200  # the old one stays
        assert state.reload_changed() == []
        assert 'transduce_model_swaps_total{model="en-de",outcome="failed"} 1.0' in client.get("/metrics").text
