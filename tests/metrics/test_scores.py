from __future__ import annotations

import json
import math
from collections import Counter
from statistics import mean

import pytest

from transduce.errors import DataError
from transduce.metrics import (
    TOKENISED_BLEUS,
    customary_bleus,
    score_translations,
)

HYPOTHESES = ["Ein Hund schläft im Garten.", "zwei Kinder spielen mit dem Fuß-Ball."]
REFERENCES = ["Ein Hund schläft im Garten.", "Zwei Kinder spielen mit dem Hand-Ball."]


def bleu_of_matches(matches: str) -> float:
    """Compute BLEU from matches and totals of each n-gram order; no brevity penalty."""
    precisions = [int(right) / int(n) for right, n in (each.split("/") for each in matches.split())]
    return 100 * math.prod(precisions) ** 0.25


def chrf2_by_definition() -> float:
    """Compute chrF from precision and recall of character n-grams without spaces, averaged over n from 1 to 6."""
    recalls, precisions = [], []
    for n in range(1, 7):
        counts = []
        for texts in (HYPOTHESES, REFERENCES):
            lines = [text.replace(" ", "") for text in texts]
            counts.append([Counter(line[i : i + n] for i in range(len(line) - n + 1)) for line in lines])
        n_right = sum((hyp & ref).total() for hyp, ref in zip(*counts, strict=True))
        precisions.append(n_right / sum(hyp.total() for hyp in counts[0]))
        recalls.append(n_right / sum(ref.total() for ref in counts[1]))
    precision, recall = mean(precisions), mean(recalls)
    return 100 * 5 * precision * recall / (4 * precision + recall)


def test_all_scores_are_those_of_counts_by_hand():
    scores = score_translations(HYPOTHESES, REFERENCES, language="de", also=TOKENISED_BLEUS)
    assert scores.paper_bleu is not None
    assert scores.multi30k_bleu is not None
    assert scores.sentences == 2
    # The first sentence is right, 6 tokens. Of the second, 7 tokens, the first and "Fuß-Ball" are wrong;
    assert scores.sacrebleu.score == pytest.approx(bleu_of_matches("11/13 8/11 6/9 4/7"))
    # as the paper counts it, "Fuß-Ball" is three tokens, of which one is wrong;
    assert scores.paper_bleu.score == pytest.approx(bleu_of_matches("13/15 10/13 7/11 4/9"))
    # for Multi30k, where case does not count, only "Fuß-Ball" is wrong.
    assert scores.multi30k_bleu.score == pytest.approx(bleu_of_matches("12/13 9/11 7/9 5/7"))
    assert scores.chrf.score == pytest.approx(chrf2_by_definition())
    tokenisations = [
        each.signature.split("tok:")[1].split("|")[0]
        for each in (scores.sacrebleu, scores.paper_bleu, scores.multi30k_bleu)
    ]
    assert tokenisations == ["13a", "moses-de-compounds-split", "moses-de"]
    assert "|nc:6|nw:0|" in scores.chrf.signature


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
    with pytest.raises(DataError, match=r"\b1,001\b.*\b1,000\b"):
        score_translations(["a"] * 1001, ["a"] * 1000, language="de")


def test_an_empty_corpus_is_refused():
    with pytest.raises(DataError, match=r"\b0\b.*\b0\b"):
        score_translations([], [], language="de")
