"""Greedy and beam search on random small models against exhaustive search and a plain-Python beam search."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from transduce.search import Constrained, Hypothesis, LengthPenalty, beam_search, greedy_search

PAD, BOS, EOS = 0, 1, 2
SUPPRESSED = (PAD, BOS)
SPECIAL_IDS = {"bos_id": BOS, "eos_id": EOS, "suppressed_ids": SUPPRESSED}
Prefix = tuple[int, ...]


@cache
def logits_after(seed: int, prefix: Prefix, vocab_size: int) -> tuple[float, ...]:
    """The next-token logits of every model here: a function of the sentence (its seed) and the prefix."""
    random = Random(hash((seed, prefix)))  # integers hash alike in every process
    return tuple(random.gauss(0.0, 2.0) for _ in range(vocab_size))


def allowed_after(seed: int, prefix: Prefix, vocab_size: int) -> tuple[int, ...]:
    """The next tokens that the constraint allows: EOS and some random others."""
    random = Random(hash((seed, prefix, 1)))
    return (EOS, *random.sample(range(3, vocab_size), random.randint(0, vocab_size - 3)))


def log_probs_after(
    seed: int, prefix: Prefix, vocab_size: int, *, is_constrained: bool, marginalised_ids: tuple[int, ...]
) -> dict[int, float]:
    """Log-probabilities of the allowed tokens; allowed marginalised ids are rescaled to the group's total."""
    weights = [math.exp(logit) for logit in logits_after(seed, prefix, vocab_size)]
    allowed = allowed_after(seed, prefix, vocab_size) if is_constrained else range(vocab_size)
    group_weight, allowed_weight = (
        math.fsum(weights[index] for index in ids) for ids in (marginalised_ids, set(marginalised_ids) & set(allowed))
    )
    return {
        index: math.log(
            weights[index] / math.fsum(weights) * (group_weight / allowed_weight if index in marginalised_ids else 1)
        )
        for index in sorted(allowed)
        if index not in SUPPRESSED
    }


@dataclass(frozen=True)
class State:
    """The decoding state: the seed of each sentence, and the prefix of each of its beams."""

    seeds: tuple[int, ...]
    prefixes: tuple[tuple[Prefix, ...], ...]

    def select(self, rows_BW: Tensor) -> State:
        n_beams = len(self.prefixes[0])
        sentences_BW = rows_BW // n_beams
        kept = sentences_BW[:, 0].tolist()
        assert bool((sentences_BW == sentences_BW[:, :1]).all()), "a row of the matrix mixes sentences"
        assert kept == sorted(set(kept))
        assert 0 <= int(rows_BW.min()) <= int(rows_BW.max()) < n_beams * len(self.seeds)
        flat = [prefix for of_sentence in self.prefixes for prefix in of_sentence]
        return State(
            seeds=tuple(self.seeds[sentence] for sentence in kept),
            prefixes=tuple(tuple(flat[row] for row in rows_W) for rows_W in rows_BW.tolist()),
        )


@dataclass(frozen=True)
class Model:
    vocab_size: int

    def start(self, seeds: list[int]) -> State:
        return State(tuple(seeds), tuple(((),) for _ in seeds))

    def __call__(self, last_ids_N: Tensor, state: State) -> tuple[Tensor, State]:
        last_ids = iter(last_ids_N.tolist())
        prefixes = tuple(tuple((*prefix, next(last_ids)) for prefix in beams) for beams in state.prefixes)
        logits = [
            logits_after(seed, prefix[1:], self.vocab_size)
            for seed, beams in zip(state.seeds, prefixes, strict=True)
            for prefix in beams
        ]
        assert next(last_ids, None) is None
        return torch.tensor(logits, dtype=torch.float64), State(state.seeds, prefixes)


@dataclass(frozen=True)
class Case:
    """One search: a model, and a seed and a maximum length for each sentence."""

    vocab_size: int
    seeds: list[int]
    max_lengths: list[int]
    alpha: float
    is_constrained: bool
    marginalised_ids: tuple[int, ...]

    def constraint(self, sentence: int, prefix: Prefix) -> tuple[int, ...]:
        return allowed_after(self.seeds[sentence], prefix, self.vocab_size)

    def log_probs(self, sentence: int, prefix: Prefix) -> dict[int, float]:
        return log_probs_after(
            self.seeds[sentence],
            prefix,
            self.vocab_size,
            is_constrained=self.is_constrained,
            marginalised_ids=self.marginalised_ids,
        )

    def beam(self, *, beam_size: int, n_best: int = 1) -> list[list[Hypothesis]]:
        model = Model(self.vocab_size)
        options = {"beam_size": beam_size, "n_best": n_best, "penalty": LengthPenalty(self.alpha), **SPECIAL_IDS}
        options |= self.processor()
        return beam_search(model, model.start(self.seeds), max_lengths_B=torch.tensor(self.max_lengths), **options)

    def greedy(self) -> list[Hypothesis]:
        model = Model(self.vocab_size)
        options = {"penalty": LengthPenalty(self.alpha), **self.processor(), **SPECIAL_IDS}
        return greedy_search(model, model.start(self.seeds), max_lengths_B=torch.tensor(self.max_lengths), **options)

    def processor(self) -> dict[str, Any]:
        if not self.is_constrained:
            return {}
        return {"process": Constrained(self.constraint, self.marginalised_ids)}

    def penalty(self, length: int) -> float:
        return ((5 + length) / 6) ** self.alpha

    def single(self, sentence: int) -> Case:
        return replace(self, seeds=[self.seeds[sentence]], max_lengths=[self.max_lengths[sentence]])


@st.composite
def cases(draw: st.DrawFn, *, max_sentences: int, max_length: int) -> Case:
    n_sentences = draw(st.integers(1, max_sentences))
    vocab_size = draw(st.integers(4, 6))
    return Case(
        vocab_size=vocab_size,
        seeds=draw(st.lists(st.integers(0, 10**6), min_size=n_sentences, max_size=n_sentences, unique=True)),
        max_lengths=draw(st.lists(st.integers(1, max_length), min_size=n_sentences, max_size=n_sentences)),
        alpha=draw(st.sampled_from([0.0, 0.3, 0.6, 1.0, 2.0])),
        is_constrained=draw(st.booleans()),
        marginalised_ids=tuple(draw(st.sets(st.integers(3, vocab_size - 1)))),
    )


def every_output(case: Case, sentence: int) -> Iterator[tuple[float, Prefix]]:
    """Score and ids of all finished outputs of one sentence."""
    pending: list[tuple[float, Prefix]] = [(0.0, ())]
    while pending:
        log_prob, prefix = pending.pop()
        for index, log_p in case.log_probs(sentence, prefix).items():
            if index == EOS:
                yield (log_prob + log_p) / case.penalty(len(prefix) + 1), prefix
            elif len(prefix) + 1 < case.max_lengths[sentence]:
                pending.append((log_prob + log_p, (*prefix, index)))


def slow_beam_search(case: Case, sentence: int, *, beam_size: int) -> list[tuple[float, Prefix]]:
    """Beam search with the two pools as dictionaries and no early stopping; score and ids, best first."""

    def best(pool: dict[Prefix, float], n: int) -> dict[Prefix, float]:
        return dict(sorted(pool.items(), key=lambda item: -item[1])[:n])

    alive: dict[Prefix, float] = {(): 0.0}
    finished: dict[Prefix, float] = {}
    for length in range(1, case.max_lengths[sentence] + 1):
        candidates = {
            (*prefix, index): log_prob + log_p
            for prefix, log_prob in alive.items()
            for index, log_p in case.log_probs(sentence, prefix).items()
        }
        candidates = best(candidates, 2 * beam_size)
        ended = {ids[:-1]: log_prob / case.penalty(length) for ids, log_prob in candidates.items() if ids[-1] == EOS}
        finished = best(finished | ended, beam_size)
        alive = best({ids: log_prob for ids, log_prob in candidates.items() if ids[-1] != EOS}, beam_size)
    return [(score, ids) for ids, score in (finished or alive).items()]


def assert_same(outputs: list[Hypothesis], expected: list[tuple[float, Prefix]]) -> None:
    assert [output.ids for output in outputs] == [ids for _, ids in expected]
    assert [output.score for output in outputs] == pytest.approx([score for score, _ in expected], abs=1e-9)


@settings(max_examples=40)
@given(cases(max_sentences=2, max_length=5), st.integers(1, 6))
def test_a_beam_that_holds_everything_finds_the_best_of_all_outputs(case: Case, n_best: int) -> None:
    all_outputs = [sorted(every_output(case, sentence), reverse=True) for sentence in range(len(case.seeds))]
    beam_size = max(map(len, all_outputs)) + n_best  # alive beams are fewer than outputs: each could end
    for outputs, expected in zip(case.beam(beam_size=beam_size, n_best=n_best), all_outputs, strict=True):
        assert_same(outputs, expected[:n_best])
        assert all(output.is_finished for output in outputs)


@settings(max_examples=80)
@given(cases(max_sentences=3, max_length=6), st.integers(1, 5), st.data())
def test_agrees_with_a_slow_beam_search(case: Case, beam_size: int, data: st.DataObject) -> None:
    n_best = data.draw(st.integers(1, beam_size))
    for sentence, outputs in enumerate(case.beam(beam_size=beam_size, n_best=n_best)):
        assert_same(outputs, slow_beam_search(case, sentence, beam_size=beam_size)[:n_best])


@settings(max_examples=30)
@given(cases(max_sentences=4, max_length=6), st.integers(1, 4), st.randoms(use_true_random=False))
def test_results_do_not_depend_on_neighbours_or_order(case: Case, beam_size: int, random: Random) -> None:
    together = case.beam(beam_size=beam_size, n_best=beam_size)
    greedy_together = case.greedy()
    for sentence in range(len(case.seeds)):
        assert case.single(sentence).beam(beam_size=beam_size, n_best=beam_size) == [together[sentence]]
        assert case.single(sentence).greedy() == [greedy_together[sentence]]
    order = random.sample(range(len(case.seeds)), len(case.seeds))
    shuffled = replace(case, seeds=[case.seeds[i] for i in order], max_lengths=[case.max_lengths[i] for i in order])
    assert shuffled.beam(beam_size=beam_size, n_best=beam_size) == [together[i] for i in order]
    assert shuffled.greedy() == [greedy_together[i] for i in order]


@settings(max_examples=30)
@given(cases(max_sentences=3, max_length=6), st.integers(1, 5))
def test_outputs_are_sorted_distinct_within_their_limit_and_scored_by_their_ids(case: Case, beam_size: int) -> None:
    by_beam = case.beam(beam_size=beam_size, n_best=beam_size)
    by_greedy = [[output] for output in case.greedy()]
    for sentence, outputs in [*enumerate(by_beam), *enumerate(by_greedy)]:
        assert 1 <= len(outputs) <= beam_size
        assert len({output.ids for output in outputs}) == len(outputs)
        assert [output.score for output in outputs] == sorted((output.score for output in outputs), reverse=True)
        for output in outputs:
            tokens = (*output.ids, EOS) if output.is_finished else output.ids
            assert len(tokens) == case.max_lengths[sentence] or (
                output.is_finished and len(tokens) < case.max_lengths[sentence]
            )
            assert not {EOS, *SUPPRESSED} & set(output.ids)
            log_prob = sum(case.log_probs(sentence, tokens[:position])[index] for position, index in enumerate(tokens))
            assert output.log_prob == pytest.approx(log_prob, abs=1e-9)
            penalty = case.penalty(len(tokens)) if output.is_finished else 1.0
            assert output.score == pytest.approx(log_prob / penalty, abs=1e-9)


@settings(max_examples=30)
@given(cases(max_sentences=3, max_length=6), st.integers(2, 5))
def test_asking_for_more_outputs_does_not_change_the_best(case: Case, beam_size: int) -> None:
    alone = case.beam(beam_size=beam_size, n_best=1)
    for n_best in range(2, beam_size + 1):
        assert [outputs[:1] for outputs in case.beam(beam_size=beam_size, n_best=n_best)] == alone


@settings(max_examples=30)
@given(cases(max_sentences=3, max_length=6))
def test_a_beam_of_one_is_never_less_probable_than_greedy(case: Case) -> None:
    case = replace(case, alpha=0.0)
    for [of_beam], greedy in zip(case.beam(beam_size=1), case.greedy(), strict=True):
        # Truncated, the greedy output may be more probable: the beam prefers a finished hypothesis.
        assert of_beam.log_prob >= greedy.log_prob or (of_beam.is_finished and not greedy.is_finished)
