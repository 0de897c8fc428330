"""Speculative decoding on hand-drawn trees: what is accepted, how many passes it takes, and the distribution."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from transduce.errors import SearchError
from transduce.search import (
    DraftLength,
    HeadsDrafter,
    LengthPenalty,
    ModelDrafter,
    PassCounts,
    Sampling,
    greedy_search,
    speculative_search,
)

EOS = {"eos_id": 2}
SPECIAL_IDS = {"bos_id": 1, "eos_id": 2, "suppressed_ids": (0, 1)}
#              .6  A -- .7 B -- .9 C -- $           the model writes ABC
MODEL = {"": {"A": 0.6, "B": 0.4}, "A": {"B": 0.7, "C": 0.3}, "AB": {"C": 0.9, "$": 0.1}, "ABC": {"$": 1.0}}


def search(model, drafter, *max_lengths, **options):  # type: ignore[no-untyped-def]
    counts = PassCounts()
    hypotheses = speculative_search(
        model.extend, model.start(), drafter=drafter, max_lengths_B=torch.tensor(max_lengths), counts=counts,
        **SPECIAL_IDS, **options,
    )  # fmt: skip
    return hypotheses, counts


def test_a_draft_that_is_right_takes_one_pass(tree_model, spell) -> None:
    model, small = tree_model(MODEL), tree_model(MODEL)
    [best], counts = search(model, ModelDrafter(small.extend, small.start(), length=DraftLength(5), **EOS), 9)
    assert spell(best.ids) == "ABC"
    assert best.log_prob == pytest.approx(math.log(0.6 * 0.7 * 0.9), abs=1e-12)
    assert (counts.passes, counts.tokens, counts.drafted, counts.accepted) == (1, 4, 3, 3)  # EOS is not drafted
    assert len(small.rows_per_step) == 4
    assert (counts.passes_per_sentence, counts.tokens_per_pass) == (1, 4)


def test_a_draft_ends_after_an_improbable_token(tree_model, spell) -> None:
    model, small = tree_model(MODEL), tree_model(MODEL)
    [best], counts = search(model, ModelDrafter(small.extend, small.start(), length=DraftLength(5, 0.65), **EOS), 9)
    # BOS A: A has 0.6, so no more is drafted; it is kept, the model writes B. B C: C is kept, then EOS.
    assert spell(best.ids) == "ABC"
    assert (counts.passes, counts.tokens, counts.drafted, counts.accepted) == (2, 4, 2, 2)


def test_what_follows_a_wrong_draft_is_rejected(tree_model, spell) -> None:
    wrong = {"": {"A": 0.9, "B": 0.1}, "A": {"C": 1.0}, "AC": {"C": 1.0}, "AB": {"C": 0.6, "A": 0.4}}
    model, small = tree_model(MODEL), tree_model(wrong)
    [best], counts = search(model, ModelDrafter(small.extend, small.start(), length=DraftLength(2), **EOS), 9)
    # BOS AC: A is kept, the model writes B. B CC: C is kept in the place of the second draft, then EOS.
    assert spell(best.ids) == "ABC"
    assert (counts.passes, counts.tokens, counts.drafted, counts.accepted) == (2, 4, 3, 2)


def test_a_row_may_end_with_unread_drafts_in_a_pass_without_drafts(tree_model, spell) -> None:
    short = {"": {"A": 1.0}, "A": {"B": 1.0}}
    model, small = tree_model(short, MODEL), tree_model(short, short)
    found, _ = search(model, ModelDrafter(small.extend, small.start(), length=DraftLength(1), **EOS), 9, 9)
    assert [spell(each.ids) for each in found] == ["AB", "ABC"]


def test_without_a_draft_each_pass_writes_a_token(tree_model, spell) -> None:
    [best], counts = search(tree_model(MODEL), None, 9)
    assert spell(best.ids) == "ABC"
    assert (counts.passes, counts.tokens, counts.drafted) == (4, 4, 0)


def test_a_draft_that_is_never_right_costs_no_more_passes_than_greedy_search(tree_model, spell) -> None:
    model, small = tree_model(MODEL), tree_model({prefix: {"_": 0.5, "C": 0.3, "B": 0.2} for prefix in ("", "A")})
    [best], counts = search(model, ModelDrafter(small.extend, small.start(), length=DraftLength(3), **EOS), 9)
    assert spell(best.ids) == "ABC"
    assert counts.passes == 4
    assert counts.accepted == 0


def test_sentences_of_a_batch_leave_at_their_end_or_limit(tree_model, spell) -> None:
    endless = {"A" * n: {"A": 0.9, "B": 0.1} for n in range(20)}
    trees = [endless, {"": {"$": 0.8, "A": 0.2}}, MODEL, endless, {"": {"B": 1.0}}, endless]
    limits = (3, 9, 5, 8, 2, 1)
    for draft in (endless, MODEL, {}):
        model, small = tree_model(*trees), tree_model(*[draft] * len(trees))
        drafter = ModelDrafter(small.extend, small.start(), length=DraftLength(3), **EOS)
        outputs, counts = search(model, drafter, *limits)
        expected = tree_model(*trees)
        assert outputs == greedy_search(expected, expected.start(), max_lengths_B=torch.tensor(limits), **SPECIAL_IDS)
        assert [spell(output.ids) for output in outputs] == ["AAA", "", "ABC", "A" * 8, "B", "A"]
        assert counts.tokens == 3 + 1 + 4 + 8 + 2 + 1


def test_random_trees_give_the_greedy_hypotheses(tree_model) -> None:
    generator = torch.Generator().manual_seed(5)

    def tree() -> dict[str, dict[str, float]]:
        prefixes = [""]
        for _ in range(5):
            prefixes += [prefix + token for prefix in prefixes for token in "ABC" if len(prefix) < 5]
        rows = torch.rand(len(set(prefixes)), 4, generator=generator).double() ** 2
        return {
            prefix: dict(zip("$ABC", (row / row.sum()).tolist(), strict=True))
            for prefix, row in zip(sorted(set(prefixes)), rows, strict=True)
        }

    for length in (DraftLength(1), DraftLength(2), DraftLength(4), DraftLength(4, 0.4)):
        trees, drafts, limits = [tree() for _ in range(7)], [tree() for _ in range(7)], (1, 2, 3, 4, 5, 6, 9)
        drafts[3], drafts[6] = trees[3], trees[6]
        model, small, plain = tree_model(*trees), tree_model(*drafts), tree_model(*trees)
        drafter = ModelDrafter(small.extend, small.start(), length=length, **EOS)
        outputs, counts = search(model, drafter, *limits, penalty=LengthPenalty(0.6))
        options = {"max_lengths_B": torch.tensor(limits), "penalty": LengthPenalty(0.6), **SPECIAL_IDS}
        for output, expected in zip(outputs, greedy_search(plain, plain.start(), **options), strict=True):
            assert output.ids == expected.ids
            assert output.score == pytest.approx(expected.score, abs=1e-12)
        assert counts.passes < counts.tokens


def test_heads_of_the_model_itself_draft(tree_model, spell) -> None:
    """Two further heads, of which the second is wrong after the first token."""
    model = tree_model(MODEL)

    def ahead(state) -> Tensor | None:  # type: ignore[no-untyped-def]
        ((_, prefix),) = state.rows
        if not prefix:
            return None
        after = {"^": "BA", "^AB": "$$"}[prefix]  # the second and the third token after the prefix
        return torch.eye(6)[torch.tensor([["_^$ABC".index(token) for token in after]])]

    [best], counts = search(model, HeadsDrafter(ahead), 9)
    # BOS gives A. A BA: B is kept, C follows. C $$: EOS is kept.
    assert spell(best.ids) == "ABC"
    assert (counts.passes, counts.tokens, counts.accepted) == (3, 4, 2)


def test_scores_can_be_left_out(tree_model, spell) -> None:
    [best], _ = search(tree_model(MODEL), None, 9, is_scored=False)
    assert spell(best.ids) == "ABC"
    assert math.isnan(best.score)


def test_a_model_without_probabilities_is_named(tree_model) -> None:
    with pytest.raises(SearchError, match="sentence 1"):
        search(tree_model({}, {"": {"A": math.nan}}), None, 3, 3)


@pytest.mark.parametrize(
    ("draft", "sampling"),
    [
        ("none", Sampling()), ("same", Sampling()), ("other", Sampling()), ("greedy", Sampling()),
        ("other", Sampling(temperature=0.7, top_k=2)), ("unsure", Sampling()),
    ],
)  # fmt: skip
def test_samples_have_the_distribution_of_the_model(tree_model, spell, draft: str, sampling: Sampling) -> None:
    """Pearson's chi-square against the exact distribution, by drawing the same sentence many times."""
    tree = {
        "": {"A": 0.5, "B": 0.3, "$": 0.2}, "A": {"A": 0.25, "C": 0.35, "$": 0.4}, "B": {"C": 0.9, "$": 0.1},
        "AA": {"B": 0.6, "$": 0.4}, "AC": {"A": 0.5, "$": 0.5}, "BC": {"$": 0.55, "A": 0.45},
    }  # fmt: skip
    other = {
        "": {"A": 0.2, "B": 0.5, "C": 0.1, "$": 0.2}, "A": {"C": 0.1, "B": 0.4, "$": 0.5}, "AA": {"B": 0.3, "$": 0.7},
        "B": {"A": 0.5, "C": 0.5}, "AC": {"A": 0.9, "$": 0.1},
    }  # fmt: skip
    n = 1500
    model, small = tree_model(*[tree] * n), tree_model(*[other if draft in ("other", "unsure") else tree] * n)
    length = DraftLength(2, 0.4 if draft == "unsure" else 0)
    drafter = None if draft == "none" else ModelDrafter(small.extend, small.start(), length=length, **EOS)
    if draft == "greedy":  # certain of its own first choice
        small.trees = [{"": {"A": 1.0}, "A": {"C": 1.0}, "AC": {"$": 1.0}}] * n
    generators = [torch.Generator().manual_seed(seed) for seed in range(n)]
    outputs, counts = search(model, drafter, *[4] * n, sampling=sampling, generators=generators)

    def distribution(prefix: str) -> dict[str, float]:
        weights = {token: p ** (1 / sampling.temperature) for token, p in tree.get(prefix, {"$": 1.0}).items()}
        kept = sorted(weights, key=weights.__getitem__, reverse=True)[: sampling.top_k]
        total = sum(weights[token] for token in kept)
        return {token: weights[token] / total for token in kept}

    probabilities: dict[str, float] = {}
    pending = [("", 1.0)]
    while pending:
        prefix, p = pending.pop()
        for token, p_token in distribution(prefix).items():
            if token == "$":
                probabilities[prefix] = p * p_token
            else:
                pending.append((prefix + token, p * p_token))
    assert sum(probabilities.values()) == pytest.approx(1)
    found = Counter(spell(output.ids) for output in outputs)
    assert found.keys() <= probabilities.keys()
    chi_square = sum((found[text] - n * p) ** 2 / (n * p) for text, p in probabilities.items())
    # 99.9 % quantiles of chi-square with 1 to 9 degrees of freedom.
    assert chi_square < (10.8, 13.8, 16.3, 18.5, 20.5, 22.5, 24.3, 26.1, 27.9)[len(probabilities) - 2]
    for output in outputs[:20]:
        assert output.log_prob == pytest.approx(math.log(probabilities[spell(output.ids)]), abs=1e-9)
    if draft == "same":
        assert counts.accepted == counts.drafted
    assert (counts.passes == counts.tokens) == (draft == "none")


def test_a_sample_does_not_depend_on_the_rest_of_its_batch(tree_model) -> None:
    tree, other = {"": {"A": 0.5, "$": 0.5}, "A": {"A": 0.5, "B": 0.5}}, {"": {"B": 0.4, "A": 0.6}}

    def outputs(numbers: list[int]) -> list[tuple[int, ...]]:
        model, small = tree_model(*[tree] * len(numbers)), tree_model(*[other] * len(numbers))
        drafter = ModelDrafter(small.extend, small.start(), length=DraftLength(3), **EOS)
        generators = [torch.Generator().manual_seed(number) for number in numbers]
        limits = [3 + number % 4 for number in numbers]
        found, _ = search(model, drafter, *limits, sampling=Sampling(), generators=generators)
        return [each.ids for each in found]

    together = outputs(list(range(20)))
    assert [outputs([number])[0] for number in range(20)] == together
    assert any(first != second for first, second in pairwise(together))


def test_invalid_arguments_are_refused(tree_model) -> None:
    model = tree_model(MODEL)
    with pytest.raises(ValueError, match="at least 1"):
        DraftLength(0)
    with pytest.raises(ValueError, match="from 0 to 1"):
        DraftLength(1, 1.5)
    with pytest.raises(ValueError, match="generator for each of 1"):
        search(model, None, 3, sampling=Sampling())
