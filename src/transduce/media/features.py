"""What a media task reads from a file: an image as columns of pixels, or a recording as frames.

Shapes: Z columns or frames, X width of a feature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from numpy.typing import NDArray

from transduce.errors import DataError
from transduce.media.audio import FRAMES_PER_SECOND, frames_of_samples, read_audio
from transduce.media.images import Pixels, columns_of_image, read_image

__all__ = [
    "AudioReader", "Features", "FeaturesReader", "ImageReader", "MediaKind", "Warn", "is_audio_name", "is_media_name",
    "reader_of",
]  # fmt: skip

Features = NDArray[Any]  # (Z, X): uint8 columns of pixels, or float16 frames
MediaKind = Literal["image", "audio"]
Warn = Callable[[str], object]  # is called with a message that names the file

IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".pbm", ".pgm", ".ppm", ".pnm")
AUDIO_ENDINGS = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aiff", ".aif", ".au")


class FeaturesReader(Protocol):
    """Reads features of one kind."""

    @property
    def kind(self) -> MediaKind:
        """What it reads."""

    @property
    def width(self) -> int:
        """X, the width of a feature."""

    @property
    def dtype(self) -> Literal["uint8", "float16"]:
        """The dtype of features."""

    def read(self, path: Path, warn: Warn = ..., /) -> Features:
        """Return the features of a file; ``warn`` is told if only a part of it is read.

        Raises DataError, naming the file, if it cannot be read or is empty.
        """

    def features(self, content: Any) -> Features:
        """Return the features of a decoded image or recording. Raises DataError if there is nothing in it."""

    def too_long(self, features: Features) -> str | None:
        """Return why features are too long for training, or None."""

    def length_in_words(self, n_columns: int) -> str:
        """Return a number of columns or frames in words: "15.0 seconds"."""


@dataclass(frozen=True, slots=True)
class ImageReader:
    """Reads images as columns of ``width`` pixels."""

    width: int  # X, the height of the scaled image
    max_columns: int = 1 << 20  # in training
    kind: MediaKind = "image"
    dtype: Literal["uint8"] = "uint8"

    def read(self, path: Path, warn: Warn = lambda message: None, /) -> Pixels:
        """Return the columns of an image file; ``warn`` is told of further pages.

        Raises DataError if it cannot be read or is blank.
        """
        try:
            return self.features(read_image(path, warn=warn))
        except DataError as error:
            raise DataError(str(error) if str(path) in str(error) else f"{path} {error}") from error

    def features(self, content: Pixels) -> Pixels:
        """Return the columns (Z, X) of a grey image, 0 is black. Raises DataError if it is blank."""
        return columns_of_image(content, height=self.width)

    def too_long(self, features: Features) -> str | None:
        """Return why an image is too wide for training, or None."""
        if len(features) <= self.max_columns:
            return None
        return f"{self.length_in_words(len(features))}, at most {self.max_columns:,}"

    def length_in_words(self, n_columns: int) -> str:
        """Return a number of columns in words."""
        return f"{n_columns:,} pixels wide at a height of {self.width}"


@dataclass(frozen=True, slots=True)
class AudioReader:
    """Reads recordings as frames of ``width`` log-mel bands."""

    width: int  # X, the number of bands
    max_columns: int = 1 << 20  # frames in training
    kind: MediaKind = "audio"
    dtype: Literal["float16"] = "float16"

    def read(self, path: Path, warn: Warn = lambda message: None, /) -> Features:
        """Return the frames of an audio file, which is read as a whole.

        Raises DataError if it cannot be read or has no sound.
        """
        samples = read_audio(path)
        try:
            return self.features(samples)
        except DataError as error:
            raise DataError(f"{path} {error}") from error

    def features(self, content: NDArray[Any]) -> Features:
        """Return the frames (Z, X) of samples at 16,000 a second. Raises DataError if there is no sound."""
        return frames_of_samples(content, n_bands=self.width)

    def too_long(self, features: Features) -> str | None:
        """Return why a recording is too long for training, or None."""
        if len(features) <= self.max_columns:
            return None
        return f"{self.length_in_words(len(features))}, at most {self.max_columns / FRAMES_PER_SECOND:g}"

    def length_in_words(self, n_columns: int) -> str:
        """Return a number of frames in words."""
        return f"{n_columns / FRAMES_PER_SECOND:.1f} seconds long"


def reader_of(kind: MediaKind, *, width: int, max_columns: int = 1 << 20) -> FeaturesReader:
    """Return the reader of images or audio whose features have a width; ``max_columns`` is the limit in training."""
    return ImageReader(width, max_columns) if kind == "image" else AudioReader(width, max_columns)


def is_audio_name(name: str) -> bool:
    """Return whether a file is a recording, by its name."""
    return name.lower().endswith(AUDIO_ENDINGS)


def is_media_name(name: str) -> bool:
    """Return whether a file is an image or a recording, by its name.

    >>> is_media_name("a/Scan.PNG"), is_media_name("a.wav"), is_media_name("a.txt")
    (True, True, False)
    """
    return name.lower().endswith((*IMAGE_ENDINGS, *AUDIO_ENDINGS))
