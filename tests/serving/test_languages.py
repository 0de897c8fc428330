"""Languages of requests: codes as clients write them, recognition, texts that are in the target language."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving_tools import serving, translator
from starlette.testclient import TestClient

from transduce.inference import Translator
from transduce.serving.detection import LanguageDetector, UnservedLanguage
from transduce.serving.languages import served_codes

SENTENCES = {
    "en": "The old dog does not see the cat in the garden.",
    "de": "Der alte Hund sieht die Katze nicht.",
    "fr": "Le vieux chien ne voit pas le chat dans le jardin.",
    "pt": "O cachorro velho não vê o gato no jardim.",
    "ru": "Старая собака не видит кошку в саду.",
    "uk": "Старий собака не бачить кішку в саду.",
    "ja": "年老いた犬は庭の猫を見ていません。",
    "ar": "الكلب العجوز لا يرى القطة في الحديقة.",
    "hi": "बूढ़ा कुत्ता बगीचे में बिल्ली को नहीं देखता।",
    "zh-Hans": "这只老狗没有看见花园里的猫。",
    "zh-Hant": "這隻老狗沒有看見花園裡的貓。",
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("models")
    directions = ("en-de", "de-en", "en-zh-Hant", "en-zh-Hans", "pt-BR-en", "en-no")
    with serving(*(translator(folder / each, direction=each) for each in directions)) as client:
        yield client


def translate(client: TestClient, q: Any, source: str, target: str, **fields: Any) -> tuple[int, Any]:
    answer = client.post("/translate", json={"q": q, "source": source, "target": target, **fields})
    return answer.status_code, answer.json()


@pytest.mark.parametrize(
    ("source", "target", "same_as"),
    [
        ("EN", "de", ("en", "de")), ("en", "DE", ("en", "de")), ("eng", "deu", ("en", "de")),
        ("en-US", "de_AT", ("en", "de")), ("en", "zh", ("en", "zh-Hans")), ("en", "zh-CN", ("en", "zh-Hans")),
        ("en", "zh_Hans", ("en", "zh-Hans")), ("en", "zh-TW", ("en", "zh-Hant")), ("en", "zt", ("en", "zh-Hant")),
        ("en", "ZH-HANT", ("en", "zh-Hant")), ("pt", "en", ("pt-BR", "en")), ("pb", "en", ("pt-BR", "en")),
        ("pt_br", "en-GB", ("pt-BR", "en")), ("en", "nb", ("en", "no")),
    ],
)  # fmt: skip
def test_codes_are_taken_as_clients_write_them(
    client: TestClient, source: str, target: str, same_as: tuple[str, str]
) -> None:
    expected = translate(client, "The dog sleeps.", *same_as)
    assert expected[0] == 200
    assert translate(client, "The dog sleeps.", source, target) == expected
    fields = {"text": ["The dog sleeps."], "source_lang": source, "target_lang": target}
    answer = client.post("/v2/translate", json=fields).json()
    assert answer["translations"][0]["text"] == expected[1]["translatedText"]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("pt-PT", "en"),
        ("en", "fr"),
        ("english", "de"),
        ("en", "d"),
        ("zh-Hans", "zh-Hant"),
        ("en", "zh-Latn"),
        ("de", "no"),
    ],
)
def test_other_codes_are_refused(client: TestClient, source: str, target: str) -> None:
    status, answer = translate(client, "The dog sleeps.", source, target)
    assert status == 400
    assert "not supported" in answer["error"] or "not available" in answer["error"]


def test_all_languages_are_named(client: TestClient) -> None:
    names = {each["code"]: each["name"] for each in client.get("/languages").json()}
    assert names["zh-Hant"] == "Chinese (traditional)"
    assert names["pt-BR"] == "Portuguese (Brazilian)"
    assert {each["language"] for each in client.get("/v2/languages?type=source").json()} == {"DE", "EN", "PT"}
    assert {each["language"] for each in client.get("/v2/languages?type=target").json()} == {
        "DE", "EN-GB", "EN-US", "NO", "ZH-HANS", "ZH-HANT"
    }  # fmt: skip


@pytest.mark.parametrize("language", SENTENCES)
def test_any_language_is_recognised(client: TestClient, language: str) -> None:
    ranked = client.post("/detect", json={"q": SENTENCES[language]}).json()
    assert ranked[0]["language"] == {"pt": "pt-BR"}.get(language, language)
    assert ranked[0]["confidence"] > 50
    assert [each["confidence"] for each in ranked] == sorted((each["confidence"] for each in ranked), reverse=True)
    assert client.post("/detect", json={"q": "2024 - 31"}).json()[0]["confidence"] == 0.0


@pytest.mark.parametrize("language", ["en", "de", "no", "zh-Hans"])
def test_a_text_in_the_target_language_stays(client: TestClient, language: str) -> None:
    text = SENTENCES.get(language, "Den gamle hunden ser ikke katten i hagen, og det gjør ingenting.")
    status, answer = translate(client, text, "auto", language, alternatives=2)
    assert (status, answer["translatedText"], answer["alternatives"]) == (200, text, [])
    assert answer["detectedLanguage"]["language"] == language
    assert answer["detectedLanguage"]["confidence"] > 50
    assert translate(client, text, language, language) == (200, {"translatedText": text})
    deepl = client.post("/v2/translate", json={"text": text, "target_lang": language}).json()["translations"][0]
    assert deepl["text"] == text
    assert deepl["detected_source_language"] == language.partition("-")[0].upper()
    sentences = client.post("/sentences", json={"q": text, "target": language}).json()
    assert (sentences["source"], sentences["target"]) == (language, language)
    assert sentences["sentences"][0]["translation"] == text
    assert client.post("/alternatives", json={"q": text, "target": language}).status_code == 400


def test_a_list_of_several_languages(client: TestClient) -> None:
    texts = [SENTENCES["en"], SENTENCES["de"], "31", SENTENCES["en"]]
    status, answer = translate(client, texts, "auto", "de")
    assert status == 200
    assert [each["language"] for each in answer["detectedLanguage"]] == ["en", "de", "en", "en"]
    assert answer["detectedLanguage"][2]["confidence"] == 0.0
    assert answer["translatedText"][1:3] == texts[1:3]
    assert answer["translatedText"][0] == answer["translatedText"][3] != texts[0]


@pytest.mark.parametrize("language", ["fr", "ru", "ja", "ar", "hi"])
def test_a_text_that_is_clearly_in_another_language_is_refused(client: TestClient, language: str) -> None:
    status, answer = translate(client, [SENTENCES["en"], SENTENCES[language]], "auto", "de")
    assert status == 400
    assert "looks like" in answer["error"]
    assert SENTENCES[language] not in answer["error"]
    assert translate(client, SENTENCES[language], "en", "de")[0] == 200  # who names the source is believed


def test_what_is_unclear_is_in_a_source_language() -> None:
    detector = LanguageDetector(["de", "en"])
    for text in ("Hand", "Name", "OK", "Lorem", "Tom", "Nashville, Tennessee", "42 km", ""):
        assert detector.source_of(text, ["en"], "de").language == "en", text
    with pytest.raises(UnservedLanguage, match="fr"):
        detector.source_of(SENTENCES["fr"], ["en"], "de")


def test_the_nearest_code_comes_first() -> None:
    served = ["zh-Hans", "zh-Hant", "zh", "pt-PT", "pt-BR"]
    assert served_codes("zh", served)[0] == "zh"
    assert served_codes("zh-hant-TW", served) == ["zh-Hant", "zh"]
    assert served_codes("pt-br", served) == ["pt-BR"]
    assert served_codes("pt", served) == ["pt-BR", "pt-PT"]
    assert served_codes("x", served) == served_codes("", served) == []


def test_a_model_within_one_language_corrects_texts_in_it(tmp_path: Path) -> None:
    text = "The dog sleeps."
    folder = translator(tmp_path / "en-en", direction="en-en", seed=0)
    with serving(folder, translator(tmp_path / "en-de", direction="en-de")) as client:
        corrected = Translator.load(folder).translate([text])[0]
        assert corrected != text
        for source in ("en", "auto"):
            assert translate(client, text, source, "en")[1]["translatedText"] == corrected
        fields = {"text": [text], "source_lang": "EN", "target_lang": "EN"}
        assert client.post("/v2/translate", json=fields).json()["translations"][0]["text"] == corrected
        answer = client.post("/sentences", json={"q": text, "source": "en", "target": "en"}).json()
        assert [each["translation"] for each in answer["sentences"]] == [corrected]
        assert translate(client, "Der Hund schläft.", "de", "de")[1]["translatedText"] == "Der Hund schläft."
