"""Sentences in capitals."""

from __future__ import annotations

import pytest

from transduce.text import is_all_caps, to_capitals, to_sentence_case

CAPITALS = [
    "DO NOT OPEN THE DOOR!",
    "TÜR ZU, BITTE",
    "НЕ ВХОДИТЬ",
    "ΜΗΝ ΑΝΟΙΓΕΤΕ",
    "ԴՈՒՌԸ ԲԱՑ Է",
    "OPEN 犬 NOW, PLEASE, READERS",
]
OTHERS = [
    "NATO", "The USA", "I", "犬は犬", "123 456", "A B C", "", "使用 GPU 和 CPU 训练模型", "GPU 和 CPU 和 RAM",
    "باع الكاتب ملف GPS و USB أمس.",
    "서울에서 GPU 를 CPU 샀다", "ซื้อ GPU และ CPU", "קנה GPU ו CPU", "READ THIS now", "გამარჯობა NATO USA",
]  # fmt: skip


@pytest.mark.parametrize("text", CAPITALS)
def test_sentences_in_capitals(text: str) -> None:
    assert is_all_caps(text)
    lowered = to_sentence_case(text, "xx")
    assert not is_all_caps(lowered)
    assert to_capitals(lowered, "xx") == text


@pytest.mark.parametrize("text", OTHERS)
def test_text_that_is_not_in_capitals(text: str) -> None:
    assert not is_all_caps(text)


def test_first_letter_and_the_english_i() -> None:
    assert to_sentence_case("“THE DOG AND I RUN.”", "en") == "“The dog and I run.”"
    assert to_sentence_case("ICH UND I", "de") == "Ich und i"


def test_the_turkish_i_has_its_dot_or_none() -> None:
    for language in ("tr", "az", "tr-TR", "az_Latn"):
        assert to_sentence_case("IŞIK VE İYİLİK", language) == "Işık ve iyilik"
        assert to_capitals("ışık ve iyilik", language) == "IŞIK VE İYİLİK"
    assert to_capitals("iki", "de") == "IKI"
