"""Two sentences of section 4 about convolutions, held against counted operations.

Shapes: T positions (n in the paper), D d_model (d in the paper).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

from transduce.model import FeedForward, StackConfig
from transduce.model.sequence_layers import Convolution, Recurrent, RecurrentCell, SeparableConvolution
from transduce_paper.report import Cell, Claim, Table, agreement
from transduce_paper.table1.compared_layers import ComparedLayer
from transduce_paper.table1.layer_costs import count_operations

__all__ = ["ConvolutionCounts", "about_convolutions", "claims_about_convolutions", "count_convolutions"]

CONSTANTS = (2, 12)  # (4 n² d + 24 n d²) / (2 n² d + 2 n d²): where the first terms dominate, and where the second do
INNER_FACTOR = 4  # d_ff / d_model of the paper's models
CELLS: Mapping[RecurrentCell, str] = {"rnn": "plain RNN", "gru": "GRU", "lstm": "LSTM"}


@dataclass(frozen=True, slots=True)
class ConvolutionCounts:
    """Counted operations of whole layers at n positions of width d."""

    sizes: Sequence[tuple[int, int]]  # (n, d)
    separable: Sequence[int]  # with k = n, at each size
    attention: Sequence[int]  # self-attention with its projections
    feed_forward: Sequence[int]
    k: int
    convolution: int  # of width k, at the last size
    of_twice_k: int
    recurrent: Mapping[RecurrentCell, int]  # one layer, at the last size


def count_convolutions(attention: ComparedLayer, sizes: Sequence[tuple[int, int]], *, k: int) -> ConvolutionCounts:
    """Count the operations that the two sentences compare, for each (n, d)."""
    n, d = sizes[-1]

    def convolution(k: int) -> int:
        return count_operations(Convolution(d, k=k, is_causal=True), n, projections=()).whole

    def operations(layer: ComparedLayer, n: int, d: int) -> int:
        return count_operations(layer.make_countable(d), n, projections=()).whole

    return ConvolutionCounts(
        sizes=sizes,
        separable=[
            count_operations(SeparableConvolution(d, k=n, is_causal=True), n, projections=()).whole for n, d in sizes
        ],
        attention=[operations(attention, n, d) for n, d in sizes],
        feed_forward=[_of_feed_forward(n, d) for n, d in sizes],
        k=k,
        convolution=convolution(k),
        of_twice_k=convolution(2 * k),
        recurrent={
            cell: count_operations(Recurrent(d, cell=cell, is_causal=True, kernel="reference"), n, projections=()).whole
            for cell in CELLS
        },
    )


def _of_feed_forward(n: int, d: int) -> int:
    """Return the operations of the position-wise feed-forward network over n positions."""
    network = FeedForward(StackConfig(n_layers=1, d_model=d, d_ff=INNER_FACTOR * d, n_heads=1, d_k=d, d_v=d))
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        network(torch.randn(n, d))
    return int(sum(counter.get_flop_counts()["Global"].values()))


def about_convolutions(counts: ConvolutionCounts) -> tuple[str | Table, ...]:
    """Return the section of the report."""
    return (
        f"""\
## Convolutions

"Even with k = n, however, the complexity of a separable convolution is equal to the combination of a self-attention
layer and a point-wise feed-forward layer". In O() it is: both are O(n² d + n d²). Counted, it is cheaper: 2 n² d + 2 n
d² operations, against 4 n² d + 8 n d² of self-attention and 16 n d² of a feed-forward network with
d_ff = {INNER_FACTOR} d. The first term, which dominates long sentences, differs by a factor of 2, the second by 12.""",
        _separable_table(counts),
        '"Convolutional layers are generally more expensive than recurrent layers, by a factor of k." A convolution of'
        " width k has 2 k n d² operations. That is k times a recurrence with one matrix product per position; with one"
        " for the input and one for the state, as recurrent layers have, and several gates, the factor is smaller.",
        _recurrent_table(counts),
    )


def _separable_table(counts: ConvolutionCounts) -> Table:
    rows = tuple(
        (n, d, separable, attention, feed_forward, (attention + feed_forward) / separable)
        for (n, d), separable, attention, feed_forward in zip(
            counts.sizes, counts.separable, counts.attention, counts.feed_forward, strict=True
        )
    )
    columns = ("n", "d", "separable convolution, k = n", "self-attention", "feed-forward", "the last two / the first")
    formats = dict.fromkeys(columns[:5], ",") | {columns[5]: ".2f"}
    return Table("-separable", columns, rows, "Operations of whole layers.", formats)


def _recurrent_table(counts: ConvolutionCounts) -> Table:
    n, d = counts.sizes[-1]
    rows = tuple[tuple[Cell, ...], ...](
        (
            CELLS[cell],
            operations,
            counts.convolution,
            counts.convolution / operations,
            f"k / {round(counts.k * operations / counts.convolution)}",
        )
        for cell, operations in counts.recurrent.items()
    )
    columns = ("recurrent layer", "its operations", f"convolution, k = {counts.k}", "ratio", "as a formula")
    caption = f"Operations of whole layers at n = {n:,}, d = {d}."
    return Table(
        "-convolution-and-recurrence", columns, rows, caption, {columns[1]: ",", columns[2]: ",", "ratio": ".2f"}
    )


def claims_about_convolutions(counts: ConvolutionCounts) -> tuple[Claim, ...]:
    """Return both sentences, which are about O(), with what was counted."""
    ratios = [
        (attention + feed_forward) / separable
        for separable, attention, feed_forward in zip(
            counts.separable, counts.attention, counts.feed_forward, strict=True
        )
    ]
    factors = [counts.convolution / operations for operations in counts.recurrent.values()]
    grows_with_k = abs(counts.of_twice_k / counts.convolution - 2) < 0.05
    return (
        Claim(
            "Even with k = n, however, the complexity of a separable convolution is equal to the combination of a"
            " self-attention layer and a point-wise feed-forward layer",
            "section 4",
            agreement(all(CONSTANTS[0] <= ratio <= CONSTANTS[1] for ratio in ratios)),
            f"In O(): at every size the quotient is between the constants {CONSTANTS[0]} (of n² d) and"
            f" {CONSTANTS[1]} (of n d²). Counted, the separable convolution is {min(ratios):.1f} to {max(ratios):.1f}"
            " times cheaper.",
            "algebra",
        ),
        Claim(
            "Convolutional layers are generally more expensive than recurrent layers, by a factor of k",
            "section 4",
            agreement(grows_with_k),
            f"In O(): twice the k has {counts.of_twice_k / counts.convolution:.2f} times the operations. Counted, with"
            f" k = {counts.k}, a convolution has {max(factors):.2f} times the operations of a plain recurrent layer"
            f" (k / 2), and {min(factors):.2f} times those of an LSTM (k / 8), so it is the cheaper one.",
            "algebra",
        ),
    )
