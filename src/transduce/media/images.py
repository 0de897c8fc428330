"""Images as columns of pixels: the amount of ink from 0 to 255, scaled to one height.

Shapes: I rows of an image as it is, J columns of it, Z columns after scaling, X pixels of a column.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.errors import DataError, shown
from transduce.media.libraries import library, require_file

__all__ = ["FORMATS", "MAX_PIXELS", "PIXEL_SCALE", "Pixels", "columns_of_image", "grey_image", "is_blank", "read_image"]

Pixels = NDArray[np.uint8]
PIXEL_SCALE = 4 / 255  # in a model: most pixels are paper, so that values up to 4 have a variance of about 1

MAX_PIXELS = 64 << 20  # of an image as it is, and of a scaled one
MIN_CONTRAST = 4  # between the darkest and the lightest pixel, of 255: below it, an image is blank
LOW_CONTRAST = 32  # of 255: below it, another ground or a single colour may show more
# Decoders that start no other program and read no other file, unlike that of EPS and what embeds it.
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "DIB", "TIFF", "PPM", "WEBP", "AVIF", "JPEG2000", "PCX")


def read_image(path: Path, *, warn: Callable[[str], object] = lambda message: None) -> Pixels:
    """Read an image file in grey: (I, J), 0 is black, upright as its EXIF orientation says.

    Of several pages or frames the first is read, and ``warn`` is called with a message that names the file.
    Raises DataError if the file cannot be read or is too large, ConfigError if Pillow is missing.
    """
    image_module = library("PIL.Image", needed_for="reading images")
    require_file(path)
    image_module.init()
    formats = [name for name in FORMATS if name in image_module.OPEN]  # earlier versions have fewer
    try:
        # Opened here: given a name, Pillow maps the file, and a TIFF that lies on its side comes out scrambled.
        with _quietly(), path.open("rb") as stream, image_module.open(stream, formats=formats) as image:
            n_pixels = image.width * image.height
            if n_pixels > MAX_PIXELS:
                raise DataError(f"{path} has {n_pixels:,} pixels, at most {MAX_PIXELS:,} are read; scale it down")
            grey_IJ = grey_image(_upright(image))
            if _has_more_pages(image):
                warn(f"{path} has several pages or frames, only the first is read; save each as a file of its own")
            return grey_IJ
    except image_module.UnidentifiedImageError as error:
        known = ", ".join(FORMATS)
        raise DataError(f"{path} is not an image that can be read; formats that can be are {known}") from error
    except DataError:
        raise
    except Exception as error:  # Pillow's decoders raise many kinds for damaged files
        raise DataError(f"{path} is not an image that can be read: {shown(str(error))}") from error


@contextmanager
def _quietly() -> Iterator[None]:
    """Drop what Pillow tells on stderr about damaged parts: the picture counts."""
    logger, nowhere = logging.getLogger("PIL"), logging.NullHandler()
    logger.addHandler(nowhere)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.removeHandler(nowhere)


def _upright(image: Any) -> Any:
    """Return an image turned and mirrored as its EXIF orientation says; as it is if that is damaged, as viewers do."""
    image.load()
    try:
        return library("PIL.ImageOps", needed_for="reading images").exif_transpose(image)
    except Exception:  # the parser of metadata raises many kinds
        return image


def _has_more_pages(image: Any) -> bool:
    """Return whether there is a second page or frame that is no other version of the first one."""
    if image.format == "MPO":  # a photograph with a second view or a map of its depth
        return False
    try:
        image.seek(1)
    except Exception:  # there is none, or it is damaged
        return False
    return True


def grey_image(image: Any) -> Pixels:
    """Return the pixels (I, J) of a Pillow image in grey.

    Where it is transparent it is on white, or on black if that shows more. If its colours are equally bright, the
    primary colour that shows most is taken.
    """
    image_module = library("PIL.Image", needed_for="reading images")
    if image.mode in ("RGBA", "LA", "La", "PA", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
        on_white, on_black = (
            image_module.alpha_composite(image_module.new("RGBA", image.size, ground), image).convert("RGB")
            for ground in ("white", "black")
        )
        return _clearer(_grey_of_colours(on_white), lambda: [_grey_of_colours(on_black)])
    if image.mode.startswith(("I", "F")):  # 16 and 32 bits
        values_IJ = np.asarray(image, np.float64)
        span = float(np.ptp(values_IJ)) or 1.0
        scaled_IJ: Pixels = np.rint((values_IJ - values_IJ.min()) / span * 255).astype(np.uint8)
        return scaled_IJ
    return _grey_of_colours(image)


def _grey_of_colours(image: Any) -> Pixels:
    grey_IJ: Pixels = np.asarray(image.convert("L"), np.uint8)
    if image.mode in ("1", "L", "LA"):
        return grey_IJ
    return _clearer(grey_IJ, lambda: [np.asarray(band, np.uint8) for band in image.convert("RGB").split()])


def _clearer(grey_IJ: Pixels, others: Callable[[], list[Pixels]]) -> Pixels:
    """Return an image, or the one among others that shows far more if it shows little."""
    if _contrast(grey_IJ) >= LOW_CONTRAST:
        return grey_IJ
    best_IJ = max(others(), key=_contrast)
    return best_IJ if _contrast(best_IJ) > 2 * _contrast(grey_IJ) else grey_IJ


def _contrast(grey_IJ: Pixels) -> int:
    return int(np.ptp(grey_IJ)) if grey_IJ.size else 0


def is_blank(grey_IJ: Pixels, *, min_contrast: int = MIN_CONTRAST) -> bool:
    """Return whether an image has no pixels, or hardly any contrast."""
    return _contrast(grey_IJ) < min_contrast


def columns_of_image(grey_IJ: Pixels, *, height: int) -> Pixels:
    """Return the columns (Z, X) of an image, scaled to ``height`` pixels: 0 is paper, 255 is ink.

    The contrast is stretched, and light text on a dark ground is inverted. Raises DataError if the image is blank, or
    so flat that its scaled pixels would be too many.
    """
    if is_blank(grey_IJ):
        raise DataError("is blank")
    image_module = library("PIL.Image", needed_for="reading images")
    n_rows, n_columns = grey_IJ.shape
    width = max(1, round(n_columns * height / n_rows))
    if width * height > MAX_PIXELS:
        raise DataError(f"is {n_columns:,} pixels wide and only {n_rows:,} high; cut it into shorter lines")
    scaled = image_module.fromarray(grey_IJ).resize((width, height), image_module.Resampling.BILINEAR)
    grey_XZ = np.asarray(scaled, np.float32)
    low, high = float(grey_XZ.min()), float(grey_XZ.max())
    ink_XZ = (high - grey_XZ) / max(high - low, 1.0)
    if np.median(ink_XZ) > 0.5:  # most of a picture of text is its ground
        ink_XZ = 1.0 - ink_XZ
    return np.ascontiguousarray(np.rint(ink_XZ * 255).astype(np.uint8).T)
