"""One suite for all layer types of Table 1, itself tested on broken layers; each layer against a reference."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from model.test_restricted import LargestTensor
from said import naming
from transduce.errors import ShapeError
from transduce.model.attention import dot_product_attention, merge_heads, split_heads
from transduce.model.sequence_layers import (
    Convolution,
    FullSelfAttention,
    Recurrent,
    RestrictedSelfAttention,
    SeparableConvolution,
    SequenceLayer,
)

D = 8
SEQUENCE_LAYERS: dict[str, Callable[[], SequenceLayer]] = {
    "full": lambda: FullSelfAttention(D, n_heads=2),
    "full, in the open": lambda: FullSelfAttention(D, n_heads=2, kernel="reference"),
    "full, causal": lambda: FullSelfAttention(D, n_heads=2, is_causal=True),
    "restricted to 5": lambda: RestrictedSelfAttention(D, n_heads=2, r=5),
    "restricted to 4, causal": lambda: RestrictedSelfAttention(D, n_heads=2, r=4, is_causal=True),
    "restricted to 1": lambda: RestrictedSelfAttention(D, n_heads=2, r=1),
    "LSTM": lambda: Recurrent(D, kernel="reference"),
    "LSTM, causal": lambda: Recurrent(D, kernel="reference", is_causal=True),
    "LSTM, fused": lambda: Recurrent(D),
    "GRU": lambda: Recurrent(D, cell="gru", kernel="reference"),
    "plain RNN": lambda: Recurrent(D, cell="rnn", kernel="reference"),
    "plain RNN, causal, fused": lambda: Recurrent(D, cell="rnn", is_causal=True),
    "GRU, causal, fused": lambda: Recurrent(D, cell="gru", is_causal=True),
    "convolution of 3": lambda: Convolution(D, k=3),
    "convolution of 4, causal": lambda: Convolution(D, k=4, is_causal=True),
    "convolution of 3, dilated": lambda: Convolution(D, k=3, dilation=2),
    "convolution of 2, dilated, causal": lambda: Convolution(D, k=2, dilation=3, is_causal=True),
    "separable convolution of 5": lambda: SeparableConvolution(D, k=5),
    "separable convolution of 3, causal": lambda: SeparableConvolution(D, k=3, is_causal=True),
}


def make(name: str) -> SequenceLayer:
    torch.manual_seed(1)
    return SEQUENCE_LAYERS[name]().double()


def states(*lengths: int, n_positions: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(2)
    is_real_BT = torch.arange(n_positions) < torch.tensor(lengths).unsqueeze(1)
    return torch.randn(len(lengths), n_positions, D, dtype=torch.float64), is_real_BT


def require_shape(sequence_layer: SequenceLayer) -> None:
    x, is_real = states(7, 4, 1, n_positions=7)
    out = sequence_layer(x, is_real)
    assert out.shape == x.shape
    assert out.dtype == x.dtype
    assert out.isfinite().all()
    out.sum().backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in sequence_layer.parameters())


def require_that_padding_is_not_seen(sequence_layer: SequenceLayer) -> None:
    """Other padding, more padding and other neighbours change nothing."""
    x, is_real = states(9, 5, 2, n_positions=9)
    out = sequence_layer(x, is_real)
    other = torch.where(is_real.unsqueeze(-1), x, 100.0)
    torch.testing.assert_close(sequence_layer(other, is_real)[is_real], out[is_real])
    for row, length in enumerate((9, 5, 2)):
        alone = sequence_layer(x[row : row + 1, :length], is_real[row : row + 1, :length])
        torch.testing.assert_close(alone[0], out[row, :length])


def require_receptive_field(sequence_layer: SequenceLayer) -> None:
    """The receptive field, from the Jacobian, is exactly ``receptive_field``."""
    for n_positions in (1, 2, 6, 13):
        x, is_real = states(n_positions, n_positions=n_positions)
        jacobian = torch.autograd.functional.jacobian(lambda x, is_real=is_real: sequence_layer(x, is_real)[0], x)
        sees_TT = jacobian[:, :, 0].abs().sum(dim=(1, 3)) > 0
        index = torch.arange(n_positions)
        seen = (index.unsqueeze(0) - index.unsqueeze(1))[sees_TT]  # how far before (-) or after (+)
        before, after = sequence_layer.receptive_field(n_positions)
        assert (-int(seen.min()), int(seen.max())) == (before, after), n_positions
        if sequence_layer.is_causal:
            assert after == 0


def require_count(sequence_layer: SequenceLayer) -> None:
    for n_positions in (5, 12):
        x, is_real = states(n_positions, n_positions=n_positions)
        with FlopCounterMode(display=False) as counter:
            sequence_layer(x, is_real)
        assert counter.get_total_flops() == 2 * sequence_layer.multiplications(n_positions)


REQUIREMENTS = (require_shape, require_that_padding_is_not_seen, require_receptive_field, require_count)


@pytest.mark.parametrize("name", SEQUENCE_LAYERS)
@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.__name__)
def test_every_sequence_layer(name: str, requirement: Callable[[SequenceLayer], None]) -> None:
    sequence_layer = make(name)
    if requirement is require_count and getattr(sequence_layer, "kernel", None) == "fused":
        pytest.skip("torch counts nothing in its own kernels on a CPU")
    requirement(sequence_layer)


class _Broken(Convolution):
    """A convolution with one fault of each kind."""

    def __init__(self, fault: str) -> None:
        super().__init__(D, k=3)
        self.fault = fault

    def forward(self, x_BTD: Tensor, is_real_BT: Tensor) -> Tensor:
        match self.fault:
            case "reads padding":
                return self._convolve(x_BTD)
            case "too short":
                return super().forward(x_BTD, is_real_BT)[:, 1:]
            case "sees all":
                return super().forward(x_BTD, is_real_BT) + (x_BTD * is_real_BT.unsqueeze(-1)).mean(1, keepdim=True)
            case _:
                return super().forward(x_BTD, is_real_BT)

    def multiplications(self, n_positions: int) -> int:
        return super().multiplications(n_positions) - (self.fault == "counts too few")


@pytest.mark.parametrize(
    ("fault", "requirement"),
    list(zip(("too short", "reads padding", "sees all", "counts too few"), REQUIREMENTS, strict=True)),
)
def test_the_suite_finds_faults(fault: str, requirement: Callable[[SequenceLayer], None]) -> None:
    torch.manual_seed(1)
    with pytest.raises(AssertionError):
        requirement(_Broken(fault).double())


@pytest.mark.parametrize(("r", "is_causal"), [(1, False), (3, False), (7, False), (4, True), (1, True), (40, True)])
@pytest.mark.parametrize("n_positions", [1, 6, 12, 17])
def test_restricted_attention_is_attention_with_a_band(r: int, is_causal: bool, n_positions: int) -> None:
    torch.manual_seed(1)
    sequence_layer = RestrictedSelfAttention(D, n_heads=2, r=r, is_causal=is_causal).double()
    x, is_real = states(n_positions, (n_positions + 1) // 2, n_positions=n_positions)
    index = torch.arange(n_positions)
    offset = index.unsqueeze(0) - index.unsqueeze(1)
    band = (offset > -r) & (offset <= 0) if is_causal else offset.abs() <= r // 2
    q, k, v = (split_heads(part, 2) for part in sequence_layer.w_qkv(x).chunk(3, dim=-1))
    allow = (band & is_real.unsqueeze(1)) | torch.eye(n_positions, dtype=torch.bool)
    expected = sequence_layer.w_o(merge_heads(dot_product_attention(q, k, v, allow_BTS=allow)[0]))
    torch.testing.assert_close(sequence_layer(x, is_real)[is_real], expected[is_real])


def test_restricted_attention_makes_no_square_of_the_length() -> None:
    sequence_layer = RestrictedSelfAttention(D, n_heads=2, r=5)
    counts = [sequence_layer.multiplications(n) for n in (1000, 2000)]
    assert counts[1] == 2 * counts[0]
    n_positions = 3000
    with torch.no_grad(), LargestTensor() as largest:
        sequence_layer(torch.randn(1, n_positions, D), torch.ones(1, n_positions, dtype=torch.bool))
    assert 0 < largest.n < n_positions**2 / 50


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
@pytest.mark.parametrize("is_causal", [True, False])
def test_recurrent_formulas_are_torchs(cell: str, is_causal: bool) -> None:
    torch.manual_seed(1)
    fused = Recurrent(D, cell=cell, is_causal=is_causal).double()  # type: ignore[arg-type]
    x, is_real = states(6, 3, n_positions=6)
    expected = fused(x, is_real)
    fused.kernel = "reference"
    torch.testing.assert_close(fused(x, is_real), expected)


@pytest.mark.parametrize(("k", "dilation", "is_causal"), [(3, 1, False), (2, 1, True), (3, 2, False), (3, 3, True)])
def test_a_convolution_by_its_definition(k: int, dilation: int, is_causal: bool) -> None:
    torch.manual_seed(1)
    sequence_layer = Convolution(D, k=k, dilation=dilation, is_causal=is_causal).double()
    x, is_real = states(7, n_positions=7)
    first = -(k - 1) * dilation if is_causal else -(k - 1) // 2 * dilation
    for position in range(7):
        expected = sequence_layer.kernel.bias
        for tap in range(k):
            index = position + first + tap * dilation
            if 0 <= index < 7:
                expected = expected + sequence_layer.kernel.weight[:, :, tap] @ x[0, index]
        torch.testing.assert_close(sequence_layer(x, is_real)[0, position], expected)


def test_a_dilated_stack_links_all_positions_in_logarithmic_depth() -> None:
    n_positions, k = 27, 3
    depth = round(math.log(n_positions, k))
    receptive_field = sum(
        Convolution(D, k=k, dilation=k**level, is_causal=True).receptive_field(n_positions)[0] for level in range(depth)
    )
    assert receptive_field == n_positions - 1


def test_the_paper_s_attention_has_four_matrices_and_no_biases() -> None:
    assert sum(each.numel() for each in FullSelfAttention(D, n_heads=2).parameters()) == 4 * D * D


def test_even_widths_without_a_centre_are_refused() -> None:
    with pytest.raises(ShapeError, match=naming("odd", "r = 4")):
        RestrictedSelfAttention(D, n_heads=2, r=4)
    with pytest.raises(ShapeError, match=naming("odd", "k", 2)):
        Convolution(D, k=2)
    with pytest.raises(ShapeError, match=naming("d_model 8", "n_heads 3")):
        FullSelfAttention(D, n_heads=3)
    with pytest.raises(ShapeError, match=naming("d_model", "even", 7)):
        Recurrent(7)
