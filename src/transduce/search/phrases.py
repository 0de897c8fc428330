"""Phrases that outputs must have, and phrases that they must not have. Not in the paper.

Beam search with wanted phrases (Post and Vilar, 2018; the order of ``order`` is that of Hu et al., 2019): each alive
beam may also go on with the next token of a phrase that it lacks, and the beams are shared out among the hypotheses
that have 0, 1, 2, ... tokens of the phrases, so that one with all of them is always among them. Which tokens a
hypothesis has follows from its ids alone, so the search has no further state.

Shapes: B sentences, W alive beams, N = B W rows, Y phrases of a sentence, Z tokens of the longest, P candidates,
T tokens so far including BOS, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.search.processor import Prefixes

__all__ = ["AvoidedPhrases", "WantedPhrases"]

Phrase = Sequence[int]


def completing_ids(ids: Sequence[int], phrases: Sequence[Phrase]) -> list[int]:
    """Return the ids that would complete a phrase after ``ids``.

    >>> completing_ids([7, 5, 6], [(6, 8), (5, 6, 9), (5, 8), (3,)])
    [8, 9, 3]
    """
    return [each[-1] for each in phrases if list(ids[len(ids) + 1 - len(each) :]) == list(each[:-1])]


@dataclass(frozen=True, slots=True, eq=False)
class AvoidedPhrases:
    """A processor by which no output has certain phrases, those of its sentence."""

    phrases: Sequence[Sequence[Phrase]]

    def __call__(self, log_probs_NV: Tensor, prefixes: Prefixes, /) -> Tensor:
        """Set the log-probabilities of tokens that would complete a phrase to -inf, in place."""
        prefixes_N = zip(prefixes.sentences_N.tolist(), prefixes.ids_NT[:, 1:].tolist(), strict=True)
        blocked = [
            (row, id)
            for row, (sentence, ids) in enumerate(prefixes_N)
            for id in completing_ids(ids, self.phrases[sentence])
        ]
        if blocked:  # all at once, which is ten times as fast as row by row
            rows, ids = torch.tensor(blocked, device=log_probs_NV.device).unbind(1)
            log_probs_NV[rows, ids] = -torch.inf
        return log_probs_NV


class WantedPhrases:
    """The phrases that the outputs of a batch must have."""

    def __init__(self, phrases: Sequence[Sequence[Phrase]], is_inside_V: Tensor) -> None:
        """``phrases`` of each sentence; one that is there twice must occur twice.

        ``is_inside_V``: tokens that go on with a word; a phrase before one does not count.
        """
        self._is_inside_V, device = is_inside_V, is_inside_V.device
        n, longest = (max(map(len, phrases)), max((len(each) for of in phrases for each in of), default=0))
        padded = [[[*each, *[-1] * (longest - len(each))] for each in of] for of in phrases]
        ids = [[*of, *[[-1] * longest] * (n - len(of))] for of in padded]
        lengths = [[*map(len, of), *[0] * (n - len(of))] for of in phrases]
        times = [[*(list(map(tuple, of))[: i + 1].count(tuple(each)) for i, each in enumerate(of))] for of in phrases]
        self._ids_BYZ = torch.tensor(ids, device=device)
        self._lengths_BY = torch.tensor(lengths, device=device)
        self._times_BY = torch.tensor([[*of, *[0] * (n - len(of))] for of in times], device=device)

    def progress(self, sentences_B: Tensor, ids_BWT: Tensor) -> Tensor:
        """Return how many tokens of each phrase hypotheses have, (B, W, Y): all, or those at their ends."""
        ids_BYZ, lengths_BY = self._ids_BYZ[sentences_B], self._lengths_BY[sentences_B]
        longest, n_ids = ids_BYZ.shape[2], ids_BWT.shape[2]
        padded_BWT = F.pad(ids_BWT, (0, longest), value=-2)
        windows_BWTZ = padded_BWT[:, :, :-1].unfold(2, longest, 1)
        is_alike_BWTYZ = windows_BWTZ[:, :, :, None] == ids_BYZ[:, None, None]
        is_found_BWTY = (is_alike_BWTYZ | (ids_BYZ == -1)[:, None, None]).all(4)
        places_BTY = torch.arange(n_ids, device=ids_BWT.device)[:, None] + lengths_BY[:, None]  # after a phrase
        is_inside_BWT = F.pad(self._is_inside_V[ids_BWT], (0, longest))
        is_inside_BWTY = (
            is_inside_BWT[:, :, None]
            .expand(-1, -1, 1, -1)
            .gather(3, places_BTY.flatten(1)[:, None, None].expand(-1, ids_BWT.shape[1], 1, -1))
        )
        n_found_BWY = (is_found_BWTY & ~is_inside_BWTY.view_as(is_found_BWTY)).sum(2)
        is_whole_BWY = n_found_BWY >= self._times_BY[sentences_B][:, None]  # also one that is no phrase
        begun_BWY = torch.zeros_like(n_found_BWY)
        for n_begun in range(1, min(longest, n_ids + 1)):
            is_begun_BWY = is_alike_BWTYZ[:, :, n_ids - n_begun, :, :n_begun].all(3)
            begun_BWY = torch.where(is_begun_BWY & (lengths_BY[:, None] > n_begun), n_begun, begun_BWY)
        return torch.where(is_whole_BWY, lengths_BY[:, None], begun_BWY)

    def next_ids(self, sentences_B: Tensor, progress_BWY: Tensor) -> Tensor:
        """Return the token with which each phrase goes on, (B, W, Y); -1 for a phrase that is complete."""
        ids_BYZ = F.pad(self._ids_BYZ[sentences_B], (0, 1), value=-1)
        return ids_BYZ[:, None].expand(-1, progress_BWY.shape[1], -1, -1).gather(3, progress_BWY[..., None])[..., 0]

    def are_complete(self, sentences_B: Tensor, progress_BWY: Tensor) -> Tensor:
        """Return which hypotheses have all phrases, (B, W)."""
        return (progress_BWY >= self._lengths_BY[sentences_B][:, None]).all(2)

    def order(self, sentences_B: Tensor, progress_BPY: Tensor, log_probs_BP: Tensor) -> Tensor:
        """Return by what candidates are chosen, (B, P), the greatest first.

        The best with the most tokens of phrases, the best with one token less, and so on; then the second best of each.
        Only one phrase that is begun counts. Candidates of probability zero are last.
        """
        lengths_BY = self._lengths_BY[sentences_B]
        is_whole_BPY = progress_BPY >= lengths_BY[:, None]
        n_begun_BP = progress_BPY.masked_fill(is_whole_BPY, 0).amax(2)
        n_BP = (is_whole_BPY * lengths_BY[:, None]).sum(2) + n_begun_BP
        is_before_BPP = log_probs_BP[:, None, :] > log_probs_BP[:, :, None]
        place_BP = (is_before_BPP & (n_BP[:, None, :] == n_BP[:, :, None])).sum(2)
        order_BP = n_BP - place_BP * (lengths_BY.sum(1).amax() + 1)
        return order_BP.to(log_probs_BP.dtype).masked_fill(log_probs_BP == -torch.inf, -torch.inf)
