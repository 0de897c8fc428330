"""The encoder's input from images and audio; the rest of the Transformer is unchanged. Section 7.

An image is a sequence of columns of pixels, audio a sequence of frames of log-mel bands. Both are *features*: a tensor
(B, Z, X), padded with zeros after the end of each row, with the number of positions that each row has. Images are cut
into patches, each projected linearly (Dosovitskiy et al., 2021); frames pass through two convolutions of stride 2 (Dong
et al., 2018; Radford et al., 2023).

Shapes: B batch of images or recordings, Z columns or frames (a multiple of the stride), X width of a feature (pixels of
a column or bands of a frame), P positions, N real positions, D d_model, Y pixels of a patch, I input features, O output
features.
"""

from __future__ import annotations

from typing import assert_never

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config import TransformerConfig
from transduce.media.images import PIXEL_SCALE
from transduce.model.dropout import Dropout
from transduce.model.embedding import SinusoidalPositions
from transduce.model.front_end import FrontEnd
from transduce.model.padding import PaddingInfo

__all__ = ["FrameFrontEnd", "PatchFrontEnd", "PatchPositions", "StridedConvolution", "media_front_end"]


def media_front_end(config: TransformerConfig) -> FrontEnd:
    """The front end for ``config.source``, which is not "tokens"."""
    match config.source:
        case "patches":
            return PatchFrontEnd(config)
        case "frames":
            return FrameFrontEnd(config)
        case "tokens":
            raise AssertionError("tokens have the front end TokenFrontEnd")
        case never:
            assert_never(never)


class PatchPositions(nn.Module):
    """2-d sinusoids: half of the channels encode the column of a patch, the other half its row.

    Patches are numbered from top to bottom, then from left to right.
    """

    def __init__(self, d_model: int, *, n_rows: int) -> None:
        super().__init__()
        self.n_rows, self.sinusoids = n_rows, SinusoidalPositions(d_model // 2)

    def forward(self, position_N: Tensor, n_positions: int) -> Tensor:
        """The encoding (N, D) of each position; all positions are below ``n_positions``."""
        column_N, row_N = position_N.div(self.n_rows, rounding_mode="floor"), position_N % self.n_rows
        return torch.cat((self.sinusoids(column_N, n_positions), self.sinusoids(row_N, self.n_rows)), dim=-1)


class PatchFrontEnd(nn.Module):
    """Patches of an image, projected linearly, plus 2-d sinusoids, then dropout."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.height, self.width, self.n_rows = config.patch_height, config.patch_width, config.n_source_rows
        self.projection = nn.Linear(self.height * self.width, config.d_model)
        self.positions = PatchPositions(config.d_model, n_rows=self.n_rows)
        self.dropout = Dropout(config.p_drop)

    def forward(self, columns_BZX: Tensor, padding: PaddingInfo | None = None, /) -> tuple[Tensor, PaddingInfo]:
        """The states (N, D) of the real patches, and their padding info; without one, all patches are real."""
        patches_BPY = self.patches(columns_BZX)
        if padding is None:
            padding = PaddingInfo.without_padding(len(patches_BPY), patches_BPY.shape[1], columns_BZX.device)
        encoding_ND = self.positions(padding.position_N, padding.n_positions)
        pixels_NY = padding.gather(patches_BPY).to(encoding_ND.dtype) * PIXEL_SCALE
        return self.dropout(self.projection(pixels_NY) + encoding_ND), padding

    def patches(self, columns_BZX: Tensor) -> Tensor:
        """Cut images (B, Z, X), columns of pixels, into patches (B, P, Y); their pixels are column by column."""
        strips = columns_BZX.reshape(len(columns_BZX), -1, self.width, self.n_rows, self.height)
        return strips.transpose(2, 3).flatten(3).flatten(1, 2)


class StridedConvolution(nn.Module):
    """A convolution over time of width 3 and stride 2, then ReLU, as one product over the three features.

    It equals ``torch.nn.functional.conv1d(..., stride=2, padding=1)``. Rows of even length never read beyond their end,
    so padding on the right changes nothing.
    """

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.linear = nn.Linear(3 * n_in, n_out)  # the weight of conv1d (O, I, 3), flattened

    def forward(self, x_BZI: Tensor) -> Tensor:
        """(B, Z, I) to (B, Z / 2, O)."""
        windows = F.pad(x_BZI, (0, 0, 1, 0)).unfold(1, 3, 2)  # (B, Z / 2, I, 3)
        return F.relu(self.linear(windows.flatten(2)))


class FrameFrontEnd(nn.Module):
    """Frames of audio through two strided convolutions, plus sinusoids, then dropout: a position per four frames."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.first = StridedConvolution(config.source_width, config.d_model)
        self.second = StridedConvolution(config.d_model, config.d_model)
        self.positions, self.dropout = SinusoidalPositions(config.d_model), Dropout(config.p_drop)

    def forward(self, frames_BZX: Tensor, padding: PaddingInfo | None = None, /) -> tuple[Tensor, PaddingInfo]:
        """The states (N, D) of the real positions, and their padding info; without one, all positions are real."""
        x_BPD = self.second(self.first(frames_BZX.to(self.positions.table_PD.dtype)))
        if padding is None:
            padding = PaddingInfo.without_padding(len(x_BPD), x_BPD.shape[1], frames_BZX.device)
        encoding_ND = self.positions(padding.position_N, padding.n_positions)
        return self.dropout(padding.gather(x_BPD) + encoding_ND), padding
