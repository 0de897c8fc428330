"""Error rates against the textbook's table of distances, and by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.errors import DataError
from transduce.metrics import character_error_rate, edit_distance, error_rates, word_error_rate


def table_of_distances(one: Sequence[object], other: Sequence[object]) -> int:
    """Wagner and Fischer (1974), cell by cell."""
    table = [[row + column for column in range(len(other) + 1)] for row in range(len(one) + 1)]
    for row in range(1, len(one) + 1):
        for column in range(1, len(other) + 1):
            replaced = table[row - 1][column - 1] + (one[row - 1] != other[column - 1])
            table[row][column] = min(replaced, table[row - 1][column] + 1, table[row][column - 1] + 1)
    return table[-1][-1]


@given(st.text("abc", max_size=80), st.text("abc", max_size=80))
def test_the_distance_is_that_of_the_table(one: str, other: str) -> None:
    assert edit_distance(one, other) == table_of_distances(one, other) == edit_distance(other, one)


@given(st.lists(st.sampled_from(["to", "be", "or"]), max_size=9), st.lists(st.sampled_from(["to", "be"]), max_size=9))
def test_the_distance_of_words(one: list[str], other: list[str]) -> None:
    assert edit_distance(one, other) == table_of_distances(one, other)


def test_rates_are_sums_before_they_are_divided() -> None:
    hypotheses, references = ["abcd", "x"], ["abcd", "y"]
    assert character_error_rate(hypotheses, references).score == pytest.approx(100 / 5)
    assert word_error_rate(hypotheses, references).score == pytest.approx(50)
    assert character_error_rate(["aaaa"], ["b"]).score == 400
    assert character_error_rate(["a  b "], ["a b"]).score == 0
    assert character_error_rate(["u\u0308"], ["ü"]).score == 0


def test_words_that_are_heard_have_no_case_and_no_punctuation() -> None:
    pair = ["the dog doesn't bark 'ere"], ["The dog doesn’t bark, ’ere!"]
    assert word_error_rate(*pair, plain=True).score == 0
    assert word_error_rate(["a well-known dog"], ["a well\u2011known dog"], plain=True).score == 0
    assert word_error_rate(*pair).score == pytest.approx(100 * 4 / 5)
    assert "case:lower" in word_error_rate(*pair, plain=True).signature


def test_parts_have_rates_of_their_own() -> None:
    scores = error_rates(["ab", "ab", "xy"], ["ab", "ab", "zy"], parts=["clean", "clean", "noisy"])
    values = scores.as_json()
    assert (values["lines"], values["clean_lines"], values["noisy_lines"]) == (3, 2, 1)
    assert values["clean_character_error_rate"]["score"] == 0
    assert values["noisy_character_error_rate"]["score"] == 50
    assert values["character_error_rate"]["score"] == pytest.approx(100 / 6)
    assert values["exact"] == pytest.approx(100 * 2 / 3)


def test_lines_have_to_align() -> None:
    with pytest.raises(DataError, match="2"):
        error_rates(["a"], ["a", "b"])
    with pytest.raises(DataError, match="0"):
        character_error_rate([], [])
