"""Damaged images and recordings are read or named in one line, and nothing else is said."""

from __future__ import annotations

import io
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from transduce.errors import DataError
from transduce.media import MediaKind, reader_of

Image: Any = pytest.importorskip("PIL.Image")
soundfile: Any = pytest.importorskip("soundfile")

IMAGES = ("PNG", "JPEG", "TIFF", "GIF", "WEBP", "BMP", "PPM", "PCX")
AUDIO = ("WAV", "FLAC", "OGG", "AIFF", "AU", "CAF")  # not MP3: its library speaks on stderr
N_DAMAGED = 25


def content_of(form: str) -> bytes:
    """A small file."""
    stream = io.BytesIO()
    if form in AUDIO:
        tone = np.sin(np.arange(3000) / 9).astype(np.float32)
        soundfile.write(stream, np.stack([tone, -tone], axis=1), 16_000, format=form)
    else:
        exif = Image.Exif()
        exif[0x0112] = 6
        pixels = np.random.default_rng(1).integers(0, 255, (12, 30), np.uint8)
        options = {"exif": exif} if form in ("PNG", "JPEG", "TIFF", "WEBP") else {}
        Image.fromarray(pixels).convert("RGB").save(stream, form, **options)
    return stream.getvalue()


def damaged(content: bytes, draw: Random) -> bytes:
    """A file that was cut, or has some bytes of its first ones or of all changed."""
    if draw.random() < 0.2:
        return content[: draw.randrange(len(content))]
    changed = bytearray(content)
    for _ in range(draw.choice((1, 3, 20))):
        changed[draw.randrange(min(len(changed), draw.choice((60, 1000))))] = draw.choice((0, 255, draw.randrange(256)))
    return bytes(changed)


@pytest.mark.reliability
@pytest.mark.parametrize("form", [*IMAGES, *AUDIO])
def test_a_damaged_file_is_read_or_named(form: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kind: MediaKind = "audio" if form in AUDIO else "image"
    content, draw, path = content_of(form), Random(form), tmp_path / "file"
    n_read, errors = 0, list[str]()
    for number in range(N_DAMAGED):
        path.write_bytes(damaged(content, draw) if number else content)
        try:
            features = reader_of(kind, width=16).read(path)
            n_read += bool(len(features))
        except DataError as error:
            errors.append(str(error))
    assert n_read
    assert errors
    assert all(str(path) in error and "\n" not in error for error in errors)
    assert capfd.readouterr() == ("", "")
