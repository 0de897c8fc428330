"""Hints of terms in training text, and the marks around them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from random import Random

import pytest

from said import naming
from transduce.config import DataConfig, RunConfig, config_from_mapping
from transduce.corpora import generate_pairs
from transduce.data import PairSampling, open_pairs, write_pairs
from transduce.data.word_tables import learn_word_table
from transduce.errors import ConfigError
from transduce.tasks import prepare
from transduce.text import Tokenizer, Tokenizers, train_bpe, train_wordpiece
from transduce.text.term_hints import WordTable, linked_words
from transduce.text.term_marks import TERM_MARKS, strip_term_marks, with_hints

PAIRS = [(pair.en, pair.de) for pair in generate_pairs("train", n_pairs=300, seed=1)]
TABLE = WordTable(
    {"power": {"kraftwerk": 0.4}, "plant": {"kraftwerk": 0.3}, "new": {"neues": 0.2, "neue": 0.6}, "the": {"das": 0.9}},
    {"kraftwerk": "Kraftwerk", "neue": "neue", "neues": "neues"},
    ["the"],
)


def shown(text: str) -> str:
    return text.translate(dict(zip(map(ord, TERM_MARKS), "<|>", strict=True)))


def test_hints_stand_beside_words_whose_tokens_stay() -> None:
    hinted = with_hints("(A) big dog, cat", [(1, 2, "Ein"), (4, 11, "Hund"), (13, 16, "Katze")])
    assert shown(hinted) == "(<A| Ein>)< big dog| Hund>,< cat| Katze>"
    assert strip_term_marks(hinted) == "(A Ein) big dog Hund, cat Katze"


@pytest.mark.parametrize("train", [train_bpe, train_wordpiece])
def test_each_mark_is_one_token_that_is_never_written(train: type[Tokenizer]) -> None:
    tokenizer = train(["a big dog"] * 3, vocab_size=600, term_marks=True)
    assert tokenizer.has_term_marks
    assert not tokenizer.has_masks
    plain, hinted = tokenizer.encode("a big dog"), tokenizer.encode(with_hints("a big dog", [(2, 9, "dog")]))
    marks = [id for id in hinted if id in tokenizer.suppressed_ids]
    assert len(marks) == 3
    assert set(marks) <= set(tokenizer.suppressed_ids)
    assert [id for id in hinted if id not in marks] == [*plain, plain[-1]]
    assert not train(["a big dog"] * 3, vocab_size=600).has_term_marks


def test_neighbours_of_one_word_are_one_term() -> None:
    words = ["the", "power", "plant", "new"]
    assert linked_words(TABLE.scores, words, ["das", "neue", "kraftwerk"]) == [
        (range(1), range(1)), (range(1, 3), range(2, 3)), (range(3, 4), range(1, 2)),
    ]  # fmt: skip
    assert linked_words(TABLE.scores, ["cat"], ["katze"]) == linked_words({}, [], []) == []


def test_some_hints_are_the_usual_form_and_common_words_have_none() -> None:
    drawn = {shown(TABLE.hinted("the new power plant", "das neues Kraftwerk", Random(n))) for n in range(200)}
    assert {
        "the new power plant", "the new< power plant| Kraftwerk>", "the< new| neue> power plant",
        "the< new| neues> power plant", "the< new power plant| neues Kraftwerk>",
    } <= drawn  # fmt: skip
    assert not any("das" in each for each in drawn)


def test_a_table_knows_the_words_of_a_text() -> None:
    table = learn_word_table(PAIRS)
    best = {word: max(of, key=lambda each: of[each]) for word, of in table.scores.items()}
    assert best["dog"] == "hund"
    assert table.written["hund"] == "Hund"
    assert "the" in table.common
    assert not learn_word_table([("a cat cat cat", "x"), *[("dogs bark", "y")] * 9]).common.count("cat")
    assert WordTable(**json.loads(json.dumps(asdict(table)))) == table
    assert learn_word_table([]).scores == learn_word_table([("", "a")]).scores == {}


@pytest.mark.merge
@pytest.mark.parametrize("p_drop", [0.0, 0.2])
def test_rows_are_the_same_for_every_number_of_workers(tmp_path: Path, p_drop: float) -> None:
    tokenizer = train_bpe([text for pair in PAIRS for text in pair], vocab_size=500, term_marks=True)
    tokenizers = Tokenizers(tokenizer, tokenizer)
    sampling = PairSampling(p_drop=p_drop, n_encodings=3, seed=1, words=learn_word_table(PAIRS))
    for n_workers in (1, 2):
        write_pairs(
            tmp_path / str(n_workers), {"text": PAIRS * 9}, tokenizers, max_length=60, sampling=sampling,
            n_workers=n_workers,
        )  # fmt: skip
    one, two = (open_pairs(tmp_path / name) for name in "12")
    rows = [[ids.tolist() for ids in one.pair(row)] for row in range(len(one))]
    assert rows == [[ids.tolist() for ids in two.pair(row)] for row in range(len(two))]
    sources = [shown(tokenizer.decode(src)) for src, _ in rows]
    assert sources[::3] == [src for src, _ in PAIRS * 9]
    n_hinted = sum("<" in each for each in sources)
    assert 0.2 * len(sources) < n_hinted < 0.5 * len(sources)
    assert not any("<" in tokenizer.decode(tgt) for _, tgt in rows)


def test_a_prepared_text_has_hints_in_training_only(tmp_path: Path) -> None:
    config = DataConfig(n_pairs=300, vocab_size=600, terms=True, n_encodings=2)
    prepared = prepare(config, tmp_path / "store")
    assert prepared.tokenizers.src.has_term_marks
    assert prepared.train.summary.n_encodings == 2
    assert prepared.dev is not None
    assert prepared.dev.summary.n_encodings == 1


def test_settings_that_do_not_fit() -> None:
    with pytest.raises(ConfigError, match=naming("terms", "'bpe'", "'bytes'")):
        config_from_mapping(RunConfig, {"data": {"terms": True, "tokenizer": "bytes"}}, where="recipe")
