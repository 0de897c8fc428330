"""Bucketing: sizes of tensors rounded up to few values.

Each batch has its own number of sentences, longest sentence and number of tokens. On a CPU every new shape of a product
costs twice: oneDNN compiles a kernel for it, and the memory allocator needs a block of a new size, for which it splits
free memory into ever smaller pieces. With few sizes, both the kernels and the blocks of earlier batches are used again.
On a GPU a compiled model would be compiled again for new shapes.
"""

from __future__ import annotations

__all__ = ["bucket_columns", "bucket_rows", "bucket_sentences"]

MIN_COLUMNS = 16  # torch's softmax is more than ten times slower on shorter rows


def bucket_rows(n: int) -> int:
    """Round up a number of positions in an unpadded tensor (N, D): 16 sizes per power of two, multiples of 8.

    Every product has this many rows, so the steps are small: on average 1.5 % is added.

    >>> [bucket_rows(n) for n in (5, 100, 1000, 1025, 2000)]
    [8, 104, 1024, 1088, 2048]
    """
    return _round_up(n, n_steps=16, multiple=8)


def bucket_columns(n: int) -> int:
    """Round up the longest length of a padded tensor (B, T, D): 4 sizes per power of two, multiples of 8, at least 16.

    >>> [bucket_columns(n) for n in (3, 17, 40, 65, 100)]
    [16, 24, 40, 80, 112]
    """
    return max(MIN_COLUMNS, _round_up(n, n_steps=4, multiple=8))


def bucket_sentences(n: int) -> int:
    """Round up the number of sentences of a padded tensor (B, T, D): 4 sizes per power of two.

    >>> [bucket_sentences(n) for n in (1, 5, 9, 130)]
    [1, 5, 10, 160]
    """
    return _round_up(n, n_steps=4, multiple=1)


def _round_up(n: int, *, n_steps: int, multiple: int) -> int:
    """Round up to a multiple of ``multiple`` and of the power of two that gives ``n_steps`` sizes per power of two."""
    power = 1 << max(n - 1, 0).bit_length()  # the next power of two
    step = max(power // (2 * n_steps), multiple)
    return -(-n // step) * step
