"""Numbers in the forms of languages."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.text.numbers import articles, has_word_of_number, number_value, number_words, style_of, translated_number

LANGUAGES = ("en", "de", "fr", "nl", "pt-BR", "ru", "zh", "tr")
FORMS = [  # of one number in English, German, French, Dutch
    ("12.5 kg", "12,5 kg", "12,5 kg", "12,5 kg"),
    ("1,500 km", "1.500 km", "1\u00a0500 km", "1.500 km"),
    ("$3.50", "3,50 $", "3,50 $", "$3,50"),
    ("US$3.50", "3,50 US$", "3,50 US$", "US$3,50"),
    ("-$3.50", "-3,50 $", "-3,50 $", "-$3,50"),
    ("1.5-2.5 kg", "1,5-2,5 kg", "1,5-2,5 kg", "1,5-2,5 kg"),
    ("3.5 x 4 cm", "3,5 x 4 cm", "3,5 x 4 cm", "3,5 x 4 cm"),
    ("$5-1,000", "5-1.000 $", "5-1\u00a0000 $", "$5-1.000"),
    ("500-1,000", "500-1.000", "500-1\u00a0000", "500-1.000"),
    ("€1,234,567.89", "1.234.567,89 €", "1\u00a0234\u00a0567,89 €", "€1.234.567,89"),
    ("50%", "50%", "50%", "50%"),
    ("16 GB", "16 GB", "16 GB", "16 GB"),
    ("1,000", "1.000", "1\u00a0000", "1.000"),
    ("-1.5 °C", "-1,5 °C", "-1,5 °C", "-1,5 °C"),
]


@pytest.mark.parametrize("forms", FORMS)
def test_each_language_has_its_form(forms: tuple[str, ...]) -> None:
    for (source, form), (target, expected) in product(zip(LANGUAGES, forms, strict=False), repeat=2):
        assert translated_number(form, source, target) == expected


@pytest.mark.parametrize(
    "text", ["7.4", "1.2.3", "192.168.178.100", "24.12.2025", "1,2,3", "x", "", "10:30", "12,34,56"]
)
def test_what_may_be_no_number_stays(text: str) -> None:
    for source, target in product(LANGUAGES, repeat=2):
        if not (source in ("de", "nl", "pt-BR", "tr") and text == "1.2.3"):
            assert translated_number(text, source, target) == text
    assert translated_number("1,500 km", "xx", "de") == translated_number("1,500 km", "en", "xx") == "1,500 km"


def test_the_sign_is_where_the_target_language_has_it() -> None:
    assert [translated_number(each, "de", "en") for each in ("€ 3,50", "3,50 €", "5-10 €")] == [
        "€3.50", "€3.50", "€5-10",
    ]  # fmt: skip
    assert [translated_number(each, "en", "de") for each in ("50 $", "50\u00a0$", "$5-$10", "$5 - $10", "$5-€10")] == [
        "50 $", "50\u00a0$", "5-10 $", "5 - 10 $", "$5-€10",
    ]  # fmt: skip
    assert translated_number("1,5-2.5 kg", "en", "de") == "1,5-2.5 kg"  # one is not English


@given(
    st.integers(0, 10**12), st.text("0123456789", max_size=3), st.sampled_from(LANGUAGES), st.sampled_from(LANGUAGES)
)
def test_forms_keep_the_value_and_come_back(whole: int, decimals: str, source: str, target: str) -> None:
    english = f"{whole:,}{'.' if decimals else ''}{decimals} kg"
    form = translated_number(english, "en", source)
    translated = translated_number(form, source, target)
    assert translated_number(translated, target, source) == form
    value = number_value(form.removesuffix(" kg"), source)
    assert value == number_value(translated.removesuffix(" kg"), target)
    assert value == f"{whole}{'.' if decimals else ''}{decimals}"


def test_values() -> None:
    same = {"en": "1,500.5", "de": "1.500,5", "fr": "1 500,5", "hi": "१,५००.५", "ar": "١٬٥٠٠٫٥", "xx": "1500.5"}
    assert {number_value(text, language) for language, text in same.items()} == {"1500.5"}
    assert number_value("1,00,000", "hi") == "100000"
    assert [number_value(text, "de") for text in ("10:30", "1.2.3", "192.168.178.100", "")] == [None] * 4


def test_small_numbers_as_words() -> None:
    assert number_words("Zwölf Hunde, ein Haus und zwei Katzen", "de-AT") == Counter({"12": 1, "2": 1})
    assert number_words("三个和两只", "zh") == Counter({"3": 1, "2": 1})
    assert not number_words("two", "xx")
    assert has_word_of_number("Der zweite", "2", "de-AT")
    assert has_word_of_number("dreidimensional", "3", "de")
    assert not has_word_of_number("Der zweite", "3", "de")
    assert has_word_of_number("x", "3", "xx")
    assert articles("Un fichier, l'une", "fr-CA") == [(0, 2), (14, 17)]
    assert style_of("zh-Hans") == style_of("en") != style_of("DE")
