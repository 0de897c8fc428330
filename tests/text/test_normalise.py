"""Normalisation: the same text for a model, however it was typed."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transduce.text import normalise
from transduce.text.normalise import visible

INVISIBLE = [
    *"\ufeff\u00ad\u200b\u200e\u200f\u202a\u202c\u202e\u2060\u2063\u2066\u2069\u061c\ufe0e\ufe0f\ufe00\u200c\u200d\ufff9",
    *"\x01\x7f\0\u17b5\U000e0100\U000e0041\U0001d173",
]
WITH_JOINERS = ["می\u200cخواهم", "क्\u200dष", "क्\u200cष", "ന്\u200d", "ශ්\u200dරී", "👨\u200d👩\u200d👧", "🏳\u200d🌈"]
SIGNS = st.text(
    st.sampled_from([*INVISIBLE, *"aé \n\t1❤🏴م्क\u20e3\u0301\u2adc\u2329", "\ud83d", "\ude00"]), max_size=12
)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("", ""),
        (" \t\r\n", ""),
        ("a  b\tc\r\nd", "a b c d"),
        ("a\u00a0b\u2028c\u2029d\u3000e\x1cf\x85g\x0bh", "a b c d e f g h"),
        ("Ma\u0308dchen", "M\u00e4dchen"),
        ("\u212b", "\u00c5"),  # ANGSTROM SIGN is canonically A with ring
        ("\ufb01", "\ufb01"),  # a ligature is compatible only: it stays
        ("a\0b", "ab"),
        ("A\0\u030a", "\u00c5"),  # what is invisible goes first, so that nothing stands between a letter and its accent
        ("x\ud800y", "x\ufffdy"),
        ("x\udc00", "x\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),  # a pair of surrogates is its character
        ("\ufeffa \ud800", "a \ufffd"),
        ("❤\ufe0f", "❤"),
        ("🏴\U000e0067\U000e0062\U000e007f", "🏴"),
    ],
)
def test_normalises(raw: str, expected: str) -> None:
    assert normalise(raw) == expected


@pytest.mark.parametrize("character", INVISIBLE, ids=lambda character: f"U+{ord(character):04X}")
def test_what_is_invisible_makes_no_difference(character: str) -> None:
    text = "The but{0}ton{0} opens{0}{0} a door.{0} {0}Really{0}?"
    assert normalise(text.replace("{0}", character)) == text.replace("{0}", "")
    assert visible(text.replace("{0}", character)) == text.replace("{0}", "")


@pytest.mark.parametrize("text", WITH_JOINERS)
def test_joiners_that_words_need_stay(text: str) -> None:
    assert normalise(text) == text
    assert visible(text) == text


@pytest.mark.parametrize("emoji", ["❤\ufe0f", "1\ufe0f\u20e3", "🏴\U000e0067\U000e007f", "👩🏽\u200d🚀", "☎\ufe0e"])
def test_an_emoji_that_is_copied_stays_as_it_is(emoji: str) -> None:
    assert visible(f"a {emoji}\u200b b") == f"a {emoji} b"


@example("\u0300\u094d\u200c")  # a joiner after a mark that moves
@example("\U0001f3f4\U000e0020\u200c")  # a joiner after a flag
@example("\u0600\U000e0020\u200c")  # a joiner after a letter, when what is between them goes
@example("\ud83d\x01\ude00")  # two lone surrogates that make a pair when what is between them goes
@given(st.text(st.characters(codec=None)) | SIGNS)
def test_normalised_text_is_one_line_that_normalising_does_not_change(text: str) -> None:
    once = normalise(text)
    assert once == " ".join(once.split())
    assert once.encode().decode() == once.replace("\0", "")
    assert normalise(once) == once == unicodedata.normalize("NFC", once)
    assert normalise(visible(text)) == once


@given(st.text(st.characters(categories=["L", "N", "P", "S"])))
def test_what_can_be_seen_stays(text: str) -> None:
    assert normalise(text) == unicodedata.normalize("NFC", text)
    assert visible(text) == text
