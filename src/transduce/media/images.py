"""Images as columns of pixels: the amount of ink from 0 to 255, scaled to one height.

Shapes: I rows of an image as it is, J columns of it, Z columns after scaling, X pixels of a column.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.errors import DataError, shown
from transduce.media.libraries import library

__all__ = ["MAX_PIXELS", "Pixels", "columns_of_image", "grey_image", "is_blank", "read_image"]

Pixels = NDArray[np.uint8]

MAX_PIXELS = 64 << 20  # of an image as it is
MIN_CONTRAST = 16  # between the darkest and the lightest pixel, of 255: below it, an image is blank


def read_image(path: Path) -> Pixels:
    """Read an image file in grey: (I, J), 0 is black. Transparent parts are white; of several frames, the first counts.

    Raises DataError if the file cannot be read or is too large, ConfigError if Pillow is missing.
    """
    image_module = library("PIL.Image", needed_for="reading images")
    try:
        with image_module.open(path) as image:
            n_pixels = image.width * image.height
            if n_pixels > MAX_PIXELS:
                raise DataError(f"{path} has {n_pixels:,} pixels, at most {MAX_PIXELS:,} are read; scale it down")
            return grey_image(image)
    except FileNotFoundError as error:
        raise DataError(f"{path} cannot be read: there is no such file") from error
    except DataError:
        raise
    except Exception as error:  # Pillow's decoders raise many kinds for damaged files
        raise DataError(f"{path} is not an image that can be read: {shown(str(error))}") from error


def grey_image(image: Any) -> Pixels:
    """Return the pixels (I, J) of a Pillow image in grey, on white where it is transparent."""
    image_module = library("PIL.Image", needed_for="reading images")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        image = image_module.alpha_composite(image_module.new("RGBA", image.size, "white"), image)
    if image.mode.startswith(("I", "F")):  # 16 and 32 bits
        values_IJ = np.asarray(image, np.float64)
        span = float(np.ptp(values_IJ)) or 1.0
        scaled_IJ: Pixels = np.rint((values_IJ - values_IJ.min()) / span * 255).astype(np.uint8)
        return scaled_IJ
    grey_IJ: Pixels = np.asarray(image.convert("L"), np.uint8)
    return grey_IJ


def is_blank(grey_IJ: Pixels) -> bool:
    """Return whether an image has no pixels, or hardly any contrast."""
    return 0 in grey_IJ.shape or int(grey_IJ.max()) - int(grey_IJ.min()) < MIN_CONTRAST


def columns_of_image(grey_IJ: Pixels, *, height: int) -> Pixels:
    """Return the columns (Z, X) of an image, scaled to ``height`` pixels: 0 is paper, 255 is ink.

    The contrast is stretched, and light text on a dark ground is inverted. Raises DataError if the image is blank.
    """
    if is_blank(grey_IJ):
        raise DataError("is blank")
    image_module = library("PIL.Image", needed_for="reading images")
    n_rows, n_columns = grey_IJ.shape
    width = max(1, round(n_columns * height / n_rows))
    scaled = image_module.fromarray(grey_IJ).resize((width, height), image_module.Resampling.BILINEAR)
    grey_XZ = np.asarray(scaled, np.float32)
    low, high = float(grey_XZ.min()), float(grey_XZ.max())
    ink_XZ = (high - grey_XZ) / max(high - low, 1.0)
    if np.median(ink_XZ) > 0.5:  # most of a picture of text is its ground
        ink_XZ = 1.0 - ink_XZ
    return np.ascontiguousarray(np.rint(ink_XZ * 255).astype(np.uint8).T)
