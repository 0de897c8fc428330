"""Recordings as frames of log-mel bands: 25 ms windows every 10 ms, 80 bands by default.

Each band is normalised to mean 0 and variance 1 over the recording, so that loudness and the sound of a room matter
less.

Shapes: R samples, Y channels, P padded samples of a window, Z frames, X mel bands, J frequencies of a spectrum.
"""

from __future__ import annotations

import io
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.errors import DataError, shown
from transduce.media.libraries import library, require_file

__all__ = [
    "FRAMES_PER_SECOND", "SAMPLE_RATE", "Samples", "frames_of_samples", "mel_filters", "mixed", "read_audio",
    "resampled",
]  # fmt: skip

Samples = NDArray[np.float32]

SAMPLE_RATE = 16_000  # samples a second
WINDOW, STEP, N_FFT = 400, 160, 512  # samples: 25 ms, 10 ms, and the window padded with zeros
FRAMES_PER_SECOND = SAMPLE_RATE // STEP
DYNAMIC_RANGE = 8.0  # powers of ten below the loudest value; quieter ones are raised to it
MAX_SECONDS = 3600
SILENCE = 1e-5  # a peak below it, of 1, is no sound
MIN_MIXED = 0.25  # energy of a mixture, relative to that of unrelated channels: below it, the channels cancel
MAX_CANCELLED = 0.1  # share of the energy in parts where they do
# How files begin. Where libsndfile knows none, it looks into other files.
FORMATS = "WAV, AIFF, FLAC, Ogg, MP3, AU, CAF"
BEGINNINGS = re.compile(
    rb"(?:RIFF|RIFX|RF64).{4}WAVE|riff\x2e\x91\xcf\x11|FORM.{4}AIF[FC]|fLaC|OggS|ID3|\xff[\xe2-\xff]|\.snd|caff", re.S
)
MAX_FREQUENCY = SAMPLE_RATE / 2


def read_audio(path: Path) -> Samples:
    """Read a recording as samples (R,) from -1 to 1 at 16,000 a second, of one channel (``mixed``).

    Raises DataError if the file cannot be read or is longer than an hour, ConfigError if soundfile is missing.
    """
    soundfile = library("soundfile", needed_for="reading audio")
    require_file(path)
    try:
        with _Stream(path) as stream:
            beginning = stream.read(12)
            stream.seek(0)
            if not BEGINNINGS.match(beginning):
                raise DataError(f"{path} is not audio that can be read; formats that can be are {FORMATS}")
            with soundfile.SoundFile(stream) as file:
                seconds = file.frames / file.samplerate
                if seconds > MAX_SECONDS:
                    raise DataError(f"{path} has {seconds:,.0f} seconds, at most {MAX_SECONDS:,} are read; cut it")
                samples = file.read(dtype="float32", always_2d=True)
                return resampled(mixed(samples), file.samplerate)
    except DataError:
        raise
    except soundfile.LibsndfileError as error:
        raise DataError(f"{path} is not audio that can be read: {shown(error.error_string)}") from error
    except Exception as error:  # the library's wrapper raises several other kinds for damaged files
        raise DataError(f"{path} is not audio that can be read: {shown(str(error))}") from error


class _Stream(io.FileIO):
    """A file for libsndfile, which damaged files make seek to places before its beginning."""

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move, or stay where there is no such place."""
        try:
            return super().seek(offset, whence)
        except OSError:
            return self.tell()


def mixed(samples_RY: Samples) -> Samples:
    """Return the mean of the channels (R,); the loudest one if they cancel, as when one is inverted.

    >>> tone = np.array([0.5, -0.5, 0.25], np.float32)
    >>> mixed(np.stack([tone, -0.9 * tone], axis=1)).tolist()
    [0.5, -0.5, 0.25]
    """
    mean_R: Samples = samples_RY.mean(axis=1)
    if not len(mean_R):
        return mean_R
    starts = np.arange(0, len(mean_R), SAMPLE_RATE // 4)  # of parts, since channels may cancel for a while
    energies = np.add.reduceat(np.square(samples_RY, dtype=np.float64), starts)
    mixed_energy = np.add.reduceat(np.square(mean_R, dtype=np.float64), starts)
    unrelated = energies.sum(axis=1) / samples_RY.shape[1] ** 2  # of the mean of channels without correlation
    cancelled = unrelated[~(mixed_energy >= MIN_MIXED * unrelated)].sum()
    if cancelled <= MAX_CANCELLED * unrelated.sum():
        return mean_R
    return samples_RY[:, int(energies.sum(axis=0).argmax())]


def resampled(samples_R: Samples, rate: int, *, to: int = SAMPLE_RATE) -> Samples:
    """Return samples at another rate: the spectrum is cut, or padded with zeros.

    >>> resampled(np.ones(8, np.float32), 8, to=4).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    n = round(len(samples_R) * to / rate)
    if rate == to or not len(samples_R):
        return samples_R
    if not n:
        return samples_R[:0]
    spectrum = np.fft.rfft(samples_R)[: n // 2 + 1]
    return (np.fft.irfft(spectrum, n) * (n / len(samples_R))).astype(np.float32)


def frames_of_samples(samples_R: NDArray[Any], *, n_bands: int) -> NDArray[np.float16]:
    """Return the normalised log-mel frames (Z, X) of samples at 16,000 a second.

    Raises DataError if there is no sound, or a value is NaN or Inf.
    """
    if not np.isfinite(samples_R).all():
        raise DataError("has samples that are not finite (NaN or Inf)")
    if not len(samples_R) or float(np.abs(samples_R).max()) < SILENCE:
        raise DataError("has no sound")
    samples_R = np.pad(samples_R.astype(np.float32), (0, max(0, WINDOW - len(samples_R))))
    windows_ZP = np.lib.stride_tricks.sliding_window_view(samples_R, WINDOW)[::STEP] * np.hanning(WINDOW + 1)[:-1]
    power_ZJ = np.abs(np.fft.rfft(windows_ZP, N_FFT)) ** 2
    mel_ZX = power_ZJ @ mel_filters(n_bands).T
    log_ZX = np.log10(np.maximum(mel_ZX, 1e-12))
    log_ZX = np.maximum(log_ZX, log_ZX.max() - DYNAMIC_RANGE)
    deviation_X = log_ZX.std(axis=0)
    normalised_ZX = (log_ZX - log_ZX.mean(axis=0)) / np.maximum(deviation_X, 1e-3)
    frames_ZX: NDArray[np.float16] = normalised_ZX.astype(np.float16)
    return frames_ZX


@cache
def mel_filters(n_bands: int) -> NDArray[np.float64]:
    """Return triangular filters (X, J) whose centres are equally spaced on the mel scale, 2595 log10(1 + f / 700).

    Each rises from the centre of the band before it to 1 at its own, and falls to the centre of the next one.

    >>> mel_filters(80).shape
    (80, 257)
    """
    frequency_J = np.linspace(0, MAX_FREQUENCY, N_FFT // 2 + 1)
    top = 2595 * np.log10(1 + MAX_FREQUENCY / 700)
    centres = 700 * (10 ** (np.linspace(0, top, n_bands + 2) / 2595) - 1)
    lower, centre, upper = (centres[start : start + n_bands, None] for start in range(3))
    rising, falling = (frequency_J - lower) / (centre - lower), (upper - frequency_J) / (upper - centre)
    return np.maximum(0, np.minimum(rising, falling))
