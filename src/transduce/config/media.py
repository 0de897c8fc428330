"""Data settings of images and audio with their text."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from transduce.config.data import DataConfig
from transduce.config.documents import OneSide
from transduce.config.record import FROM_LIST, Count, FileName, matching

__all__ = ["ImagesData", "MediaData", "Noise", "SpeechData"]

Noise = Literal["blur", "grain", "tilt", "faint", "speckle", "shadow", "pixelated", "ruled"]
NoiseKinds = Annotated[tuple[Noise, ...], FROM_LIST]
FileNames = Annotated[tuple[FileName, ...], FROM_LIST]
VoiceName = Annotated[
    str, Field(max_length=100), matching(r"[a-z][A-Za-z0-9+_-]*", "a voice of espeak-ng, as in en-us+f3")
]
VoiceNames = Annotated[tuple[VoiceName, ...], FROM_LIST]
Pixels = Annotated[int, Field(ge=1, le=10_000)]
Bands = Annotated[int, Field(ge=1, le=200)]
Seconds = Annotated[float, Field(gt=0, le=3600)]


class MediaData(DataConfig):
    """Own files, with corpus = "files": each line of a list is a file name, relative to the list, TAB its text."""

    files = "media"
    width_setting: ClassVar[str]  # that gives the width of the features
    apart: ClassVar[tuple[str, ...]]  # of generated corpora: what training and test must not share
    needed_by: ClassVar[tuple[str, str]]  # a generated corpus, and what it cannot do without

    train_media: FileName | None = None  # with corpus = "files": a list of file names with their texts, tab-separated
    dev_media: FileName | None = None  # likewise, for validation
    test_media: FileName | None = None  # likewise, for the final evaluation
    max_length: Count = 256  # tokens of a text, EOS included; longer ones are left out of training

    @model_validator(mode="after")
    def _training_and_test_differ(self) -> Self:
        for what in self.apart:
            trained, tested = getattr(self, f"training_{what}"), getattr(self, f"test_{what}")
            if both := [name for name in trained if name in tested]:
                raise ValueError(f"test_{what} should be none of training_{what}, got {both[0]!r} in both")
        name, what = self.needed_by
        for key in (f"training_{what}", f"test_{what}"):
            if name in self.weights and not getattr(self, key):
                raise ValueError(f"corpus = {name!r} needs {key}, a list of names")
        return self


class ImagesData(OneSide, MediaData):
    """Images with text."""

    width_setting = "image_height"
    generated = ("ocr-lines", "ocr-digits")
    apart = ("fonts", "noise")
    needed_by = ("ocr-lines", "fonts")

    image_height: Pixels = 32  # images are scaled to this height
    max_image_width: Pixels = 1200  # scaled images that are wider are dropped from training
    # corpus = "ocr-lines": the fonts, by file name, and the kinds of noise of the training lines and of the test lines.
    training_fonts: FileNames = ()
    test_fonts: FileNames = ()
    training_noise: NoiseKinds = ()
    test_noise: NoiseKinds = ()


class SpeechData(MediaData):
    """Recordings of speech."""

    width_setting = "n_bands"
    generated = ("speech-synthetic",)
    apart = ("voices",)
    needed_by = ("speech-synthetic", "voices")

    n_bands: Bands = 80  # mel bands of a frame of audio
    max_seconds: Seconds = 20.0  # longer audio is dropped from training
    # corpus = "speech-synthetic": the voices of espeak-ng that speak the training sentences, and the test sentences.
    training_voices: VoiceNames = ()
    test_voices: VoiceNames = ()
