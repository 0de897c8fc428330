from __future__ import annotations

import json

import pytest

from transduce.errors import DataError
from transduce.metrics import (
    TOKENISED_BLEUS,
    TranslationScores,
    chrf_score,
    customary_bleus,
    multi30k_bleu,
    paper_bleu,
    sacrebleu_score,
    score_translations,
)

HYPOTHESES = ["Ein Hund schläft im Garten.", "Zwei Kinder spielen Ball."]
REFERENCES = ["Ein Hund schläft im Garten.", "Zwei Kinder spielen mit dem Ball."]


def test_all_scores_are_those_of_the_single_functions():
    both = score_translations(HYPOTHESES, REFERENCES, language="de", also=TOKENISED_BLEUS)
    assert both == TranslationScores(
        sacrebleu=sacrebleu_score(HYPOTHESES, REFERENCES),
        chrf=chrf_score(HYPOTHESES, REFERENCES),
        paper_bleu=paper_bleu(HYPOTHESES, REFERENCES, language="de"),
        multi30k_bleu=multi30k_bleu(HYPOTHESES, REFERENCES, language="de"),
        sentences=2,
    )


def test_as_json_has_the_keys_of_the_contract():
    scores = score_translations(HYPOTHESES, REFERENCES, language="de", also=TOKENISED_BLEUS)
    record = json.loads(json.dumps(scores.as_json()))
    assert list(record) == ["sacrebleu", "chrf", "paper_bleu", "multi30k_bleu", "sentences"]
    assert record["sentences"] == 2
    assert scores.paper_bleu is not None
    assert record["paper_bleu"] == {"score": scores.paper_bleu.score, "signature": scores.paper_bleu.signature}
    assert all(set(record[name]) == {"score", "signature"} for name in list(record)[:4])


def test_tokenised_bleus_are_there_on_request_alone():
    plain = score_translations(HYPOTHESES, REFERENCES, language="de").as_json()
    assert list(plain) == ["sacrebleu", "chrf", "sentences"]
    one = score_translations(HYPOTHESES, REFERENCES, language="de", also=["multi30k_bleu"]).as_json()
    assert list(one) == ["sacrebleu", "chrf", "multi30k_bleu", "sentences"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("multi30k/val", ("multi30k_bleu",)),
        ("/data/multi30k/val.en with /data/multi30k/val.de", ("multi30k_bleu",)),
        ("wmt_news/newstest2013", ("paper_bleu",)),
        ("wmt_news/newssyscomb2009", ()),
        ("multi30k/val, wmt_news/newstest2013", ()),
        ("my-multi30k/val", ()),
        ("grammar test", ()),
        ("test.en with test.de", ()),
        ("test.tsv", ()),
    ],
)
def test_a_tokenised_bleu_is_customary_for_known_texts_alone(name: str, expected: tuple[str, ...]):
    assert customary_bleus(name) == expected


def test_different_counts_are_refused_with_both_counts():
    with pytest.raises(DataError, match="1,001 hypotheses but 1,000 references"):
        score_translations(["a"] * 1001, ["a"] * 1000, language="de")


def test_an_empty_corpus_is_refused():
    with pytest.raises(DataError, match="at least one pair"):
        score_translations([], [], language="de")
