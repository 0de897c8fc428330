"""The rows of Table 1: the paper's formulas of each layer, and how to build it.

All layers are causal, as in a decoder: every layer must link the same pairs of positions, and no kernel loses links
beyond the end of a sentence.

Shapes: B sentences, T positions (n in the paper), D d_model (d in the paper), R width of a recurrent state, X = 2 R
hidden and cell state, Z = 4 R gate units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, repeat, takewhile

import torch
from torch import Tensor

from transduce.model.sequence_layers import (
    Convolution,
    FullSelfAttention,
    Recurrent,
    RestrictedSelfAttention,
    SeparableConvolution,
    SequenceLayer,
    lstm_step,
)
from transduce_paper.printed import PRINTED
from transduce_paper.table1.graph_measures import links_of

__all__ = [
    "COMPARED", "D_K", "KERNEL_WIDTH", "NEIGHBOURHOOD", "ComparedLayer", "Widths", "cell_step",
    "rounds_until_convergence",
]  # fmt: skip

KERNEL_WIDTH, NEIGHBOURHOOD = 3, 16  # k and r
KERNEL_WIDTHS, NEIGHBOURHOODS = (3, 5, 9, 17), (8, 16, 32, 64)
D_K = 64  # of a head, as in the paper


@dataclass(frozen=True, slots=True)
class Widths:
    """Variants of a layer with several k or r. ``make`` takes d and the width."""

    symbol: str
    values: tuple[int, ...]
    make: Callable[[int, int], SequenceLayer]


@dataclass(frozen=True, slots=True)
class ComparedLayer:
    """A row of Table 1. ``make`` takes d; the formulas are of n."""

    name: str
    complexity: str  # as printed, like the next two; "" if the paper has none
    sequential: str
    path: str
    make: Callable[[int], SequenceLayer]  # with its fastest kernel
    make_countable: Callable[[int], SequenceLayer]  # with a kernel whose operations torch can count
    links: Callable[[int, int], Iterator[Tensor]]  # (n, d) -> links of each layer of a stack, or step of a cell
    exact_path: Callable[[int], int]
    exact_path_text: str
    projections: tuple[str, ...] = ()  # modules that the paper's formula leaves out
    widths: Widths | None = None


def _heads(d: int) -> int:
    return max(1, d // D_K)


def _full(d: int) -> SequenceLayer:
    return FullSelfAttention(d, n_heads=_heads(d), is_causal=True)


def _full_reference(d: int) -> SequenceLayer:
    return FullSelfAttention(d, n_heads=_heads(d), is_causal=True, kernel="reference")


def _restricted(d: int, r: int) -> SequenceLayer:
    return RestrictedSelfAttention(d, n_heads=_heads(d), r=r, is_causal=True)


def _contiguous(d: int, k: int) -> SequenceLayer:
    return Convolution(d, k=k, is_causal=True)


def _dilated(d: int, k: int = KERNEL_WIDTH) -> SequenceLayer:
    return Convolution(d, k=k, dilation=k, is_causal=True)


def _separable(d: int, k: int) -> SequenceLayer:
    return SeparableConvolution(d, k=k, is_causal=True)


def _links_of_layer(sequence_layer: SequenceLayer, n: int) -> Tensor:
    """Return the links of one layer between n positions without padding."""
    is_real_TT = torch.ones(n, n, dtype=torch.bool)
    return links_of(
        lambda x_TTD: sequence_layer.double()(x_TTD, is_real_TT),
        torch.randn(n, sequence_layer.d_model, dtype=torch.float64),
    )


def _same_layer(make: Callable[[int], SequenceLayer]) -> Callable[[int, int], Iterator[Tensor]]:
    return lambda n, d: repeat(_links_of_layer(make(d), n))


def _dilated_layers(n: int, d: int) -> Iterator[Tensor]:
    """Yield the links of layers with dilation 1, k, k^2, ... as long as they reach another position."""
    for dilation in takewhile(lambda dilation: dilation < n, (KERNEL_WIDTH**depth for depth in count())):
        yield _links_of_layer(Convolution(d, k=KERNEL_WIDTH, dilation=dilation, is_causal=True), n)


def _steps_of_cell(n: int, d: int) -> Iterator[Tensor]:
    sequence_layer = Recurrent(d, is_causal=True, kernel="reference").double()
    step = cell_step(sequence_layer, torch.randn(n, d, dtype=torch.float64))
    return repeat(links_of(step, torch.randn(n, 2 * sequence_layer.width, dtype=torch.float64)))


def cell_step(sequence_layer: Recurrent, x_TD: Tensor) -> Callable[[Tensor], Tensor]:
    """Return a function that applies an LSTM cell at all positions at once, from the left neighbour's current state.

    States are (B, T, X): hidden state and cell state; the first position's neighbour is zero. Repeated, the step
    converges to the output of the layer (``rounds_until_convergence``).
    """
    weights = dict(sequence_layer.directions[0].named_parameters())
    gates_x_TZ = x_TD @ weights["weight_ih_l0"].T + weights["bias_ih_l0"]

    def step(state_BTX: Tensor) -> Tensor:
        left_BTX = torch.cat((torch.zeros_like(state_BTX[:, :1]), state_BTX[:, :-1]), dim=1)
        h_BTR, c_BTR = left_BTX.chunk(2, dim=-1)
        gates_BTZ = gates_x_TZ + h_BTR @ weights["weight_hh_l0"].T + weights["bias_hh_l0"]
        return torch.cat(lstm_step(gates_BTZ, c_BTR), dim=-1)

    return step


def rounds_until_convergence(n: int, d: int) -> int | None:
    """Return the number of applications of the cell's step until the layer's output is reached; None if it never is."""
    sequence_layer = Recurrent(d, is_causal=True, kernel="reference").double()
    x_TD = torch.randn(n, d, dtype=torch.float64)
    step = cell_step(sequence_layer, x_TD)
    state_1TX = torch.zeros(1, n, 2 * sequence_layer.width, dtype=torch.float64)
    with torch.no_grad():
        expected_1TR = sequence_layer(x_TD.unsqueeze(0), torch.ones(1, n, dtype=torch.bool))
        for n_rounds in range(1, 2 * n):
            state_1TX = step(state_1TX)
            if torch.allclose(state_1TX[..., : sequence_layer.width], expected_1TR, rtol=0, atol=1e-14):
                return n_rounds
    return None


def _windowed(
    name: str, row: str, widths: Widths, *, width: int = KERNEL_WIDTH, projections: tuple[str, ...] = ()
) -> ComparedLayer:
    """Return a layer in which a position sees a window of ``width``; its fastest kernel can be counted."""

    def make(d: int) -> SequenceLayer:
        return widths.make(d, width)

    return ComparedLayer(
        name,
        *PRINTED.table1[row],
        make=make,
        make_countable=make,
        links=_same_layer(make),
        exact_path=lambda n: math.ceil((n - 1) / (width - 1)),
        exact_path_text=f"⌈(n - 1) / ({widths.symbol} - 1)⌉",
        projections=projections,
        widths=widths,
    )


COMPARED = (
    ComparedLayer(
        "Self-attention",
        *PRINTED.table1["self-attention"],
        make=_full,
        make_countable=_full_reference,
        links=_same_layer(_full_reference),
        exact_path=lambda n: 1,
        exact_path_text="1",
        projections=("w_qkv", "w_o"),
    ),
    ComparedLayer(
        "Recurrent (LSTM)",
        *PRINTED.table1["recurrent"],
        make=lambda d: Recurrent(d, is_causal=True),
        make_countable=lambda d: Recurrent(d, is_causal=True, kernel="reference"),
        links=_steps_of_cell,
        exact_path=lambda n: n - 1,
        exact_path_text="n - 1",
    ),
    ComparedLayer(
        f"Convolutional, k = {KERNEL_WIDTH}, dilated",
        *PRINTED.table1["dilated"],
        make=_dilated,
        make_countable=_dilated,
        links=_dilated_layers,
        exact_path=lambda n: next(depth for depth in count() if KERNEL_WIDTH**depth >= n),
        exact_path_text="⌈log_k n⌉",
        widths=Widths("k", KERNEL_WIDTHS, _dilated),
    ),
    _windowed(f"Convolutional, k = {KERNEL_WIDTH}, contiguous", "contiguous", Widths("k", KERNEL_WIDTHS, _contiguous)),
    _windowed(f"Separable convolution, k = {KERNEL_WIDTH}", "separable", Widths("k", KERNEL_WIDTHS, _separable)),
    _windowed(
        f"Self-attention, restricted, r = {NEIGHBOURHOOD}",
        "restricted",
        Widths("r", NEIGHBOURHOODS, _restricted),
        width=NEIGHBOURHOOD,
        projections=("w_qkv", "w_o"),
    ),
)
