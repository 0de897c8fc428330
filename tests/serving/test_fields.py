"""The fields of DeepL's API, taken, refused or without effect, but never ignored; and how a request may be written."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from transduce.serving.http import MAX_BODY_BYTES
from transduce.serving.openapi import openapi

TEXT = "The dog sleeps."
FIELDS = {"text": [TEXT], "target_lang": "DE"}


def status_of(client: TestClient, **fields: Any) -> int:
    return client.post("/v2/translate", json=FIELDS | fields).status_code


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("formality", "default", 200), ("formality", "prefer_more", 200), ("formality", "prefer_less", 200),
        ("formality", "more", 400), ("formality", "less", 400), ("formality", "xxx", 400), ("formality", 1, 400),
        ("model_type", "prefer_quality_optimized", 200), ("model_type", "latency_optimized", 200),
        ("model_type", "nonsense", 400), ("context", "A farm.", 200), ("context", ["A farm."], 400),
        ("preserve_formatting", True, 200), ("preserve_formatting", "1", 200), ("preserve_formatting", "yes", 400),
        ("show_billed_characters", True, 200), ("enable_beta_languages", False, 200),
        ("tag_handling_version", "v2", 200), ("tag_handling_version", "v9", 400),
        ("glossary_ids", ["1"] * 6, 400), ("glossary_id", "", 200), ("style_id", "1", 400),
        ("custom_instructions", ["be brief"], 400), ("custom_instructions", [], 200),
        ("translation_memory_id", "1", 400), ("translation_memory_threshold", 75, 400),
        ("split_sentences", 0, 200), ("split_sentences", True, 200), ("split_sentences", "2", 400),
        ("source_lang", "", 200), ("glossary", "1", 400), ("Formality", "more", 400),
    ],
)  # fmt: skip
def test_no_field_of_deepl_is_ignored(client: TestClient, name: str, value: Any, status: int) -> None:
    answer = client.post("/v2/translate", json=FIELDS | {name: value})
    assert answer.status_code == status
    if status == 400:
        assert name in answer.json()["message"]


def test_the_table_has_every_field_of_the_routes_in_it() -> None:
    table = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(/[^`]*)` \|(.*)$", table, flags=re.MULTILINE))
    assert {"/translate", "/v2/translate", "/generate"} <= rows.keys()
    for path, row in rows.items():
        content = openapi()["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        names = set(content["schema"]["properties"]) - {"api_key", "auth_key"}
        assert {name for name in names if f"`{name}`" not in row and "those" not in row} == set(), path


@pytest.mark.parametrize("path", ["/translate", "/v2/translate", "/sentences"])
def test_null_is_as_if_absent(client: TestClient, path: str) -> None:
    schema = openapi()["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    needed = {"q": TEXT, "source": "en", "target": "de", **FIELDS}
    fields = {name: needed[name] for name in schema["required"]}
    nulls = dict.fromkeys(set(schema["properties"]) - set(fields))
    expected = client.post(path, json=fields)
    answer = client.post(path, json=nulls | fields)
    assert (answer.status_code, answer.json()) == (200, expected.json())
    for name in fields:
        assert client.post(path, json=fields | {name: None}).status_code == 400


@pytest.mark.parametrize("path", ["/v1/translate", "/v2/translate"])
def test_deepl_by_get(client: TestClient, path: str) -> None:
    """As the connector of OmegaT sends it."""
    query = {
        "text": "The <x0/> dog.", "source_lang": "EN", "target_lang": "DE", "tag_handling": "xml",
        "split_sentences": "0", "preserve_formatting": "1", "auth_key": "any",
    }  # fmt: skip
    answer = client.get(path, params=query)
    assert answer.status_code == 200
    assert answer.json() == client.post("/v2/translate", data=query).json()
    assert answer.json()["translations"][0]["text"].count("<x0/>") == 1


def test_bodies_may_be_compressed(client: TestClient) -> None:
    fields = {"q": TEXT, "source": "en", "target": "de"}
    body, expected = json.dumps(fields).encode(), client.post("/translate", json=fields).json()

    def post(content: bytes, coding: str) -> tuple[int, Any]:
        headers = {"Content-Type": "application/json", "Content-Encoding": coding}
        answer = client.post("/translate", content=content, headers=headers)
        return answer.status_code, answer.json()

    for content, coding in ((gzip.compress(body), "gzip"), (zlib.compress(body), "deflate"), (body, "Identity")):
        assert post(content, coding) == (200, expected)
    assert post(gzip.compress(b" " * (MAX_BODY_BYTES + 1)), "gzip")[0] == 413
    for content, coding, words in (
        (body, "gzip", "not valid gzip"), (gzip.compress(body)[:-3], "gzip", "in the middle"),
        (body, "br", "Content-Encoding"), (gzip.compress(body) * 2, "gzip", "behind the end"),
    ):  # fmt: skip
        status, answer = post(content, coding)
        assert status in (400, 415)
        assert words in answer["error"]
