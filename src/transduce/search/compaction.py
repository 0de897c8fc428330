"""Compaction: finished sentences leave the decoding batch in steps, so that it takes few sizes (see ``bucketing.py``).

Shapes: B sentences of the batch, X those that stay.
"""

from __future__ import annotations

from torch import Tensor

from transduce.bucketing import bucket_sentences

__all__ = ["kept_rows"]


def kept_rows(is_finished_B: Tensor, /, *, keep_finished: bool) -> Tensor | None:
    """The indices (X,) of the sentences that stay in the batch, in order; None if all do.

    All unfinished sentences stay. With ``keep_finished``, finished ones fill the batch up to the next size.

    >>> import torch
    >>> is_finished_B = torch.tensor([False, True] * 8 + [True])
    >>> kept_rows(is_finished_B, keep_finished=True).tolist()
    [0, 2, 4, 6, 8, 10, 12, 14]
    >>> is_finished_B[0] = True
    >>> kept_rows(is_finished_B, keep_finished=False).tolist()
    [2, 4, 6, 8, 10, 12, 14]
    """
    n_unfinished = int((~is_finished_B).sum())
    n_staying = bucket_sentences(n_unfinished) if keep_finished else n_unfinished
    if n_staying >= len(is_finished_B):
        return None
    unfinished_first_B = is_finished_B.int().argsort(stable=True)
    return unfinished_first_B[:n_staying].sort().values
