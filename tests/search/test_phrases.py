"""Beam search with phrases that outputs must have, or must not have."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from transduce.search import AvoidedPhrases, ForcedPrefix, LengthPenalty, WantedPhrases, beam_search

A, B, C, INSIDE = 3, 4, 5, 6
NOTHING_INSIDE = torch.zeros(8, dtype=torch.bool)


def found(model, phrases, *, beam_size=4, max_length=9, is_inside_V=NOTHING_INSIDE, process=None):
    return beam_search(
        model, model.start(), max_lengths_B=torch.full((len(phrases),), max_length), beam_size=beam_size,
        penalty=LengthPenalty(0.0), n_best=1, suppressed_ids=(0, 1), bos_id=1, eos_id=2, process=process,
        phrases=WantedPhrases(phrases, is_inside_V),
    )  # fmt: skip


class Unigrams:
    """A model whose next token does not depend on those before."""

    def __init__(self, *probs: float) -> None:
        self.logits_V = torch.tensor([0.0, 0.0, *probs], dtype=torch.float64).log()

    def start(self) -> Unigrams:
        return self

    def select(self, rows_BW) -> Unigrams:
        return self

    def __call__(self, last_ids_N, state):
        assert int(last_ids_N.min()) >= 0, "no token"
        return self.logits_V.expand(len(last_ids_N), -1), state


MODEL = Unigrams(0.4, 0.3, 0.2, 0.07, 0.02, 0.01)  # EOS, A, B, C, INSIDE, and another


@pytest.mark.parametrize(
    ("phrases", "ids"),
    [
        ([(C,)], (C,)),
        ([(C, B, C)], (C, B, C)),
        ([(C,), (C,)], (C, C)),
        ([(C, C), (C,)], (C, C)),
    ],
)
def test_the_best_output_with_all_phrases(phrases, ids) -> None:
    [[best]] = found(MODEL, [phrases])
    assert best.ids == ids
    assert best.is_finished
    assert best.log_prob == pytest.approx(sum(math.log(float(MODEL.logits_V[each].exp())) for each in (*ids, 2)))


def test_sentences_have_phrases_of_their_own() -> None:
    outputs = found(MODEL, [[(B, C)], [], [(A,), (B,), (C,)]])
    assert [sorted(each.ids) for [each] in outputs] == [[B, C], [], [A, B, C]]


def test_a_forced_prefix_beside_unequal_numbers_of_phrases() -> None:
    """Of the first token's candidates only the forced one is left."""
    forced = ForcedPrefix([(C, A), ()], NOTHING_INSIDE, is_complete=[True, True])
    [[first], [second]] = found(MODEL, [[(A, B)], [(A, B), (C,)]], beam_size=6, process=forced)
    assert first.ids == (C, A, B)
    assert sorted(second.ids) == [A, B, C]


def test_a_phrase_inside_a_longer_word_does_not_count() -> None:
    is_inside_V = NOTHING_INSIDE.clone()
    is_inside_V[INSIDE] = True
    phrases = WantedPhrases([[(A,), (A, INSIDE)]], is_inside_V)
    ids_BWT = torch.tensor([[[1, A, INSIDE], [1, A, B], [1, B, A]]])
    assert phrases.progress(torch.tensor([0]), ids_BWT).tolist() == [[[0, 2], [1, 0], [1, 1]]]
    [[best]] = found(MODEL, [[(A,), (A, INSIDE)]], is_inside_V=is_inside_V)
    assert best.ids in ((A, INSIDE, A), (A, A, INSIDE))


def test_a_phrase_that_overlaps_itself_is_followed() -> None:
    phrases = WantedPhrases([[(A, A, B)]], NOTHING_INSIDE)
    ids = [(A,), (A, A), (A, A, A), (A, A, A, B), (A, B), (A, A, B, C)]
    assert [
        phrases.progress(torch.tensor([0]), torch.tensor([[[1, *each]]])).item() for each in ids
    ] == [1, 2, 2, 3, 0, 3]  # fmt: skip


def test_every_phrase_is_in_every_output_of_random_models() -> None:
    generator = torch.Generator().manual_seed(1)
    for beam_size, n in itertools.product((2, 4), range(20)):
        model = Unigrams(*torch.rand(6, generator=generator).tolist())
        draws = torch.randint(A, 8, (3, 2), generator=generator).tolist()
        wanted = [tuple(draws[0]), tuple(draws[1][:1]), tuple(draws[2])][: 1 + n % 3]
        [[best]] = found(model, [wanted], beam_size=beam_size, max_length=20)
        assert all(
            any(best.ids[place : place + len(each)] == each for place in range(len(best.ids))) for each in wanted
        )


def test_avoided_phrases_are_not_written() -> None:
    avoided = AvoidedPhrases([[(C, B), (C, A)], [(C,)]])
    [[first], [second]] = found(MODEL, [[(C,), (B,)], [(B,)]], process=avoided)
    assert first.ids == (B, C)
    assert second.ids == (B,)
