"""Masking and unmasking, and masks in training pairs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.text import MASKS, BpeDropout, MaskRules, find_verbatim, mask, n_masks, train_bpe, unmask
from transduce.text.masks import mask_pair, mask_words


@pytest.mark.parametrize(
    ("source", "written", "expected"),
    [
        ("@inst wears it", f"{MASKS[0]}tragen", "@inst tragen"),
        ("sub%s", f"unter{MASKS[0]}", "unter%s"),
        ("<b>it</b> wears", f"{MASKS[0]}es{MASKS[1]}trägt", "<b>es</b>trägt"),
        ("of x.txt", f"der{MASKS[0]}", "der x.txt"),
        ("of x.txt", f"的{MASKS[0]}是", "的x.txt是"),
    ],
)
def test_no_word_sticks_to_what_stands_alone(source: str, written: str, expected: str) -> None:
    assert unmask(written, mask(source))[0] == expected


@given(st.text(alphabet=st.sampled_from("ab .<>/@%${}:1k\ue000\ue001😀&;"), max_size=60))
def test_unmask_inverts_mask(text: str) -> None:
    masked = mask(text)
    unmasked, is_complete = unmask(masked.text, masked)
    assert is_complete
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


@given(st.lists(st.sampled_from(["und", ",", "犬", "", *(f"{{x{n}}}" for n in range(15)), "5 km"]), max_size=40))
def test_any_number_of_strings_is_masked(parts: list[str]) -> None:
    for text in (" ".join(parts), "".join(parts)):
        masked = mask(text)
        assert len(masked.originals) <= len(MASKS)
        assert [each for each in find_verbatim(masked.text) if each.strip("".join(MASKS))] == []
        assert unmask(masked.text, masked) == (text, True)


def test_neighbours_share_a_mask_if_there_are_too_many() -> None:
    names = [f"{{x{number}}}" for number in range(len(MASKS) + 3)]
    assert n_masks(", ".join(names)) == len(MASKS)
    assert mask(", ".join(names)).originals[MASKS[0]] == "{x0}, {x1}, {x2}, {x3}"
    assert n_masks(" or ".join(names)) == len(names)
    assert mask(" or ".join(names)).originals[MASKS[0]] == "{x0} or {x1} or {x2} or {x3}"
    assert n_masks(" or ".join([*names[: len(MASKS)], *names[: len(MASKS)]])) == len(MASKS)
    assert n_masks(" or ".join(["x.txt"] * 10_000)) == 1


def test_rules_say_what_is_not_masked_and_how_numbers_are_written() -> None:
    rules = MaskRules("en", "de", unmasked={"<fr>"})
    masked = mask("<fr> 1,500 km with <b> for $3.50", rules)
    assert masked.text == f"<fr> {MASKS[0]} with {MASKS[1]} for {MASKS[2]}"
    assert unmask(f"{MASKS[0]} mit {MASKS[1]} für {MASKS[2]}", masked) == ("1.500 km mit <b> für 3,50 $", True)
    copied = MaskRules("en", "de", translates_numbers=False)
    assert unmask(MASKS[0], mask("1,500 km", copied)) == ("1,500 km", True)
    assert n_masks("<fr> a", rules) == 0


def test_a_pair_may_have_a_number_in_two_forms() -> None:
    rules = MaskRules("en", "de")
    for source, target in (
        ("1,500 km", "1.500 km"),
        ("$3.50", "3,50\u00a0$"),
        ("5 kg", "5\u00a0kg"),
        ("50%", "50 %"),
        ("8.5%", "8,5 %"),
        ("12.5 m", "12.5 m"),
    ):
        [src, tgt] = mask_pair(f"it is {source} now", f"es sind jetzt {target} da", rules)
        assert src.removeprefix("it is ").removesuffix(" now") == tgt.removeprefix("es sind jetzt ").removesuffix(" da")
        assert src[6] in MASKS
    assert "1,500" in mask_pair("1,500 km", "1.500 km")[0]
    assert mask_pair("5 m and 5 m", "5 m", rules) == ("5 m and 5 m", "5 m")


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
