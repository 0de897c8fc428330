"""Sentence and clause splitting, and joining without loss (except line ends)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.text import join_segments, split_clauses, split_sentences

ENGLISH = [
    "Dr. Smith paid 3.50 dollars.",
    'She asked: "Is it good?"',
    "Mr. and Mrs. Jones live in the U.S. now.",
    "See fig. 3 for details, e.g. the red line.",
    "Version 2.0.1 is out!",
    "Really?!",
]
GERMAN = ["Am 3. Mai kam Dr. Müller nach Berlin.", "Das sind ca. 5 km, z. B. zu Fuß.", "Er sagte: „Gut.“"]


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize(("sentences", "language"), [(ENGLISH, "en"), (GERMAN, "de")])
def test_sentences_end_where_people_end_them(sentences: list[str], language: str) -> None:
    assert [each.text for each in split_sentences(" ".join(sentences), language)] == sentences


def test_no_sentence_ends_inside_a_name() -> None:
    for text in (
        "It is in /usr/share/doc/README.Debian for you.",
        "Use System.Xml and Makefile.PL here.",
        'See <img alt="One is. Two is."/> here.',
    ):
        assert [each.text for each in split_sentences(text, "en")] == [text]
    assert [each.text for each in split_sentences("これはペンです。それは本です。", "ja")] == [
        "これはペンです。",
        "それは本です。",
    ]


def test_items_of_a_list_keep_their_numbers() -> None:
    sentences = [each.text for each in split_sentences("1. Open the door. 2. Close the window.", "en")]
    assert sentences == ["1. Open the door.", "2. Close the window."]


def test_what_has_no_word_is_no_sentence() -> None:
    assert [each.text for each in split_sentences("He left. ...", "en")] == ["He left. ..."]
    assert [each.text for each in split_sentences("M. Dupont est là. Il part.", "fr")] == [
        "M. Dupont est là.",
        "Il part.",
    ]
    assert [each.text for each in split_sentences("", "en")] == [""]
    assert [each.text for each in split_sentences(" 5. ", "en")] == ["5."]


def test_an_unknown_language_has_the_general_rules() -> None:
    assert len(split_sentences("Hello there. How are you?", "xq")) == 2


def test_joining_restores_whitespace() -> None:
    segments = split_sentences("One is here.   Two is there.\tThree.\n\nFour.", "en")
    texts = [each.text.upper() for each in segments]
    assert join_segments(texts, segments) == "ONE IS HERE.   TWO IS THERE.\tTHREE.\n\nFOUR."


def test_line_ends_of_other_programs_stay() -> None:
    text = "One is here.\u2028Two is there.\x85\x0cThree is far."
    segments = split_sentences(text, "en")
    assert len(segments) == 3
    assert join_segments([each.text for each in segments], segments) == text


def test_a_translation_of_nothing_leaves_no_gap() -> None:
    segments = split_sentences("One. Two is here. Three is far.", "en")
    assert join_segments(["", *[each.text for each in segments[1:]]], segments) == " ".join(
        each.text for each in segments[1:]
    )


@given(
    st.text(alphabet=st.sampled_from("aB1 .!?…\"'“”()\t\u00a0\n\u2028é犬。-*,;:"), max_size=80),
    st.sampled_from(["en", "de", "ja"]),
)
def test_no_character_is_lost(text: str, language: str) -> None:
    segments = split_sentences(text, language)
    assert segments
    assert "".join(each.text + each.space for each in segments) == text.strip()
    assert not any(each.space.strip() for each in segments)


@given(st.text(alphabet=st.sampled_from("abc ,;:-)(–\t"), max_size=120), st.integers(1, 8))
def test_clauses_are_short_and_lose_nothing(text: str, max_tokens: int) -> None:
    clauses = split_clauses(text, max_tokens, words)
    assert "".join(each.text + each.space for each in clauses) == text.strip()
    assert all(words(each.text) <= max_tokens for each in clauses)


def test_clauses_end_at_punctuation_before_whitespace() -> None:
    text = "the first part of it is long; the second part, which has a comma, is long"
    clauses = [each.text for each in split_clauses(text, 10, words)]
    assert clauses == ["the first part of it is long;", "the second part, which has a comma, is long"]
    clauses = [each.text for each in split_clauses(text, 7, words)]
    assert clauses == ["the first part of it is long;", "the second part,", "which has a comma, is long"]
    assert [each.text for each in split_clauses("a " * 6, 4, words)] == ["a a a", "a a a"]
    assert [each.text for each in split_clauses("x" * 50, 4, len)] == ["x" * 50]  # a word is never split


def test_no_clause_ends_inside_a_tag() -> None:
    text = 'see the picture <img alt="one, two, three, four"/> over there'
    assert '<img alt="one, two, three, four"/>' in " | ".join(each.text for each in split_clauses(text, 4, words))


def test_a_very_long_line_takes_little_time() -> None:
    """Not timed: quadratic time in 300,000 characters would not end."""
    for text in ("1. " * 100_000, "« " * 100_000, "No. " * 100_000, "x" * 300_000, "a, " * 100_000):
        segments = split_sentences(text, "en")
        assert "".join(each.text + each.space for each in segments) == text.strip()
    for text in ("x" * 300_000, f"{'x' * 25_000} Yes. {'y' * 25_000}"):  # a word is never split
        assert {each.space for each in split_sentences(text, "en")[:-1]} <= {" "}
