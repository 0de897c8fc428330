import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from transduce.text import SPECIAL_TOKENS, normalise

ANY_TEXT = st.text(st.characters(codec=None))  # lone surrogates too
TRICKY_TEXT = st.lists(
    st.sampled_from(
        [*SPECIAL_TOKENS, " ", "\u00a0", "\u2028", "e\u0301", "Ġ", "▁", "##", "\U0001f600", "low", "'s", "12"]
    )
).map("".join)


@given(ANY_TEXT | TRICKY_TEXT)
def test_normalised_text_is_one_clean_line(raw: str) -> None:
    text = normalise(raw)
    assert unicodedata.is_normalized("NFC", text)
    assert text.split() == [word for word in text.split(" ") if word]
    assert "  " not in text
    assert text == text.strip()
    assert "\0" not in text
    assert text.encode("utf-8").decode("utf-8") == text
    assert normalise(text) == text
