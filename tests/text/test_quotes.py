"""A text means the same with plain and with typographic marks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.text import split_sentences, train_bpe
from transduce.text.quotes import PLAIN, QuoteStyle, plain_quotes

STYLES = [PLAIN, QuoteStyle("’", "“", "”"), QuoteStyle("’", "„", "“"), QuoteStyle("'", "“", "”")]
FORMS = {"'": "'’ʼ", '"': '"“”„'}


@pytest.mark.parametrize("style", STYLES, ids=QuoteStyle.as_text)
@settings(max_examples=50)
@given(st.lists(st.sampled_from("ab .,-('\"!"), max_size=12), st.randoms(use_true_random=False))
def test_the_form_makes_no_difference(style: QuoteStyle, characters: list[str], random: object) -> None:
    plain = "".join(characters)
    typed = "".join(random.choice(FORMS.get(each, each)) for each in characters)  # type: ignore[attr-defined]
    assert plain_quotes(typed) == plain
    assert style.apply(typed) == style.apply(plain) == style.apply(style.apply(plain))
    assert [len(each.text) for each in split_sentences(typed, "en")] == [
        len(each.text) for each in split_sentences(plain, "en")
    ]


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        (STYLES[0], 'He didn\'t say: "It\'s ("here")!"'),
        (STYLES[1], "He didn’t say: “It’s (“here”)!”"),
        (STYLES[2], "He didn’t say: „It’s („here“)!“"),
    ],
)
def test_marks_open_and_close(style: QuoteStyle, expected: str) -> None:
    assert style.apply('He didn\'t say: "It’s (“here”)!"') == expected


@pytest.mark.parametrize("style", STYLES, ids=QuoteStyle.as_text)
def test_the_style_of_a_text_is_that_of_most_marks(style: QuoteStyle) -> None:
    texts = [style.apply("He didn't say: \"It's here!\"")] * 3
    assert QuoteStyle.of_text([*texts, 'It\'s “this”, it’s "that"']) == style
    assert QuoteStyle(*style.as_text()) == style


def test_a_text_without_marks_has_plain_ones() -> None:
    assert QuoteStyle.of_text(["no marks"]) == QuoteStyle.of_text([]) == PLAIN


def test_the_style_of_a_vocabulary() -> None:
    def style(*texts: str) -> QuoteStyle:
        return QuoteStyle.of_vocabulary(train_bpe(texts * 3, vocab_size=400).vocabulary)

    assert style("l’homme qu’on “aime”") == QuoteStyle("’", "“", "”")
    assert style("it's", "it’s", 'on "aime" «ça»') == PLAIN
    assert style("der „Hund“") == QuoteStyle("'", "„", "“")
    assert style("nothing") == PLAIN
