from __future__ import annotations

import math

import pytest
import torch

from said import naming
from transduce.errors import SearchError
from transduce.search import LengthPenalty, beam_search, greedy_search

SPECIAL_IDS = {"bos_id": 1, "eos_id": 2}


def search(model, max_lengths: list[int], *, suppressed_ids=(0, 1), **options):
    return greedy_search(
        model,
        model.start(),
        max_lengths_B=torch.tensor(max_lengths, dtype=torch.int64),
        suppressed_ids=suppressed_ids,
        **SPECIAL_IDS,
        **options,
    )


def test_takes_the_most_probable_token_at_each_step(tree_model, spell) -> None:
    #            .6  A -- .55 B -- $
    #   BOS ----<      `- .45 $
    #            .4  B -- $
    model = tree_model({"": {"A": 0.6, "B": 0.4}, "A": {"B": 0.55, "$": 0.45}})
    [best] = search(model, [9])
    assert spell(best.ids) == "AB"
    assert best.log_prob == pytest.approx(math.log(0.6 * 0.55), abs=1e-12)
    assert best.score == best.log_prob
    assert best.is_finished
    assert model.rows_per_step == [1, 1, 1]


def test_without_scores_the_tokens_are_the_same(tree_model, spell) -> None:
    tree = {"": {"_": 0.5, "A": 0.3, "B": 0.2}, "A": {"B": 0.55, "$": 0.45}}
    [best] = search(tree_model(tree), [9], is_scored=False)
    assert spell(best.ids) == "AB"
    assert best.is_finished
    assert math.isnan(best.log_prob)
    assert math.isnan(best.score)


def test_alpha_changes_the_score_only(tree_model, spell) -> None:
    model = tree_model({"": {"A": 0.5, "B": 0.5 - 1e-3, "C": 1e-3}})
    [best] = search(model, [9], suppressed_ids=(), penalty=LengthPenalty(1.0))
    assert spell(best.ids) == "A"
    assert best.score == pytest.approx(math.log(0.5) / (7 / 6), abs=1e-12)


def test_sentences_leave_at_their_end_or_limit_and_return_in_order(tree_model, spell) -> None:
    endless = {"": {"A": 1.0}, "A": {"A": 1.0}, "AA": {"A": 0.5, "$": 0.25, "B": 0.25}, "AAA": {"A": 1.0}}
    model = tree_model(endless, {"": {"$": 0.8, "A": 0.2}}, endless, {"": {"B": 1.0}})
    outputs = search(model, [3, 9, 5, 2])
    assert [spell(output.ids) for output in outputs] == ["AAA", "", "AAAA", "B"]
    assert [output.is_finished for output in outputs] == [False, True, True, True]
    assert outputs[0].score == outputs[0].log_prob == pytest.approx(math.log(0.5), abs=1e-12)
    assert model.rows_per_step == [4, 3, 2, 1, 1]


def test_suppressed_tokens_keep_their_probability(tree_model, spell) -> None:
    model = tree_model({"": {"_": 0.5, "^": 0.3, "A": 0.2}})
    [best] = search(model, [4])
    assert spell(best.ids) == "A"
    assert best.log_prob == pytest.approx(math.log(0.2), abs=1e-12)


def test_a_beam_of_one_keeps_a_better_finished_hypothesis(tree_model, spell) -> None:
    #            .6  A -- .28 A -- $         greedy: AA, .6 x .28 = .168
    #   BOS ----<      `- .24 B, C or $      a beam of one keeps the empty hypothesis, .4
    #            .4  $
    model = tree_model({"": {"A": 0.6, "$": 0.4}, "A": {"A": 0.28, "B": 0.24, "C": 0.24, "$": 0.24}})
    [greedy] = search(model, [5], suppressed_ids=())
    model.rows_per_step.clear()
    [[beam]] = beam_search(
        model,
        model.start(),
        max_lengths_B=torch.tensor([5]),
        beam_size=1,
        penalty=LengthPenalty(0.0),
        n_best=1,
        suppressed_ids=(),
        **SPECIAL_IDS,
    )
    assert (spell(greedy.ids), spell(beam.ids)) == ("AA", "")
    assert greedy.log_prob < beam.log_prob == pytest.approx(math.log(0.4), abs=1e-12)


def test_no_sentences_give_no_outputs(tree_model) -> None:
    model = tree_model()
    assert search(model, [], suppressed_ids=()) == []
    assert model.rows_per_step == []


def test_a_model_without_probabilities_is_named(tree_model) -> None:
    model = tree_model({}, {"": {"A": 1.0}, "A": {"A": math.nan}})
    with pytest.raises(SearchError, match=naming("sentence 1", "from 0", "3 tokens", "NaN")):
        search(model, [3, 3], suppressed_ids=())


def test_invalid_arguments_are_refused(tree_model) -> None:
    for max_lengths, suppressed_ids, facts in [
        ([0], (), ["max_lengths_B", 1, "[0]"]),
        ([[1]], (), ["max_lengths_B", 1, "[[1]]"]),
        ([1], (1, 2), ["eos_id 2", "[1, 2]"]),
    ]:
        with pytest.raises(ValueError, match=naming(*facts)):
            search(tree_model({}), max_lengths, suppressed_ids=suppressed_ids)
