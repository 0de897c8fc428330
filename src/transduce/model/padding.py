"""Padding removal: converts batches between padded (B, T, D) and unpadded (N, D) tensors.

Most of a Transformer works on each position alone (projections, feed-forward, norms, the softmax) and needs no padding.
These parts run on the unpadded tensor (N, D) of the real positions; only attention runs on the padded one.

With several sentences both tensors are larger than the batch needs, so that they have few shapes
(``transduce.bucketing`` says why): a padded tensor has additional columns and sentences, an unpadded one additional
rows, copies of its first row. What is computed there is ignored, and its gradient is zero. So both conversions are
gathers, and each is the gradient of the other: every padding position reads an additional row, and every additional row
reads a padding position.

Shapes: B sentences and T positions of each (both rounded up), S key positions, N real positions (rounded up), M real
source positions (rounded up), D any width, X = B T positions of a padded tensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.bucketing import bucket_columns, bucket_rows, bucket_sentences
from transduce.errors import ShapeError

__all__ = ["EncoderOutput", "PaddingInfo", "PairPadding", "causal_mask", "pair_padding", "require_right_padding"]


@dataclass(frozen=True, slots=True)
class PaddingInfo:
    """Which positions of a right-padded batch are real, and the conversion between padded and unpadded tensors.

    >>> padding = PaddingInfo.from_mask(torch.tensor([[True, True], [True, False]]))
    >>> x_ND = torch.arange(float(len(padding.index_N))).unsqueeze(1)
    >>> padding.pad(x_ND)[:2, :2, 0].tolist()  # the padding of the second sentence reads an additional row
    [[0.0, 1.0], [2.0, 3.0]]
    >>> padding.unpad(padding.pad(x_ND))[: padding.n_real].flatten().tolist()
    [0.0, 1.0, 2.0]
    """

    index_N: Tensor  # of each row in the flattened batch, in row-major order; 0 for additional rows
    position_N: Tensor  # of each row in its sentence, from 0; 0 for additional rows
    padded_N: Tensor  # position of each row in the flattened padded tensor; of additional rows: a padding position
    row_X: Tensor  # row of each position of a padded tensor; of padding positions: an additional row
    offsets: NDArray[np.int32]  # the first row of each sentence; the last is where they end
    is_key_BT: Tensor | None  # bool: where queries may attend, at real positions; None: everywhere
    n_real: int  # real positions
    n_sentences: int  # of the batch
    n_positions: int  # of the batch: its longest length
    shape_BT: tuple[int, int]  # of padded tensors

    @staticmethod
    def from_mask(is_real_BT: Tensor) -> PaddingInfo:
        """Build it from the mask of a batch. Raises ShapeError if a row is empty or not padded on the right."""
        require_right_padding(is_real_BT)
        lengths_B = is_real_BT.sum(dim=1).cpu().numpy()
        return PaddingInfo.from_lengths(lengths_B, n_positions=is_real_BT.shape[1], device=is_real_BT.device)

    @staticmethod
    def from_lengths(
        lengths_B: NDArray[np.int64], *, n_positions: int, device: torch.device, min_columns: int = 0
    ) -> PaddingInfo:
        """Build it from the length of each sentence; none is above ``n_positions``.

        Padded tensors of several sentences have at least ``min_columns`` columns.
        """
        n_sentences, n_real = len(lengths_B), int(lengths_B.sum())
        shape_BT = bucket_sentences(n_sentences), bucket_columns(max(n_positions, min_columns))
        if n_real == shape_BT[0] * shape_BT[1] or (n_sentences == 1 and n_real == n_positions):
            return PaddingInfo.without_padding(n_sentences, n_positions, device)
        is_real_BT = np.zeros(shape_BT, dtype=np.bool_)
        is_real_BT[:n_sentences] = np.arange(shape_BT[1]) < lengths_B[:, None]
        is_real_X = is_real_BT.ravel()
        real_N, first_padding = is_real_X.nonzero()[0], int(is_real_X.argmin())
        extra = (0, bucket_rows(n_real + 1) - n_real)
        position_N = np.pad(real_N % shape_BT[1], extra)
        index_N = np.pad(real_N // shape_BT[1] * n_positions, extra) + position_N
        padded_N = np.pad(real_N, extra, constant_values=first_padding)
        row_X = np.full(len(is_real_X), n_real)
        row_X[real_N] = np.arange(n_real)
        is_real_BT[n_sentences:, 0] = True  # additional sentences: the softmax over no key is undefined

        def on_device(array: NDArray[Any]) -> Tensor:
            return torch.from_numpy(array).to(device, non_blocking=True)

        return PaddingInfo(
            index_N=on_device(index_N),
            position_N=on_device(position_N),
            padded_N=on_device(padded_N),
            row_X=on_device(row_X),
            offsets=np.concatenate(([0], lengths_B.cumsum())).astype(np.int32),
            is_key_BT=on_device(is_real_BT),
            n_real=n_real,
            n_sentences=n_sentences,
            n_positions=n_positions,
            shape_BT=shape_BT,
        )

    @staticmethod
    def without_padding(n_sentences: int, n_positions: int, device: torch.device) -> PaddingInfo:
        """The padding info of a batch without padding, and without additional columns, sentences and rows."""
        index_N = torch.arange(n_sentences * n_positions, device=device)
        shape_BT = n_sentences, n_positions
        return PaddingInfo(
            index_N=index_N,
            position_N=index_N % n_positions,
            padded_N=index_N,
            row_X=index_N,
            offsets=np.arange(n_sentences + 1, dtype=np.int32) * n_positions,
            is_key_BT=None,
            n_real=len(index_N),
            n_sentences=n_sentences,
            n_positions=n_positions,
            shape_BT=shape_BT,
        )

    def gather(self, x_BT: Tensor) -> Tensor:
        """The rows (N, ...) of a batch (sentences, positions, ...), such as its ids."""
        return x_BT.flatten(0, 1).index_select(0, self.index_N)

    def pad(self, x_ND: Tensor) -> Tensor:
        """Restore the padding: (N, D) to (B, T, D). Values at padding are finite and must be ignored."""
        if self.is_key_BT is not None:
            x_ND = _Gather.apply(x_ND, self.row_X, self.padded_N)  # type: ignore[no-untyped-call]
        return x_ND.view(*self.shape_BT, -1)

    def unpad(self, x_BTD: Tensor) -> Tensor:
        """Remove the padding: (B, T, D) to (N, D)."""
        x_ND = x_BTD.flatten(0, 1)
        if self.is_key_BT is not None:
            x_ND = _Gather.apply(x_ND, self.padded_N, self.row_X)  # type: ignore[no-untyped-call]
        return x_ND

    def crop(self, x_BT: Tensor) -> Tensor:
        """Remove additional sentences and columns: (B, T, ...) to the shape of the batch."""
        return x_BT[: self.n_sentences, : self.n_positions]

    def allow_B1S(self) -> Tensor | None:
        """The key mask (B, 1, S) that hides padding; None if there is none."""
        return None if self.is_key_BT is None else self.is_key_BT.unsqueeze(1)

    def allow_cropped_B1S(self) -> Tensor | None:
        """The key mask of a cropped tensor; None if the batch has no padding."""
        if self.is_key_BT is None or self.n_real == self.n_sentences * self.n_positions:
            return None
        return self.crop(self.is_key_BT).unsqueeze(1)


class _Gather(torch.autograd.Function):
    """``x.index_select(0, index)``, where rows of ``x`` that are read never or several times have gradient zero.

    ``inverse_index`` has, for each row of ``x``, its index in the output; or that of any output with gradient zero.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, inverse_index: Tensor) -> Tensor:
        ctx.save_for_backward(inverse_index)
        return x.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (inverse_index,) = ctx.saved_tensors
        return grads[0].index_select(0, inverse_index), None, None


PairPadding = tuple[PaddingInfo, PaddingInfo]  # of source and target


def pair_padding(
    src_lengths_B: NDArray[np.int64], tgt_lengths_B: NDArray[np.int64], device: torch.device
) -> PairPadding:
    """Build the padding info of both sides of a batch of pairs from their lengths.

    Both sides get the same number of columns, so that self- and cross-attention have the same shapes.
    """
    widths = [int(lengths_B.max()) for lengths_B in (src_lengths_B, tgt_lengths_B)]
    src, tgt = (
        PaddingInfo.from_lengths(lengths_B, n_positions=width, device=device, min_columns=max(widths))
        for lengths_B, width in zip((src_lengths_B, tgt_lengths_B), widths, strict=True)
    )
    return src, tgt


def require_right_padding(is_real_BT: Tensor) -> None:
    """Raise ShapeError if a row is empty or not padded on the right."""
    if not bool(is_real_BT[:, 0].all()):
        raise ShapeError("a row of the batch has no token; give each sentence at least its EOS token")
    if bool((is_real_BT[:, 1:] & ~is_real_BT[:, :-1]).any()):
        raise ShapeError("a row of the batch has padding before a token; pad on the right")


@dataclass(frozen=True, slots=True)
class EncoderOutput:
    """The encoder's output ("memory"): the states (M, D) of the real source positions, and their padding info."""

    states_MD: Tensor
    padding: PaddingInfo


def causal_mask(n_positions: int, device: torch.device) -> Tensor:
    """The causal mask (1, T, T): each position attends to itself and the positions before it. Section 3.2.3.

    It hides padding on the right as well: real positions come before it.

    >>> causal_mask(2, torch.device("cpu")).tolist()
    [[[True, False], [True, True]]]
    """
    return torch.ones(1, n_positions, n_positions, dtype=torch.bool, device=device).tril()
