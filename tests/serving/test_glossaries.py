"""Glossaries over HTTP, as the clients of DeepL send them; and the terms and memories of a server."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from serving_tools import RunningServer, fits, serving, translator
from starlette.testclient import TestClient

from said import says
from small_packages import docx
from transduce.errors import ConfigError, DataError
from transduce.inference import Translator
from transduce.memories.building import write_memory
from transduce.serving import glossaries, term_lists
from transduce.serving.access import read_access
from transduce.serving.compute_threads import Urgency
from transduce.serving.glossaries import GlossaryStore
from transduce.serving.glossary_entries import entries_of
from transduce.serving.http import ApiError
from transduce.serving.openapi import openapi
from transduce.serving.term_lists import TermTranslators, TranslatorLists
from transduce.terms import Term, Terms

EN_DE = {"source_lang": "en", "target_lang": "de"}
DOG = "dog\tHund"
TEXTS = ["The dog sees a cat.", "A woman reads."]
FORM = {"text": TEXTS, "source_lang": "EN", "target_lang": "DE"}


def asked(client: TestClient, method: str, path: str, *, status: int = 200, route: str = "", **options: Any) -> Any:
    """Send a request whose answer has a status, and is as the description says."""
    answer = client.request(method, path, **options)
    assert answer.status_code == status, answer.text
    described = openapi()["paths"][route or path.partition("?")[0]][method.lower()]["responses"][str(status)]
    if not described.get("content"):
        assert answer.content == b""
        return None
    kind = answer.headers["content-type"].partition(";")[0]
    assert kind in described["content"]
    if kind != "application/json":
        return answer.text
    assert fits(answer.json(), described["content"][kind]["schema"]), answer.text
    return answer.json()


def made(client: TestClient, entries: str = DOG, **fields: Any) -> str:
    """Make a glossary; return its id."""
    body = {"name": "animals", **EN_DE, "entries": entries, "entries_format": "tsv"} | fields
    return str(asked(client, "POST", "/v2/glossaries", status=201, json=body)["glossary_id"])


def translations(client: TestClient, status: int = 200, **fields: Any) -> Any:
    answer = asked(client, "POST", "/v2/translate", status=status, json=FORM | fields)
    return answer["message"] if status != 200 else [each["text"] for each in answer["translations"]]


ONE, ONE_V2 = "/v3/glossaries/{glossary_id}", "/v2/glossaries/{glossary_id}"
OF_ONE = f"{ONE}/dictionaries"


def test_a_glossary_of_two_languages(client: TestClient) -> None:
    id = made(client, "dog\tHund\r\n\r\n cat \tKatze\n")
    [listed] = [each for each in asked(client, "GET", "/v2/glossaries")["glossaries"] if each["glossary_id"] == id]
    expected = {"name": "animals", "ready": True, **EN_DE, "entry_count": 2}
    assert expected.items() <= listed.items()
    assert asked(client, "GET", f"/v2/glossaries/{id}", route=ONE_V2) == listed
    path = f"/v2/glossaries/{id}/entries"
    assert asked(client, "GET", path, route=f"{ONE_V2}/entries") == "dog\tHund\ncat\tKatze"
    asked(client, "DELETE", f"/v2/glossaries/{id}", status=204, route=ONE_V2)
    for method, rest in (("GET", ""), ("DELETE", ""), ("GET", "/entries")):
        gone = asked(client, method, f"/v2/glossaries/{id}{rest}", status=404, route=ONE_V2 + rest)
        assert says(gone["message"], "Glossary not found")
    assert asked(client, "GET", "/v2/glossary-language-pairs") == {"supported_languages": [EN_DE]}


def test_a_glossary_of_several_languages(translator_folder: Path, tmp_path: Path) -> None:
    with serving(translator_folder, translator(tmp_path / "de-en" / "model", direction="de-en")) as client:
        de_en = {"source_lang": "DE", "target_lang": "EN-GB"}
        dictionaries = [EN_DE | {"entries": DOG}, de_en | {"entries": "Hund,dog\n", "entries_format": "csv"}]
        body = {"name": "animals", "dictionaries": dictionaries}
        glossary = asked(client, "POST", "/v3/glossaries", status=201, json=body)
        id, path = glossary["glossary_id"], f"/v3/glossaries/{glossary['glossary_id']}"
        counts = [EN_DE | {"entry_count": 1}, {"source_lang": "de", "target_lang": "en", "entry_count": 1}]
        assert glossary["dictionaries"] == counts
        assert asked(client, "GET", path, route=ONE) == glossary
        assert asked(client, "GET", "/v3/glossaries")["glossaries"] == [glossary]
        assert asked(client, "GET", "/v2/glossaries")["glossaries"] == []  # it has more than one dictionary
        assert asked(client, "GET", f"/v2/glossaries/{id}", status=404, route=ONE_V2)
        more = EN_DE | {"entries": "dog\tKöter\ncat\tKatze"}
        merged = asked(client, "PATCH", path, route=ONE, json={"name": "pets", "dictionaries": [more]})
        assert (merged["name"], merged["dictionaries"][0]["entry_count"]) == ("pets", 2)
        query = "source_lang=EN&target_lang=DE"
        [entries] = asked(client, "GET", f"{path}/entries?{query}", route=f"{ONE}/entries")["dictionaries"]
        assert entries == EN_DE | {"entries": "dog\tKöter\ncat\tKatze", "entries_format": "tsv"}
        new = EN_DE | {"entries": "man\tMann"}
        assert asked(client, "PUT", f"{path}/dictionaries", route=OF_ONE, json=new) == EN_DE | {"entry_count": 1}
        asked(client, "DELETE", f"{path}/dictionaries?source_lang=de&target_lang=en", status=204, route=OF_ONE)
        asked(client, "DELETE", f"{path}/dictionaries?source_lang=de&target_lang=en", status=404, route=OF_ONE)
        assert asked(client, "GET", f"/v2/glossaries/{id}", route=ONE_V2)["entry_count"] == 1
        asked(client, "PATCH", path, status=400, route=ONE, json={})
        asked(client, "DELETE", path, status=204, route=ONE)


@pytest.mark.parametrize(
    ("fields", "facts"),
    [
        ({"entries": "dog Hund"}, ["line 1", "TAB"]),
        ({"entries": "cat\tKatze\n\ndog\tHund\tx"}, ["line 3"]),
        ({"entries": "dog\tHund\ndog\tKöter"}, ["line 2", "earlier"]),
        ({"entries": "dog\t"}, ["line 1"]),
        ({"entries": "dog\tHu\u0007nd"}, ["line 1", "control"]),
        ({"entries": "dog\t" + "ö" * 513}, ["line 1", "1,024"]),
        ({"entries": "\n\n"}, ["none"]),
        ({"entries": '"dog,Hund', "entries_format": "csv"}, ["line 1"]),
        ({"entries": "dog,Hund,EN", "entries_format": "csv"}, ["line 1"]),
        ({"entries_format": "xlsx"}, ["entries_format"]),
        ({"name": " "}, ["name"]), ({"name": "a\nb"}, ["name"]), ({"name": "ö" * 513}, ["name"]),
        ({"target_lang": "FR"}, ["target_lang"]), ({"source_lang": "DE"}, ["source_lang"]),
        ({"source_lang": "no code"}, ["source_lang"]), ({"entries": ["dog"]}, ["entries"]),
        ({"colour": "red"}, ["colour"]),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_glossary_is_refused(client: TestClient, fields: dict[str, Any], facts: list[object]) -> None:
    body = {"name": "animals", **EN_DE, "entries": DOG} | fields
    assert says(asked(client, "POST", "/v2/glossaries", status=400, json=body)["message"], *facts)
    if "name" not in fields and "colour" not in fields:
        of_several = {"name": "animals", "dictionaries": [{**EN_DE, "entries": DOG} | fields]}
        assert says(asked(client, "POST", "/v3/glossaries", status=400, json=of_several)["message"], *facts)


def test_other_requests_that_are_refused(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    one = EN_DE | {"entries": DOG}
    for dictionaries in (None, [], "dog", [1], [one, one], [{}]):
        body = {"name": "animals", "dictionaries": dictionaries}
        asked(client, "POST", "/v3/glossaries", status=400, json=body)
    for id in ("x", "..%2f..%2fetc", "%00", "a" * 5000):
        assert client.get(f"/v3/glossaries/{id}").status_code == 404
    wrong = client.put("/v2/glossaries")
    assert (wrong.status_code, list(wrong.json())) == (405, ["message"])
    assert client.post("/v2/glossaries", content=b'{"name": "\xff"}').status_code == 400
    assert client.post("/v2/glossaries", content=b"entries=dog%09Hu%FFnd", headers=FORM_TYPE).status_code == 400
    asked(client, "POST", "/v2/glossaries", status=400, data={"name": "a", **EN_DE, "entries": "dog%09Hund"})
    form = asked(client, "POST", "/v2/glossaries", status=201, data={"name": "a", **EN_DE, "entries": DOG})
    asked(client, "DELETE", f"/v3/glossaries/{form['glossary_id']}", status=204, route=ONE)
    monkeypatch.setattr(glossaries, "MAX_GLOSSARY_BYTES", 100)
    large = {"name": "a", **EN_DE, "entries": "\n".join(f"dog {n}\tHund" for n in range(20))}
    asked(client, "POST", "/v2/glossaries", status=413, json=large)


FORM_TYPE = {"Content-Type": "application/x-www-form-urlencoded"}


def test_terms_of_a_glossary_are_kept(client: TestClient, translator_folder: Path) -> None:
    id = made(client, "dog\tHund\nsees\tsieht")
    plain, with_terms = translations(client), translations(client, glossary_id=id)
    model = Translator.load(translator_folder)
    terms = Terms((Term("dog", "Hund"), Term("sees", "sieht")))
    assert with_terms == model.with_terms(terms, are_required=True).translate(TEXTS)
    assert {"Hund", "sieht"} <= {*with_terms[0].split()}
    assert with_terms[0] != plain[0]
    assert with_terms[1] == plain[1]
    assert translations(client, glossary_ids=[id]) == with_terms
    other = made(client, "dog\tKatze\ncat\talten")
    assert {"Hund", "alten"} <= {*translations(client, glossary_ids=[id, other])[0].split()}
    tagged = translations(client, text=["The <b>dog</b>", 'A <x id="1"></x> dog'], tag_handling="xml", glossary_id=id)
    assert [each.count("Hund") for each in tagged] == [1, 1]
    assert tagged[1].count('<x id="1"></x>') == 1
    for fields, status, facts in (
        ({"glossary_id": "x"}, 404, ["Glossary not found"]),
        ({"glossary_id": id, "source_lang": None}, 400, ["source_lang"]),
        ({"glossary_id": id, "glossary_ids": [id]}, 400, ["glossary_ids"]),
        ({"glossary_ids": [id] * 6}, 400, ["glossary_ids"]),
        ({"glossary_id": id, "source_lang": "DE"}, 404, ["DE to DE"]),
    ):
        assert says(translations(client, status, **fields), *facts)
    asked(client, "PUT", f"/v3/glossaries/{id}/dictionaries", route=OF_ONE, json=EN_DE | {"entries": "dog\tKatze"})
    assert "Katze" in translations(client, glossary_id=id)[0].split()  # at once
    asked(client, "DELETE", f"/v3/glossaries/{id}", status=204, route=ONE)
    assert says(translations(client, 404, glossary_id=id), "Glossary not found")


def test_requests_at_once_with_glossaries_that_come_and_go(client: TestClient) -> None:
    targets = ["Hund", "Katze", "alten", "sieht", "nicht", "Die"]
    plain, stop = translations(client), threading.Event()

    def changing() -> None:
        while not stop.is_set():
            id = made(client, "dog\tHund\ncat\tKatze")
            client.request("PUT", f"/v3/glossaries/{id}/dictionaries", json=EN_DE | {"entries": DOG})
            client.request("DELETE", f"/v2/glossaries/{id}")

    def one(number: int) -> None:
        target = targets[number % len(targets)]
        id = made(client, f"dog\t{target}")
        with ThreadPoolExecutor(3) as pool:
            several = [pool.submit(translations, client, glossary_id=id) for _ in range(2)]
            assert pool.submit(translations, client).result() == plain
        for each in several:
            assert target in each.result()[0].split()
            assert each.result()[1] == plain[1]
        waiting = client.post("/v2/translate", json=FORM | {"glossary_id": id})
        assert waiting.status_code == 200
        client.delete(f"/v2/glossaries/{id}")
        assert translations(client, 404, glossary_id=id)

    thread = threading.Thread(target=changing)
    thread.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(one, range(6)))
    finally:
        stop.set()
        thread.join()


def test_a_glossary_may_go_while_a_request_waits(client: TestClient) -> None:
    served, has_begun, may_go_on = client.app_state.models[0], threading.Event(), threading.Event()  # type: ignore[attr-defined]
    id = made(client, "dog\tHund\ncat\tKatze")
    with ThreadPoolExecutor(2) as pool:
        busy = pool.submit(served.compute.run, lambda: has_begun.set() or may_go_on.wait(60), urgency=Urgency.BRIEF)
        assert has_begun.wait(60)
        asked_for = pool.submit(translations, client, glossary_id=id)
        give_up = time.monotonic() + 60
        while not served.compute.n_waiting and not asked_for.done():
            assert time.monotonic() < give_up
            time.sleep(0.005)
        assert client.delete(f"/v2/glossaries/{id}").status_code == 204
        may_go_on.set()
        assert {"Hund", "Katze"} <= {*asked_for.result()[0].split()}
        busy.result()
    assert translations(client, 404, glossary_id=id)


def test_each_key_has_its_own(translator_folder: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text('[[key]]\nname = "a"\nkey = "a"\n[[key]]\nname = "b"\nkey = "b"\n')
    with serving(translator_folder, access=read_access(keys)) as client:
        a, b = ({"headers": {"Authorization": f"DeepL-Auth-Key {key}"}} for key in "ab")
        body = {"name": "animals", **EN_DE, "entries": DOG}
        assert client.post("/v2/glossaries", json=body).status_code == 403
        id = asked(client, "POST", "/v2/glossaries", status=201, json=body, **a)["glossary_id"]
        assert len(asked(client, "GET", "/v3/glossaries", **a)["glossaries"]) == 1
        assert asked(client, "GET", "/v3/glossaries", **b)["glossaries"] == []
        asked(client, "DELETE", f"/v2/glossaries/{id}", status=404, route=ONE_V2, **b)
        asked(client, "POST", "/v2/translate", status=404, json=FORM | {"glossary_id": id}, **b)
        asked(client, "POST", "/v2/translate", json=FORM | {"glossary_id": id}, **a)


def test_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, pair = tmp_path / "a" / "b", ("en", "de")
    store = GlossaryStore(folder)
    ids = [store.add("x", f"g{n}", {pair: {"dog": "Hund", "cat": f"Katze {n}"}}).id for n in range(3)]
    store.remove("x", ids[1])
    store.change("x", ids[2], name="new", merged={pair: {"man": "Mann"}})
    again = GlossaryStore(folder)
    assert [(each.id, each.name) for each in again.all_of("x")] == [(ids[0], "g0"), (ids[2], "new")]
    assert again.find("x", ids[2]).dictionaries[pair].entries == {"dog": "Hund", "cat": "Katze 2", "man": "Mann"}
    terms = again.terms("x", [ids[0]], pair)
    assert again.terms("x", [ids[0]], pair) is terms  # read once
    again.change("x", ids[0], name="other")
    assert again.terms("x", [ids[0]], pair) is terms
    again.change("x", ids[0], replaced={pair: {"dog": "Köter"}})
    assert again.terms("x", [ids[0]], pair).terms == (Term("dog", "Köter"),)
    monkeypatch.setattr(glossaries, "MAX_READ_ENTRIES", 1)
    assert again.terms("x", [ids[2], ids[0]], pair).found("a dog") == [Term("dog", "Hund")]
    assert len(again._terms) == 1
    monkeypatch.setattr(glossaries, "MAX_CLIENT_GLOSSARIES", 3)
    more = again.add("x", "more", {pair: {"a": "b"}})
    with pytest.raises(ApiError, match="Quota exceeded: there are 3"):
        again.add("x", "one", {pair: {"a": "b"}})
    monkeypatch.setattr(glossaries, "MAX_CLIENT_BYTES", 100)
    with pytest.raises(ApiError, match="Quota exceeded: all"):
        again.change("x", more.id, merged={pair: {"c": "d" * 100}})
    again.add("y", "one", {pair: {"a": "b"}})
    (folder / f"{ids[0]}.json").write_text("{}")
    with pytest.raises(DataError, match="is no glossary of format 1"):
        GlossaryStore(folder)
    (folder / f"{ids[0]}.json").write_text("{")
    with pytest.raises(DataError, match="is not valid JSON"):
        GlossaryStore(folder)
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot keep glossaries"):
        GlossaryStore(tmp_path / "file")


def test_what_cannot_be_written_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, pair = GlossaryStore(tmp_path), ("en", "de")
    kept = store.add("", "a", {pair: {"dog": "Hund"}})

    def fails(path: Path, value: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(glossaries, "write_json", fails)
    for change in (
        lambda: store.add("", "b", {pair: {"cat": "Katze"}}),
        lambda: store.change("", kept.id, replaced={pair: {"cat": "Katze"}}),
    ):
        with pytest.raises(ApiError, match="No space left") as raised:
            change()
        assert raised.value.status == 503
    assert store.all_of("") == [kept]


def test_a_large_table_is_read_fast() -> None:
    assert len(entries_of("\n".join(f"word {n}\tWort {n}" for n in range(50_000)), "tsv")) == 50_000


def test_terms_and_memory_of_a_server(translator_folder: Path, tmp_path: Path) -> None:
    memory, terms = tmp_path / "m.tm", tmp_path / "terms.tsv"
    pairs = [("A cat", "Ein Kater"), ("The 3 old dogs", "Die 3 alten Hunde"), ("See https://x.org", "Zu https://x.org")]
    write_memory(memory, [pairs], src_language="en", tgt_language="de")
    terms.write_text("woman\tKatze\n")
    lists = TranslatorLists(terms, are_terms_required=True, memories=[memory])
    with serving(translator_folder, lists=lists) as client:
        fields = {"q": "A cat\n  the woman\nThe 5 old dogs\r\n", "source": "en", "target": "de"}
        lines = client.post("/translate", json=fields).json()["translatedText"].splitlines(keepends=True)
        assert (lines[0], lines[2]) == ("Ein Kater\n", "Die 5 alten Hunde\r\n")
        assert lines[1].startswith("  ")
        assert "Katze" in lines[1].split()
        address = fields | {"q": " See https://y.org/a "}
        assert client.post("/translate", json=address).json()["translatedText"] == " Zu https://y.org/a "
        html = fields | {"q": "<p>A cat</p><p>A <b>cat</b></p>", "format": "html"}
        answer = client.post("/translate", json=html).json()["translatedText"]
        assert answer.startswith("<p>Ein Kater</p><p>")
        assert "Kater" not in answer[18:]
        sent = client.post("/translate_file", files={"file": ("a.txt", b"A cat\nthe woman\n")}, data=fields | {"q": ""})
        document = client.get(sent.json()["translatedFileUrl"]).text.splitlines()
        assert document == ["Ein Kater", lines[1].strip()]
        id = made(client, DOG)  # besides the terms of the server
        [both] = translations(client, text=["the dog sees the woman"], glossary_id=id)
        assert {"Hund", "Katze"} <= {*both.split()}
        client.app_state.models[0].reload()  # type: ignore[attr-defined]
        assert translations(client, text=["the dog sees the woman"], glossary_id=id) == [both]


def test_translators_with_terms_stay_ready(translator_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, ready = Translator.load(translator_folder), TermTranslators()
    lists = [Terms((Term("dog", "Hund"), Term(f"cat {n}", "Katze"))) for n in range(3)]
    made = [ready.of(model, each) for each in lists]
    assert [ready.of(model, each) for each in lists] == made
    assert {id(each.engine) for each in made} == {id(model.engine)}  # they share it
    monkeypatch.setattr(term_lists, "MAX_READY_TERMS", 4)
    assert ready.of(model, new := Terms((Term("a", "b"),))).terms is new
    assert ready.of(model, lists[2]) is made[2]
    assert ready.of(model, lists[0]) is not made[0]
    ready.clear()
    assert ready.of(model, lists[2]) is not made[2]


TMX = """<?xml version="1.0"?>
<tmx version="1.4"><header srclang="en" datatype="plaintext" segtype="sentence" adminlang="en" creationtool="a"
 creationtoolversion="1" o-tmf="a"/><body><tu><tuv xml:lang="en"><seg>A cat</seg></tuv><tuv xml:lang="de"><seg>Ein
 Kater</seg></tuv></tu></body></tmx>
"""


def test_what_a_server_avoids(translator_folder: Path, tmp_path: Path) -> None:
    plain = Translator.load(translator_folder).translate(["the dog sees the woman"])[0].rstrip(".")
    (tmp_path / "never.txt").write_text(plain.split()[-1] + "\n")
    lists = TranslatorLists(avoid=tmp_path / "never.txt")
    with serving(translator_folder, lists=lists) as client:
        [answer] = translations(client, text=["the dog sees the woman"])
        assert answer.split()
        assert plain.split()[-1] not in answer.split()


def test_lists_that_do_not_fit(tmp_path: Path) -> None:
    terms, memory, other = tmp_path / "terms.tsv", tmp_path / "m.tm", tmp_path / "n.tm"
    terms.write_text("dog\tHund\n")
    for path in (memory, other):
        write_memory(path, [[("A cat", "Ein Kater")]], src_language="en", tgt_language="de")
    both = [("en", "de"), ("de", "en")]
    TranslatorLists(terms, memories=[memory]).require_use(both[:1])
    table, tmx = tmp_path / "m.tsv", tmp_path / "m.tmx"
    table.write_text("A cat\tEin Kater\n")
    tmx.write_text(TMX)
    TranslatorLists(memories=[table]).require_use(both[:1])
    TranslatorLists(memories=[tmx]).require_use(both)
    for lists, directions, words in (
        (TranslatorLists(terms), both, "does not say its languages"),
        (TranslatorLists(memories=[memory]), both[1:], "for no direction that is served"),
        (TranslatorLists(memories=[memory, other]), both, "name one"),
        (TranslatorLists(memories=[memory, tmx]), both, "name one"),
        (TranslatorLists(memories=[table]), both, "does not say its languages"),
        (TranslatorLists(memories=[tmx]), [("en", "fr")], "for no direction that is served"),
    ):
        with pytest.raises(ConfigError, match=words):
            lists.require_use(directions)


@pytest.mark.merge
def test_by_the_package_of_deepl(
    run_server: Callable[..., RunningServer], translator_folder: Path, tmp_path: Path
) -> None:
    deepl = pytest.importorskip("deepl")
    folder = tmp_path / "glossaries"
    server = run_server(translator_folder, "--glossaries", folder)
    client = deepl.DeepLClient("key", server_url=server.url)
    made = client.create_glossary("animals", "EN", "DE", {"dog": "Hund", "sees": "sieht"})
    assert (made.ready, made.entry_count, made.source_lang, made.target_lang) == (True, 2, "EN", "DE")
    assert client.get_glossary_entries(made) == {"dog": "Hund", "sees": "sieht"}
    assert client.get_glossary(made.glossary_id).name == "animals"
    text = client.translate_text_with_glossary("The dog sees a cat.", made).text
    assert {"Hund", "sieht"} <= {*text.split()}
    from_csv = client.create_glossary_from_csv("csv", "EN", "DE", 'dog,Hund,EN,DE\n"cat, old",alten,EN,DE\n')
    assert client.get_glossary_entries(from_csv) == {"dog": "Hund", "cat, old": "alten"}
    client.delete_glossary(from_csv)
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_glossary(from_csv.glossary_id)
    of = deepl.api_data.MultilingualGlossaryDictionaryEntries
    several = client.create_multilingual_glossary("pets", [of("EN", "DE", {"cat": "Katze"})])
    client.update_multilingual_glossary_name(several, "more pets")
    client.update_multilingual_glossary_dictionary(several, of("EN", "DE", {"dog": "Hund"}))
    [dictionary] = client.get_multilingual_glossary(several.glossary_id).dictionaries
    assert dictionary.entry_count == 2
    [entries] = client.get_multilingual_glossary_entries(several, "EN", "DE").dictionaries
    assert entries.entries == "cat\tKatze\ndog\tHund"
    assert client.replace_multilingual_glossary_dictionary(several, of("EN", "DE", {"man": "Hund"})).entry_count == 1
    text = client.translate_text("A man", source_lang="EN", target_lang="DE", glossary=several).text
    assert "Hund" in text.split()
    assert [each.name for each in client.list_multilingual_glossaries()] == ["animals", "more pets"]
    body = (
        '<w:p><w:r><w:t xml:space="preserve">the dog </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>sees</w:t></w:r></w:p>'
    )
    report, out = tmp_path / "report.docx", tmp_path / "out.docx"
    report.write_bytes(docx(body))
    client.translate_document_from_filepath(report, out, source_lang="EN", target_lang="DE", glossary=made)
    with ZipFile(out) as package:
        text = package.read("word/document.xml").decode()
    assert "Hund" in re.sub("<[^>]*>", "", text)
    assert text.count("<w:b/>") == 1
    with pytest.raises(deepl.DeepLException, match="Glossary not found"):
        client.translate_document_from_filepath(report, out, source_lang="EN", target_lang="DE", glossary="x")
    client.delete_multilingual_glossary_dictionary(several, dictionary)
    client.delete_multilingual_glossary(several)
    server.stop()
    again = deepl.DeepLClient("key", server_url=run_server(translator_folder, "--glossaries", folder).url)
    assert [each.glossary_id for each in again.list_glossaries()] == [made.glossary_id]
