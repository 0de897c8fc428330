"""Finished sentences leave the batch in steps: few batch sizes, and the results of each sentence alone."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor

from transduce.bucketing import bucket_sentences
from transduce.search import Hypothesis, LengthPenalty, beam_search, greedy_search

BOS, EOS = 0, 1
N_SENTENCES, N_TOKENS = 41, 7


class Row:
    """The sentence of each row; from its length on, its EOS is the most probable token."""

    def __init__(self, lengths_N: Tensor, step: int = 0) -> None:
        self.lengths_N, self.step = lengths_N, step

    def select(self, rows_BW: Tensor) -> Self:
        return type(self)(self.lengths_N[rows_BW.flatten()], self.step)


def search(lengths: list[int], *, beam_size: int | None) -> tuple[list[Hypothesis], list[int]]:
    """The results, and the number of rows of each step."""
    n_rows = []

    def step(last_ids_N: Tensor, state: Row) -> tuple[Tensor, Row]:
        n_rows.append(len(last_ids_N))
        logits_NV = torch.sin(torch.outer(last_ids_N + 3.0 * state.lengths_N + state.step, torch.arange(1.0, 8.0)))
        logits_NV[:, EOS] = torch.where(state.lengths_N <= state.step, 9.0, -9.0)
        return logits_NV, Row(state.lengths_N, state.step + 1)

    lengths_B = torch.tensor(lengths)
    max_lengths_B = torch.full_like(lengths_B, 60)
    if beam_size is None:
        found = greedy_search(
            step, Row(lengths_B), max_lengths_B=max_lengths_B, bos_id=BOS, eos_id=EOS, suppressed_ids=[BOS]
        )
    else:
        n_best = beam_search(
            step, Row(lengths_B), max_lengths_B=max_lengths_B, beam_size=beam_size, penalty=LengthPenalty(0.6),
            n_best=1, bos_id=BOS, eos_id=EOS, suppressed_ids=[BOS],
        )  # fmt: skip
        found = [best for [best] in n_best]
    return found, n_rows


def test_few_sizes_and_the_results_of_each_sentence_alone() -> None:
    lengths = [(17 * number) % N_SENTENCES + 1 for number in range(N_SENTENCES)]  # one is finished at every step
    for beam_size in (None, 3):
        together, n_rows = search(lengths, beam_size=beam_size)
        alone = [search([length], beam_size=beam_size)[0][0] for length in lengths]
        assert [each.ids for each in together] == [each.ids for each in alone]
        sizes = {n // (beam_size or 1) for n in n_rows[1:]}  # at first, beam search has a row for each sentence
        assert sizes <= {N_SENTENCES} | {bucket_sentences(size) for size in range(1, N_SENTENCES)}
        assert len(sizes) < N_SENTENCES // 2
        assert sum(n_rows) < len(n_rows) * max(n_rows) * 3 / 4
