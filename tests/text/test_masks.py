"""Verbatim spans, masking and unmasking, and masks in training pairs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.text import MASKS, BpeDropout, find_verbatim, mask, train_bpe, unmask
from transduce.text.masks import is_all_caps, mask_pair, mask_words, strip_masks, to_sentence_case

VERBATIM = {
    "Write to jane.doe+x@mail.example.org today.": ["jane.doe+x@mail.example.org"],
    "See https://example.org/a?b=1&c=(2), or www.example.org.": ["https://example.org/a?b=1&c=(2", "www.example.org"],
    "Press <b>OK</b> or <img src='a.png'/>, &amp; wait.": ["<b>", "</b>", "<img src='a.png'/>", "&amp;"],
    "Hello %s, you have %1$d files in {folder} and ${HOME}, %(name)s.": [
        "%s",
        "%1$d",
        "{folder}",
        "${HOME}",
        "%(name)s",
    ],
    "Replace $1 by {0} and {{user}}.": ["$1", "{0}", "{{user}}"],
    "Open report.pdf, /etc/passwd, ~/notes or C:\\Windows\\x.ini.": [
        "report.pdf",
        "/etc/passwd",
        "~/notes",
        "C:\\Windows\\x.ini",
    ],
    "It weighs 12.5 kg, runs 80 km/h, costs $3.50 or 5 €, and holds 16 GB.": [
        "12.5 kg",
        "80 km/h",
        "$3.50",
        "5 €",
        "16 GB",
    ],
    "HTTP://EXAMPLE.ORG/A IN CAPITALS": ["HTTP://EXAMPLE.ORG/A"],
    "Version 1.2.3 has the number 1234567.": ["1.2.3", "1234567"],
    "Great 👍🏽 work 🇩🇪!": ["👍🏽", "🇩🇪"],
    "A private \ue123 character and a mask: \ue000.": ["\ue123", "\ue000"],
}
NOT_VERBATIM = [
    "He and/or she said: yes, no. It is 5 o'clock.",
    "In 1999 three of 20 men were there (x < y and y > z).",
    "A 4-year-old dog, i.e. a young one, e.g. mine.",
    "50 million people on the 3rd floor",
    "At 10:30 in 3D",
    "Das ist, d.h. es war, in Washington, D.C. im Jahr 2000.",
    "In the 1990s it was 20s music, for a film of the 80s.",
    "Noise, d.h. Lärm, from Washington D.C. and the U.S.A. was sold for £5m.",
    "ISBN 978-3-16-148410-0",
]


@pytest.mark.parametrize("text", VERBATIM)
def test_verbatim_strings_are_found(text: str) -> None:
    assert find_verbatim(text) == VERBATIM[text]


@pytest.mark.parametrize("text", NOT_VERBATIM)
def test_ordinary_text_is_not_verbatim(text: str) -> None:
    assert find_verbatim(text) == []


@given(st.text(alphabet=st.sampled_from("ab .<>/@%${}:1k\ue000\ue001😀&;"), max_size=60))
def test_unmask_inverts_mask(text: str) -> None:
    masked = mask(text)
    unmasked, is_complete = unmask(masked.text, masked)
    assert is_complete
    if len(set(find_verbatim(text))) <= len(MASKS):
        assert unmasked == text


def test_one_string_has_one_mask() -> None:
    masked = mask("from %s to {x} and %s")
    assert masked.text == f"from {MASKS[0]} to {MASKS[1]} and {MASKS[0]}"
    assert unmask(f"von {MASKS[1]} und {MASKS[0]}, {MASKS[0]}", masked) == ("von {x} und %s, %s", True)


def test_surplus_masks_are_removed_and_missing_ones_inserted() -> None:
    masked = mask("see x.txt, then %s here")
    assert unmask(f"siehe {MASKS[0]}", masked) == ("siehe x.txt %s", False)
    assert unmask(f"{MASKS[0]} {MASKS[0]} und {MASKS[1]} hier {MASKS[7]}", masked) == ("x.txt und %s hier", False)
    text, is_complete = unmask("", masked)
    assert (sorted(text.split()), is_complete) == (["%s", "x.txt"], False)
    assert unmask("ganz ohne.", mask("see x.txt")) == ("ganz ohne x.txt.", False)


@given(st.lists(st.sampled_from(["ab", "c.", *MASKS[:4]]), max_size=12), st.integers(0, 4))
def test_nothing_that_should_stay_is_lost_or_doubled(written: list[str], n: int) -> None:
    strings = ["x.txt", "%s", "a@b.org", "5 km"][:n]
    text, is_complete = unmask(" ".join(written), mask(" or ".join(strings)))
    assert sorted(find_verbatim(text)) == sorted(strings)
    assert not set(text) & set(MASKS)
    assert is_complete == (sorted(each for each in written if each in MASKS) == list(MASKS[:n]))


def test_many_missing_masks_take_little_time() -> None:
    """Not timed: quadratic time in 100,000 masks would not end."""
    text, is_complete = unmask("kurz", mask("x.txt " * 100_000))
    assert (text.count("x.txt"), is_complete) == (100_000, False)


def test_more_strings_than_masks_stay_as_they_are() -> None:
    text = " ".join(f"{{x{number}}}" for number in range(len(MASKS) + 3))
    masked = mask(text)
    assert len(masked.originals) == len(MASKS)
    assert masked.text.endswith("{x10} {x11} {x12}")


def test_pairs_have_masks_for_what_both_sides_have() -> None:
    src, tgt = mask_pair("open x.txt with 5.5% of %s", "öffne x.txt mit 5,5% von %s")
    assert "x.txt" not in src + tgt
    assert "%s" not in src + tgt
    assert ("5.5%" in src, "5,5%" in tgt) == (True, True)
    assert {char for char in src if char in MASKS} == {char for char in tgt if char in MASKS}
    assert mask_pair("a dog", "ein Hund") == ("a dog", "ein Hund")
    assert mask_pair("stray \ue003", "verirrt") == ("stray ", "verirrt")


def test_one_pair_in_eight_teaches_masks() -> None:
    pairs = [(f"Tom saw {n} dogs in Boston.", f"Tom sah {n} Hunde in Boston.") for n in range(10, 900)]
    made = [copy for pair in pairs for copy in mask_words(*pair)]
    assert 0.09 < len(made) / len(pairs) < 0.16
    for src, tgt in made:
        assert sorted(set(src) & set(MASKS)) == sorted(set(tgt) & set(MASKS))
        assert "Tom" not in src
    used = {char for src, _ in made for char in src if char in MASKS}
    assert used == set(MASKS)
    bare = [copy for n in range(900) for copy in mask_words("so it is " + "x" * n, "das ist es")]
    assert {src.strip()[0] in MASKS for src, _ in bare} == {True, False}


def test_dropout_never_splits_masks() -> None:
    tokenizer = train_bpe(["low lower lowest"] * 5, vocab_size=400, masks=True)
    [samples] = BpeDropout(tokenizer, p_drop=0.9, seed=1).sample([f"lower {MASKS[4]}."], 30)
    assert all(MASKS[4] in tokenizer.pieces(ids) for ids in samples)
    assert len({tuple(ids) for ids in samples}) > 1


def test_sentences_in_capitals() -> None:
    assert is_all_caps("DO NOT OPEN THE DOOR!")
    assert is_all_caps("TÜR ZU, BITTE")
    assert not any(map(is_all_caps, ["NATO", "The USA", "I", "犬は犬", "123 456", "A B C", ""]))
    assert to_sentence_case("“THE DOG AND I RUN.”", "en") == "“The dog and I run.”"
    assert strip_masks(f"a{MASKS[2]}b") == "ab"
