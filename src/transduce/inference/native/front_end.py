"""What ``model/media.py`` computes of an image or a recording, in numpy: the input of the encoder. Section 7.

Shapes: Z columns or frames, X width of a feature, P positions, D d_model, Y pixels of a patch, I input features, O
output features, J = D / 2 frequencies.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.config import TransformerConfig
from transduce.media.images import PIXEL_SCALE

__all__ = ["MediaFrontEnd"]

Floats = NDArray[np.float32]


class MediaFrontEnd:
    """Patches or strided convolutions, with their positions."""

    def __init__(self, config: TransformerConfig, weights: Mapping[str, Floats]) -> None:
        """``weights``: by their names on disk."""
        self._config, self._weights = config, weights

    def __call__(self, features_ZX: NDArray[Any]) -> Floats:
        """Return the states (P, D) of a source: its numbers do not depend on others."""
        config = self._config
        n_missing = -len(features_ZX) % config.source_stride
        padded_ZX = np.pad(features_ZX, ((0, n_missing), (0, 0))).astype(np.float32)
        if config.source == "frames":
            first_ZD = self._convolution("first", padded_ZX)
            states_PD = self._convolution("second", first_ZD)
            return states_PD + sinusoids(len(states_PD), config.d_model)
        strips = padded_ZX.reshape(-1, config.patch_width, config.n_source_rows, config.patch_height)
        patches_PY = strips.swapaxes(1, 2).reshape(-1, config.patch_width * config.patch_height) * PIXEL_SCALE
        half, n_rows = config.d_model // 2, config.n_source_rows
        states_PD = self._linear("projection", patches_PY)
        states_PD[:, :half] += np.repeat(sinusoids(len(states_PD) // n_rows, half), n_rows, axis=0)
        states_PD[:, half:] += np.tile(sinusoids(n_rows, half), (len(states_PD) // n_rows, 1))
        return states_PD

    def _linear(self, name: str, x_ZI: Floats) -> Floats:
        weight_OI, bias_O = (self._weights[f"source.{name}.{part}"] for part in ("weight", "bias"))
        product_ZO: Floats = x_ZI @ weight_OI.T + bias_O
        return product_ZO

    def _convolution(self, name: str, x_ZI: Floats) -> Floats:
        """(Z, I) to (Z / 2, O): of width 3 and stride 2, then ReLU."""
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(x_ZI, ((1, 0), (0, 0))), 3, axis=0)[::2]
        return np.maximum(self._linear(f"{name}.linear", windows.reshape(len(windows), -1)), 0)


def sinusoids(n_positions: int, d_model: int) -> Floats:
    """Return the positional encodings, (P, D). Section 3.5."""
    return _table(-(-n_positions // 1024) * 1024, d_model)[:n_positions]


@lru_cache(maxsize=4)
def _table(n_positions: int, d_model: int) -> Floats:
    angle_PJ = np.arange(n_positions)[:, None] / 10000.0 ** (np.arange(0, d_model, 2) / d_model)
    return np.stack((np.sin(angle_PJ), np.cos(angle_PJ)), axis=-1).reshape(n_positions, -1).astype(np.float32)
