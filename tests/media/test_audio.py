"""Log-mel frames against the formulas, summed term by term; audio files of all kinds."""

from __future__ import annotations

import cmath
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from said import naming
from transduce.errors import DataError
from transduce.media import frames_of_samples, read_audio, reader_of
from transduce.media.audio import mel_filters, resampled

soundfile: Any = pytest.importorskip("soundfile")


def tone(hertz: float, seconds: float = 0.1, rate: int = 16_000) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def power_spectrum(window: np.ndarray) -> list[float]:
    """The power spectrum of 25 ms, by the definition."""
    spectrum = []
    for k in range(257):
        value = sum(
            float(x) * (0.5 - 0.5 * math.cos(2 * math.pi * t / 400)) * cmath.exp(-2j * math.pi * k * t / 512)
            for t, x in enumerate(window)
        )
        spectrum.append(abs(value) ** 2)
    return spectrum


def mel_energy(spectrum: list[float], band: int, n_bands: int) -> float:
    """A band of a power spectrum, by the definition."""
    mel_top = 2595 * math.log10(1 + 8000 / 700)
    low, centre, high = (
        700 * (10 ** (mel_top * (band + edge) / (n_bands + 1) / 2595) - 1) for edge in (0, 1, 2)
    )  # hertz
    total = 0.0
    for k, power in enumerate(spectrum):
        hertz = k * 16_000 / 512
        if low < hertz <= centre:
            total += power * (hertz - low) / (centre - low)
        elif centre < hertz < high:
            total += power * (high - hertz) / (high - centre)
    return total


def test_frames_are_normalised_logarithms_of_mel_energies() -> None:
    samples = tone(440) * np.linspace(0.2, 1, 1600, dtype=np.float32) + tone(3000)
    samples += np.random.default_rng(1).normal(0, 0.01, 1600).astype(np.float32)
    frames = frames_of_samples(samples, n_bands=8)
    assert (frames.shape, frames.dtype) == ((8, 8), np.float16)  # 1 + (1600 - 400) // 160 windows
    spectra = [power_spectrum(samples[160 * t : 160 * t + 400]) for t in range(8)]
    energies = [[mel_energy(spectrum, band, 8) for band in range(8)] for spectrum in spectra]
    logs = np.log10(np.array(energies))
    expected = (logs - logs.mean(axis=0)) / logs.std(axis=0)
    np.testing.assert_allclose(frames.astype(float), expected, atol=5e-3)


def test_every_band_has_a_frequency() -> None:
    filters = mel_filters(80)
    assert filters.shape == (80, 257)
    assert filters.max(axis=1).min() > 0.1
    assert (np.diff(filters.argmax(axis=1)) >= 0).all()


def test_a_louder_recording_has_the_same_frames() -> None:
    samples = tone(440) + np.random.default_rng(1).normal(0, 0.02, 1600).astype(np.float32)
    one, other = (frames_of_samples(samples * factor, n_bands=20).astype(float) for factor in (0.1, 0.9))
    np.testing.assert_allclose(one, other, atol=5e-3)


@pytest.mark.parametrize("rate", [8000, 22_050, 44_100, 48_000])
def test_resampling_keeps_tones_and_drops_what_does_not_fit(rate: int) -> None:
    seconds = 0.5
    expected = tone(1000, seconds)
    np.testing.assert_allclose(resampled(tone(1000, seconds, rate), rate), expected, atol=1e-3)
    if rate > 20_000:
        assert np.abs(resampled(tone(10_000, seconds, rate), rate)).max() < 1e-3


@pytest.mark.parametrize("ending", ["wav", "flac", "ogg", "aiff", "au", "caf"])
def test_files_of_all_kinds(ending: str, tmp_path: Path) -> None:
    path, samples = tmp_path / f"a.{ending}", tone(440, 0.5, 44_100)
    soundfile.write(path, np.stack([samples, 0 * samples], axis=1), 44_100)  # two channels
    read = read_audio(path)
    assert (read.dtype, len(read)) == (np.float32, 8000)
    assert np.abs(read[1000:7000]).max() == pytest.approx(0.25, abs=0.02)
    frames = reader_of("audio", width=80).read(path)
    assert frames.shape == (48, 80)


CHANNELS = {  # of a tone and another one: what is read
    "inverted": (lambda a, b: [a, -a], "a"),
    "inverted and softer": (lambda a, b: [0.8 * a, -a], "a"),
    "inverted with noise": (lambda a, b: [a, -1.01 * a + 0.001 * b], "noisy"),
    "three that cancel": (lambda a, b: [a, -0.5 * a, -0.5 * a], "a"),
    "inverted in the middle": (lambda a, b: [a, np.where(np.arange(len(a)) // 8000 == 1, -0.9, 0.9) * a], "a"),
    "one silent": (lambda a, b: [0 * a, a], "a"),
    "equal": (lambda a, b: [a, a], "a"),
    "unrelated": (lambda a, b: [a, b], "a + b"),
    "partly inverted": (lambda a, b: [a + b, b - 0.3 * a], "mean"),
}


@pytest.mark.parametrize("name", CHANNELS)
def test_channels_that_cancel_are_not_mixed(name: str, tmp_path: Path) -> None:
    mix, expected = CHANNELS[name]
    a, b = tone(440, 1.5), tone(1700, 1.5)
    channels = np.stack(mix(a, b), axis=1).astype(np.float32)
    wanted = {"a": a, "noisy": -1.01 * a + 0.001 * b, "a + b": a + b, "mean": channels.mean(axis=1)}[expected]
    soundfile.write(tmp_path / "a.wav", channels, 16_000, subtype="FLOAT")
    frames = reader_of("audio", width=40).read(tmp_path / "a.wav").astype(float)
    np.testing.assert_allclose(frames, frames_of_samples(wanted, n_bands=40).astype(float), atol=0.1)


def test_mp3_with_and_without_tags(tmp_path: Path) -> None:
    plain, tagged = tmp_path / "plain", tmp_path / "tagged"
    soundfile.write(plain, tone(440, 0.5), 16_000, format="MP3")
    tagged.write_bytes(b"ID3\x04\0\0\0\0\0\x0a" + bytes(10) + plain.read_bytes())
    assert abs(len(read_audio(plain)) - 8000) < 2500  # the encoder pads
    np.testing.assert_allclose(read_audio(tagged), read_audio(plain))


def test_no_other_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """libsndfile looks for a resource fork, in other files, where it does not know the beginning."""
    (tmp_path / "a.wav").write_bytes(b"unknown" * 100)
    monkeypatch.setattr(soundfile, "SoundFile", lambda *rest: pytest.fail("libsndfile was asked"))
    with pytest.raises(DataError, match=naming(tmp_path / "a.wav", "WAV", "FLAC")):
        read_audio(tmp_path / "a.wav")


def test_short_recordings_have_one_frame() -> None:
    assert frames_of_samples(tone(440, 0.01), n_bands=20).shape == (1, 20)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    reader = reader_of("audio", width=80)
    (tmp_path / "bad.wav").write_bytes(b"RIFF nonsense")
    soundfile.write(tmp_path / "empty.wav", np.zeros(0, np.float32), 16_000)
    soundfile.write(tmp_path / "silent.wav", np.zeros(1000, np.float32), 16_000)
    for name in ("bad.wav", "empty.wav", "silent.wav", "none.wav"):
        with pytest.raises(DataError, match=naming(str(tmp_path / name))):
            reader.read(tmp_path / name)
    with pytest.raises(DataError, match="finite"):
        reader.features(np.array([0.1, float("nan")]))


def test_long_recordings_are_too_long_for_training() -> None:
    reader = reader_of("audio", width=8, max_columns=7)
    frames = reader.features(tone(440))
    assert "0.1" in (reader.too_long(frames) or "")
    assert reader_of("audio", width=8, max_columns=8).too_long(frames) is None
