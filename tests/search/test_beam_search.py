from __future__ import annotations

import math

import pytest
import torch

from said import naming
from transduce.errors import SearchError
from transduce.search import Hypothesis, LengthPenalty, beam_search, greedy_search

SPECIAL_IDS = {"bos_id": 1, "eos_id": 2}


def search(model, max_lengths: list[int], *, beam_size=2, alpha=0.0, n_best=1, suppressed_ids=(0, 1)):
    return beam_search(
        model,
        model.start(),
        max_lengths_B=torch.tensor(max_lengths),
        beam_size=beam_size,
        penalty=LengthPenalty(alpha),
        n_best=n_best,
        suppressed_ids=suppressed_ids,
        **SPECIAL_IDS,
    )


def test_finds_what_greedy_misses(tree_model, spell) -> None:
    #            .6  A -- .55 $            A   .6 x .55 = .33   (greedy)
    #   BOS ----<      `- .45 A -- $       AA  .6 x .45 = .27
    #            .4  B -- .9  $            B   .4 x .9  = .36   (best)
    #                  `- .1  A -- $       BA  .4 x .1  = .04
    tree = {"": {"A": 0.6, "B": 0.4}, "A": {"$": 0.55, "A": 0.45}, "B": {"$": 0.9, "A": 0.1}}
    model = tree_model(tree)
    [greedy] = greedy_search(
        model, model.start(), max_lengths_B=torch.tensor([9]), suppressed_ids=(0, 1), **SPECIAL_IDS
    )
    [[best]] = search(tree_model(tree), [9])
    assert (spell(greedy.ids), spell(best.ids)) == ("A", "B")
    assert best.log_prob == pytest.approx(math.log(0.36), abs=1e-12)


def test_n_best_are_sorted_and_all_different(tree_model, spell) -> None:
    #  The tree above.
    tree = {"": {"A": 0.6, "B": 0.4}, "A": {"$": 0.55, "A": 0.45}, "B": {"$": 0.9, "A": 0.1}}
    [outputs] = search(tree_model(tree), [9], beam_size=4, n_best=4)
    assert [spell(output.ids) for output in outputs] == ["B", "A", "AA", "BA"]
    assert [math.exp(output.score) for output in outputs] == pytest.approx([0.36, 0.33, 0.27, 0.04], abs=1e-12)


def test_the_length_penalty_changes_the_winner(tree_model, spell) -> None:
    #            .6  A -- .6 $                                A     .36, 2 tokens with EOS
    #   BOS ----<      `- .4 C -- $                           AC    .24, 3 tokens
    #            .4  B -- .75 B -- C -- C -- C -- $           BBCCC .30, 6 tokens
    #                  `- .25 $                               B     .10, 2 tokens
    #
    #   alpha 1:  A  ln .36 / (7/6) = -.876     AC  ln .24 / (8/6) = -1.070     BBCCC  ln .30 / (11/6) = -.657
    after_b = {"BB": {"C": 1.0}, "BBC": {"C": 1.0}, "BBCC": {"C": 1.0}}
    tree = {"": {"A": 0.6, "B": 0.4}, "A": {"$": 0.6, "C": 0.4}, "B": {"B": 0.75, "$": 0.25}} | after_b
    [[by_probability]] = search(tree_model(tree), [9], alpha=0.0)
    [[by_score]] = search(tree_model(tree), [9], alpha=1.0)
    assert (spell(by_probability.ids), spell(by_score.ids)) == ("A", "BBCCC")
    assert by_score.log_prob == pytest.approx(math.log(0.3), abs=1e-12)
    assert by_score.score == pytest.approx(math.log(0.3) / (11 / 6), abs=1e-12)


def test_stops_as_soon_as_no_alive_beam_can_win_and_not_before(tree_model, spell) -> None:
    #            .5  $                              nothing  ln .5 / 1
    #   BOS ----<
    #            .5  A -- A -- A -- A -- A -- $     AAAAA    ln .5 / (11/6) with alpha 1
    #
    # Without a penalty, no alive beam can exceed the first. With it, the alive beam scores no better than the finished
    # hypothesis for five steps, but the bound uses the penalty of the maximum length.
    tree = {"": {"$": 0.5, "A": 0.5}} | {"A" * n: {"A": 1.0} for n in range(1, 5)}
    without, with_penalty = tree_model(tree), tree_model(tree)
    [[first]] = search(without, [9], alpha=0.0)
    [[last]] = search(with_penalty, [9], alpha=1.0)
    assert (spell(first.ids), len(without.rows_per_step)) == ("", 1)
    assert (spell(last.ids), len(with_penalty.rows_per_step)) == ("AAAAA", 6)


def test_more_hypotheses_need_a_longer_search(tree_model, spell) -> None:
    tree = {"": {"$": 0.9, "A": 0.1}, "A": {"B": 1.0}}
    for n_best, n_steps, expected in [(1, 1, [""]), (2, 3, ["", "AB"])]:
        model = tree_model(tree)
        [outputs] = search(model, [9], n_best=n_best)
        assert [spell(output.ids) for output in outputs] == expected
        assert len(model.rows_per_step) == n_steps


def test_where_nothing_finishes_alive_beams_are_returned_with_raw_log_probabilities(tree_model) -> None:
    #   BOS ---- .7 A -- .9 A       AA  .63
    #         `- .3 B -- 1. C       BC  .30
    model = tree_model({"": {"A": 0.7, "B": 0.3}, "A": {"A": 0.9, "B": 0.1}, "B": {"C": 1.0}})
    [outputs] = search(model, [2], alpha=0.6, n_best=2)
    assert [output.ids for output in outputs] == [(3, 3), (4, 5)]
    assert [output.log_prob for output in outputs] == pytest.approx([math.log(0.63), math.log(0.3)], abs=1e-12)
    assert all(output.score == output.log_prob and not output.is_finished for output in outputs)


def test_a_finished_hypothesis_comes_before_a_better_truncated_one(tree_model, spell) -> None:
    model = tree_model({"": {"A": 0.99, "$": 0.01}, "A": {"A": 1.0}})
    [[best]] = search(model, [2])
    assert (spell(best.ids), best.is_finished) == ("", True)


def test_each_sentence_has_its_own_maximum_length_and_leaves_when_done(tree_model, spell) -> None:
    tree = {"": {"A": 0.9, "B": 0.1}, "A": {"A": 1.0}, "AA": {"$": 1.0}, "B": {"$": 1.0}}
    model = tree_model(tree, {"": {"$": 1.0}}, tree, tree)
    outputs = search(model, [2, 9, 3, 1])
    assert [spell(output.ids) for [output] in outputs] == ["B", "", "AA", "A"]
    assert [output.is_finished for [output] in outputs] == [True, True, True, False]
    assert model.rows_per_step == [4, 2 * 2, 1 * 2]


def test_suppressed_tokens_are_never_generated_and_keep_their_probability(tree_model, spell) -> None:
    model = tree_model({"": {"_": 0.5, "^": 0.3, "A": 0.2}, "A": {"$": 0.1, "_": 0.9}})
    [outputs] = search(model, [4], beam_size=3, n_best=3)
    assert [spell(output.ids) for output in outputs] == ["A"]
    assert outputs[0].log_prob == pytest.approx(math.log(0.02), abs=1e-12)


def test_a_beam_wider_than_the_vocabulary(tree_model, spell) -> None:
    #  Six tokens, three of them possible next, and a beam of 20: every output is found.
    tree = {"": {"A": 0.5, "B": 0.3, "C": 0.2}, "C": {"A": 0.6, "B": 0.4}}
    [outputs] = search(tree_model(tree), [9], beam_size=20, n_best=20)
    assert [spell(output.ids) for output in outputs] == ["A", "B", "CA", "CB"]


def test_an_end_after_a_beam_of_probability_zero_is_no_hypothesis(tree_model, spell) -> None:
    #  Only A is possible; beams 2 to 4 are empty, and the tree gives EOS probability 1 after them.
    [outputs] = search(tree_model({"": {"A": 1.0}, "A": {"A": 1.0}}), [9], beam_size=4, n_best=4)
    assert [spell(output.ids) for output in outputs] == ["AA"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_log_probabilities_are_taken_in_single_precision_or_better(tree_model, dtype) -> None:
    tree = {"": {"A": 0.6, "$": 0.4}, "A": {"$": 0.3, "A": 0.7}, "AA": {"$": 0.9, "B": 0.1}}
    [[best]] = search(tree_model(tree, dtype=dtype), [9], alpha=0.6)
    logits = [torch.tensor(row, dtype=dtype).log() for row in ([0.4, 0.6], [0.3, 0.7], [0.9, 0.1])]
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    log_probs = [row.to(wide).log_softmax(0) for row in logits]
    expected = log_probs[0][1] + log_probs[1][1] + log_probs[2][0]
    assert best.ids == (3, 3)
    assert best.log_prob == pytest.approx(expected.item(), abs=1e-15 if dtype == torch.float64 else 1e-6)


def test_large_vocabularies_are_ranked_in_blocks_of_rows(monkeypatch) -> None:
    class Row:
        def select(self, rows_BW):
            return self

    table = torch.randn(50, 50, generator=torch.Generator().manual_seed(3), dtype=torch.float64)

    def outputs() -> list[list[Hypothesis]]:
        return beam_search(
            lambda last_ids_N, state: (table[last_ids_N], state),
            Row(),
            max_lengths_B=torch.full((3,), 6),
            beam_size=5,
            penalty=LengthPenalty(0.6),
            n_best=5,
            suppressed_ids=(0,),
            **SPECIAL_IDS,
        )

    in_one_block = outputs()
    monkeypatch.setattr("transduce.search.top_tokens.CPU_BLOCK_ENTRIES", 4 * 50)
    assert outputs() == in_one_block
    assert in_one_block[0] == in_one_block[2]


def test_no_sentences_give_no_outputs(tree_model) -> None:
    assert search(tree_model(), []) == []


@pytest.mark.parametrize("after_a", [{"_": 1.0}, {"A": math.nan}])
def test_a_sentence_without_a_hypothesis_is_named(tree_model, after_a) -> None:
    model = tree_model({}, {"": {"A": 1.0}, "A": after_a})
    with pytest.raises(SearchError, match=naming("sentence 1", "from 0", "NaN", "zero")):
        search(model, [3, 3])


def test_a_model_that_turns_to_nan_is_not_hidden_by_an_earlier_end(tree_model) -> None:
    model = tree_model({"": {"A": 0.9, "$": 0.1}, "A": {"A": math.nan}})
    with pytest.raises(SearchError, match=naming("sentence 0", "3 tokens", "NaN")):
        search(model, [3])


@pytest.mark.parametrize(("beam_size", "n_best"), [(0, 0), (2, 3), (2, 0)])
def test_a_beam_that_cannot_hold_n_best_is_refused(tree_model, beam_size, n_best) -> None:
    with pytest.raises(ValueError, match=naming(f"n_best {n_best}", f"beam_size {beam_size}")):
        search(tree_model({}), [3], beam_size=beam_size, n_best=n_best)
