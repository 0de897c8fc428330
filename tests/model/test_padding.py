"""Padded and unpadded tensors: the same values and gradients as without bucketing, and few shapes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from transduce.bucketing import bucket_columns, bucket_rows, bucket_sentences
from transduce.config import ModelConfig
from transduce.loss import LossConfig
from transduce.model import AuxiliaryLosses, Transformer
from transduce.model.padding import PaddingInfo, pair_padding

CPU = torch.device("cpu")
CONFIG = ModelConfig(
    n_encoder_layers=2, n_decoder_layers=2, d_model=16, d_ff=32, n_heads=2, d_k=8, d_v=8, src_vocab_size=20,
    tgt_vocab_size=20, p_drop=0.0,
)  # fmt: skip
LENGTHS = st.lists(st.integers(1, 30), min_size=1, max_size=12)


@given(st.integers(1, 1 << 20))
def test_buckets_are_at_least_the_size_and_few(n: int) -> None:
    for bucket, most in ((bucket_rows, 1 / 16), (bucket_columns, 1 / 4), (bucket_sentences, 1 / 4)):
        rounded = bucket(n)
        assert n <= rounded <= max(n * (1 + most), n + 8, 16)
        assert bucket(rounded) == rounded
    assert len({bucket_rows(n) for n in range(4096, 8192)}) <= 17
    assert len({bucket_columns(n) for n in range(64, 128)}) <= 5
    assert len({bucket_sentences(n) for n in range(64, 128)}) <= 5


@given(LENGTHS)
def test_padding_and_its_removal_are_inverse(lengths: list[int]) -> None:
    padding = PaddingInfo.from_lengths(np.array(lengths), n_positions=max(lengths), device=CPU)
    assert padding.n_real == sum(lengths)
    batch_BT = torch.arange(len(lengths) * max(lengths)).view(len(lengths), -1)
    rows_N = padding.gather(batch_BT)
    expected = torch.cat([row[:length] for row, length in zip(batch_BT, lengths, strict=True)])
    assert rows_N[: padding.n_real].tolist() == expected.tolist()
    padded_BT1 = padding.pad(rows_N.unsqueeze(1))
    cropped_BT = padding.crop(padded_BT1.squeeze(2))
    for row, original, length in zip(cropped_BT, batch_BT, lengths, strict=True):
        assert row[:length].tolist() == original[:length].tolist()
    assert padding.unpad(padded_BT1)[: padding.n_real, 0].tolist() == expected.tolist()
    positions = [position for length in lengths for position in range(length)]
    assert padding.position_N[: padding.n_real].tolist() == positions


@given(LENGTHS)
def test_queries_attend_to_real_positions(lengths: list[int]) -> None:
    padding = PaddingInfo.from_lengths(np.array(lengths), n_positions=max(lengths), device=CPU)
    is_real_BT = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    allow_B1S, cropped_B1S = padding.allow_B1S(), padding.allow_cropped_B1S()
    if allow_B1S is not None:
        assert padding.crop(allow_B1S.squeeze(1)).tolist() == is_real_BT.tolist()
        assert allow_B1S.any(dim=-1).all()  # also of additional sentences
        assert not allow_B1S[: len(lengths), 0, max(lengths) :].any()
    if cropped_B1S is None:
        assert is_real_BT.all()
    else:
        assert cropped_B1S.squeeze(1).tolist() == is_real_BT.tolist()


def test_a_single_sentence_has_no_additional_positions() -> None:
    padding = PaddingInfo.from_mask(torch.ones(1, 5, dtype=torch.bool))
    assert (padding.shape_BT, len(padding.index_N), padding.is_key_BT) == ((1, 5), 5, None)


def test_both_sides_of_a_pair_have_the_same_columns() -> None:
    src, tgt = pair_padding(np.array([3, 9]), np.array([40, 2]), CPU)
    assert (src.shape_BT, tgt.shape_BT) == ((2, 40), (2, 40))
    assert (src.n_positions, tgt.n_positions) == (9, 40)


def _batch(src_lengths: list[int], tgt_lengths: list[int]) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(5)

    def side(lengths: list[int]) -> Tensor:
        ids_BT = torch.randint(4, 20, (len(lengths), max(lengths)), generator=random)
        return ids_BT * (torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1))

    return side(src_lengths), side(tgt_lengths)


def _gradients(model: Transformer, batches: list[tuple[Tensor, Tensor]], padding: Any = None) -> list[Tensor]:
    """The gradient of the loss and the balance loss, summed over batches."""
    model.zero_grad()
    for src_BS, tgt_BT in batches:
        auxiliary = AuxiliaryLosses()
        states_ND = model(src_BS, tgt_BT, padding=padding, auxiliary=auxiliary)
        loss = model.output.loss(states_ND, tgt_BT[tgt_BT != 0], LossConfig(eps_ls=0.1))
        balance = auxiliary.total()
        (loss.loss_nats if balance is None else loss.loss_nats + balance).backward()  # type: ignore[no-untyped-call]
    return [weight.grad.clone() for weight in model.parameters() if weight.grad is not None]


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_gradients_are_those_of_single_sentences(norm: str) -> None:
    """Additional sentences, columns and rows contribute nothing: single sentences have none."""
    torch.manual_seed(3)
    model = Transformer(CONFIG.model_copy(update={"norm": norm})).double()
    src_lengths, tgt_lengths = [3, 17, 9, 1, 5], [20, 2, 9, 4, 1]
    src_BS, tgt_BT = _batch(src_lengths, tgt_lengths)
    singles = [
        (src_BS[row : row + 1, :n_src], tgt_BT[row : row + 1, :n_tgt])
        for row, (n_src, n_tgt) in enumerate(zip(src_lengths, tgt_lengths, strict=True))
    ]
    expected = _gradients(model, singles)
    both = pair_padding(np.array(src_lengths), np.array(tgt_lengths), CPU)
    for padding in (None, both):
        for got, want in zip(_gradients(model, [(src_BS, tgt_BT)], padding), expected, strict=True):
            torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-12)


def test_additional_rows_have_no_part_in_the_balance_of_experts() -> None:
    """The same balance loss, and gradient, whatever the number of additional columns and rows."""
    torch.manual_seed(3)
    model = Transformer(CONFIG.model_copy(update={"n_experts": 4})).double()
    src_BS, tgt_BT = _batch([3, 17, 9], [5, 2, 9])
    narrow = _gradients(model, [(src_BS, tgt_BT)])
    lengths = np.array([3, 17, 9]), np.array([5, 2, 9])
    wide = tuple(
        PaddingInfo.from_lengths(each, n_positions=int(each.max()), device=CPU, min_columns=60) for each in lengths
    )
    for got, want in zip(_gradients(model, [(src_BS, tgt_BT)], wide), narrow, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-12)


class ProductShapes(TorchDispatchMode):
    """Context manager that collects the shapes of all matrix products in its block."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.shapes: set[tuple[Any, ...]] = set()

    def __torch_dispatch__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm, torch.ops.aten.bmm):
            self.shapes.add((str(func), *(tuple(x.shape) for x in args if isinstance(x, Tensor))))
        return func(*args, **(kwargs or {}))


@pytest.mark.merge
def test_an_epoch_has_few_shapes_of_products() -> None:
    """150 batches of different sizes soon have no new shape of a product."""
    random = np.random.default_rng(1)
    model = Transformer(CONFIG.model_copy(update={"n_encoder_layers": 1, "n_decoder_layers": 1}))
    exact, seen, n_seen = set(), ProductShapes(), []
    for _ in range(150):
        n_rows = int(random.integers(90, 128))
        src, tgt = (random.integers(10, 25, n_rows) for _ in range(2))
        exact.add((n_rows, int(src.max()), int(src.sum()), int(tgt.sum())))
        src_BS, tgt_BT = _batch(src.tolist(), tgt.tolist())
        with seen:
            states_ND = model(src_BS, tgt_BT, padding=pair_padding(np.array(src), np.array(tgt), CPU))
            model.output.loss(states_ND, tgt_BT[tgt_BT != 0]).loss_nats.backward()
        n_seen.append(len(seen.shapes))
    assert len(exact) == 150
    # 5 shapes of weights with 3 products each, plus those of the loss, for some 8 numbers of rows; 6 of attention for
    # two numbers of sentences.
    assert n_seen[-1] < 200
    assert n_seen[-1] == n_seen[110]
