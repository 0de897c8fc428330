"""Images and audio as features: what the encoder's front end reads. Imports no torch; libraries where they are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transduce.imports import imported_on_use

if TYPE_CHECKING:
    from transduce.media.audio import frames_of_samples, read_audio
    from transduce.media.features import Features, FeaturesReader, MediaKind, is_audio_name, is_media_name, reader_of
    from transduce.media.images import columns_of_image, grey_image, read_image

__all__ = [
    "Features", "FeaturesReader", "MediaKind", "columns_of_image", "frames_of_samples", "grey_image", "is_audio_name",
    "is_media_name", "read_audio", "read_image", "reader_of",
]  # fmt: skip

imported_on_use(__name__)
