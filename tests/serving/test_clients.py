"""Requests as clients that others wrote send them, replayed."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

TEXT = "The dog sleeps."
LIBRE = [
    ("Mastodon", {"json": {"q": ["<p>The dog</p>"], "source": "en", "target": "de", "format": "html", "api_key": ""}}),
    ("Mastodon, unknown", {"json": {"q": [TEXT], "source": "auto", "target": "de", "format": "html", "api_key": None}}),
    ("Weblate", {"json": {"q": "The [X16X] dog", "source": "en", "target": "de", "format": "html", "api_key": ""}}),
    ("Discourse", {"data": {"q": TEXT, "source": "auto", "target": "de", "format": "html", "api_key": ""}}),
    ("Nextcloud", {"json": {"q": TEXT, "source": "en", "target": "de", "api_key": ""}}),
    ("Subtitle Edit", {"json": {"q": TEXT, "source": "EN", "target": "DE", "format": "text", "alternatives": 0}}),
    ("npm translate", {"json": {"q": TEXT, "source": "en", "target": "de"}}),
    ("LibreTranslate's page", {"data": {
        "q": TEXT, "source": "auto", "target": "de", "format": "text", "alternatives": "3", "api_key": "",
        "secret": "x",
    }}),
]  # fmt: skip
DEEPL = [
    ("Weblate", {"json": {
        "text": ['The <x id="0"></x> dog'], "source_lang": "EN", "target_lang": "DE", "formality": "default",
        "tag_handling": "xml", "ignore_tags": ["x"], "context": "menu", "model_type": "prefer_quality_optimized",
        "show_billed_characters": True, "glossary_id": None,
    }}),
    ("Mastodon", {"data": {
        "text": TEXT, "source_lang": "EN", "target_lang": "DE", "tag_handling": "html", "formality": "prefer_more",
    }}),
    ("OmegaT", {"data": {
        "text": "The <x0/> dog", "source_lang": "EN", "target_lang": "DE", "tag_handling": "xml", "ignore_tags": "x",
        "split_sentences": "0", "preserve_formatting": "1", "auth_key": "any",
    }}),
    ("deepl-node", {"data": {"text": [TEXT, "A cat"], "target_lang": "de", "show_billed_characters": "1"}}),
    ("deepl, Python", {"json": {"text": [TEXT], "target_lang": "EN-US", "source_lang": "EN"}}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "request_form"), LIBRE, ids=[name for name, _ in LIBRE])
def test_requests_to_libretranslate(client: TestClient, name: str, request_form: dict[str, Any]) -> None:
    answer = client.post("/translate", **request_form)
    assert answer.status_code == 200, answer.text
    assert answer.json()["translatedText"]
    sent = request_form.get("json") or request_form["data"]
    assert ("detectedLanguage" in answer.json()) == (sent["source"] == "auto")


@pytest.mark.parametrize("path", ["/v2/translate", "/v1/translate"])
@pytest.mark.parametrize(("name", "request_form"), DEEPL, ids=[name for name, _ in DEEPL])
def test_requests_to_deepl(client: TestClient, path: str, name: str, request_form: dict[str, Any]) -> None:
    answer = client.post(path, headers={"Authorization": "DeepL-Auth-Key any"}, **request_form)
    if name == "deepl, Python":  # into a language that is not served
        assert (answer.status_code, answer.json()) == (400, {"message": "Value for 'target_lang' not supported."})
        return
    assert answer.status_code == 200, answer.text
    for each in answer.json()["translations"]:
        assert each["detected_source_language"] == "EN"
        assert each["text"]
