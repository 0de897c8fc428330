from __future__ import annotations

import subprocess
import sys

import pytest

from transduce.errors import DataError
from transduce.metrics import multi30k_bleu, paper_bleu, sacrebleu_score
from transduce.metrics.tokenised_bleu import split_compounds

LINE = "Der alte Mann sah das Meer."


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ("rich-text format", "rich ##AT##-##AT## text format"),
        ("über-groß", "über ##AT##-##AT## groß"),
        ("10-20-30", "10 ##AT##-##AT## 20 ##AT##-##AT## 30"),
        ("a-b-c", "a ##AT##-##AT## b-c"),
        ("ein - zwei -drei vier-", "ein - zwei -drei vier-"),
    ],
)
def test_split_compounds(tokens, expected):
    assert split_compounds(tokens) == expected


def test_a_compound_half_right_earns_more_once_it_is_split():
    references = ["Der rasche CO2-Ausstoß sinkt heute deutlich."]
    hypotheses = ["Der rasche CO2-Verbrauch sinkt heute deutlich."]
    # 10 tokens: Der rasche CO2 - X sinkt heute deutlich . is 9 of them, X the one that is wrong
    expected = 100 * (8 / 9 * 6 / 8 * 4 / 7 * 2 / 6) ** 0.25
    assert paper_bleu(hypotheses, references, language="de").score == pytest.approx(expected)


@pytest.mark.parametrize("quoted", ["„{}“", "“{}”", '"{}"'])
def test_the_style_of_quotation_marks_does_not_count_in_the_papers_bleu(quoted):
    score = paper_bleu([quoted.format("Gut so, Anna")], ['"Gut so, Anna"'], language="de").score
    assert score == pytest.approx(100)


def test_case_counts_for_the_paper_and_not_for_multi30k():
    assert paper_bleu([LINE.lower()], [LINE], language="de").score < 100
    assert multi30k_bleu([LINE.lower()], [LINE], language="de").score == pytest.approx(100)


def test_multi30k_normalises_punctuation():
    assert multi30k_bleu(["„Ja“ – sagt er leise…"], ['"Ja" - sagt er leise...'], language="de").score == pytest.approx(
        100
    )


def test_special_characters_count_as_one_token_each():
    # 7 tokens: a & b | c < d; one wrong at the end
    expected = 100 * (6 / 7 * 5 / 6 * 4 / 5 * 3 / 4) ** 0.25
    assert paper_bleu(["a & b | c < d"], ["a & b | c < e"], language="de").score == pytest.approx(expected)


@pytest.mark.parametrize("score_of", [paper_bleu, multi30k_bleu])
def test_without_a_common_4_gram_the_unsmoothed_score_is_0(score_of):
    hypotheses, references = ["Der Mann sah das Haus."], ["Der Mann sah ein Haus."]
    assert sacrebleu_score(hypotheses, references).score > 0
    assert score_of(hypotheses, references, language="de").score == 0


def test_the_signatures_tell_the_preparation():
    paper, multi30k = (score([LINE], [LINE], language="de").signature for score in (paper_bleu, multi30k_bleu))
    assert paper.startswith(
        "nrefs:1|case:mixed|eff:no|tok:moses-de-compounds-split|smooth:none|punct:unicode-replaced|sacremoses:"
    )
    assert multi30k.startswith("nrefs:1|case:lc|eff:no|tok:moses-de|smooth:none|punct:moses-normalised|sacremoses:")
    assert "|version:" in paper
    assert "|version:" in multi30k


def test_abbreviations_of_the_language_keep_their_stop():
    hypotheses, references = ["Das war der 3. Mann und die 2. Frau"], ["Das war der 3 . Mann und die 2 . Frau"]
    assert paper_bleu(hypotheses, references, language="de").score < 50  # in German 3. is an ordinal number
    assert paper_bleu(hypotheses, references, language="en").score == pytest.approx(100)


def test_a_language_that_moses_does_not_know_is_scored_with_english_abbreviations():
    hypotheses, references = ["Mr. Smith saw the sea"], ["Mr . Smith saw the sea"]
    unknown = paper_bleu(hypotheses, references, language="xx").score
    assert unknown == paper_bleu(hypotheses, references, language="en").score
    assert unknown < 100


@pytest.mark.parametrize("score_of", [paper_bleu, multi30k_bleu])
def test_different_counts_are_refused(score_of):
    with pytest.raises(DataError, match=r"\b2\b.*\b1\b"):
        score_of([LINE, LINE], [LINE], language="de")


def test_importing_metrics_loads_neither_torch_nor_sacremoses():
    program = "import sys, transduce.metrics; print([name for name in ('torch', 'sacremoses') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
