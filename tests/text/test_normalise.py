import pytest

from transduce.text import normalise


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
        ("a\u200bb", "a\u200bb"),  # ZERO WIDTH SPACE is not whitespace
        ("a\0b", "ab"),
        ("A\0\u030a", "\u00c5"),  # NUL goes first, so that nothing stands between a letter and its accent
        ("x\ud800y", "x\ufffdy"),
        ("x\udc00", "x\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),  # a pair of surrogates is its character
        ("\ufeffa \ud800", "\ufeffa \ufffd"),
    ],
)
def test_normalises(raw: str, expected: str) -> None:
    assert normalise(raw) == expected
