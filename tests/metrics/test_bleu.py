from __future__ import annotations

import logging

import pytest

from transduce.errors import DataError
from transduce.metrics import chrf_score, looks_tokenised, sacrebleu_score

LINES = ["Ein Hund schläft im Garten.", "Zwei Kinder spielen am Strand Ball."]


@pytest.mark.parametrize("score_of", [sacrebleu_score, chrf_score])
def test_a_perfect_translation_scores_100_and_not_a_rounding_error_more(score_of):
    assert score_of(LINES, LINES).score == pytest.approx(100.0, abs=1e-9)
    assert score_of(LINES, LINES).score <= 100.0


@pytest.mark.parametrize("score_of", [sacrebleu_score, chrf_score])
def test_nothing_in_common_scores_0(score_of):
    assert score_of(["xyz", "xyz"], LINES).score == 0.0


def test_case_counts_in_sacrebleu():
    assert sacrebleu_score([line.lower() for line in LINES], LINES).score < 80


@pytest.mark.parametrize("score_of", [sacrebleu_score, chrf_score])
def test_different_counts_are_refused_with_both_counts(score_of):
    with pytest.raises(DataError, match=r"\b1\b.*\b2\b"):
        score_of(LINES[:1], LINES)


@pytest.mark.parametrize("score_of", [sacrebleu_score, chrf_score])
def test_an_empty_corpus_is_refused(score_of):
    with pytest.raises(DataError, match=r"\b0\b.*\b0\b"):
        score_of([], [])


def test_tokenised_text_is_scored_without_a_warning_of_sacrebleu(caplog):
    tokenised = ["Ein Hund schläft im Garten ."] * 100
    with caplog.at_level(logging.WARNING, logger="sacrebleu"):
        sacrebleu_score(tokenised, tokenised)
    assert caplog.records == []


@pytest.mark.parametrize(
    "lines",
    [
        ["Ein Mann , der schläft ."],
        ["Ein Hund .", "Ein Mann , der schläft .", "Er lacht."],
        ["Keine Zeichen", "noch eins", "Ein Hund ."],
    ],
)
def test_spaces_before_stops_look_tokenised(lines):
    assert looks_tokenised(lines)


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["Keine Zeichen"],
        ["Ein Mann, der schläft."],
        ["Il dort ? Oui ! Non."],  # French as it should be
        ["Er kostet .5 und 3,5 ..."],
        ["Ein Hund .", "Er lacht."],  # half is not most
    ],
)
def test_ordinary_text_does_not_look_tokenised(lines):
    assert not looks_tokenised(lines)
