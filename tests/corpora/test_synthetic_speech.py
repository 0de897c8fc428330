"""Synthetic speech: a function of the configuration; test voices and sentences are in no training recording."""

from __future__ import annotations

import shutil
from itertools import islice

import numpy as np
import pytest

from said import naming
from transduce.config import DataConfig
from transduce.corpora.speech_synthetic import SyntheticSpeech, with_noise
from transduce.errors import ConfigError, DataError
from transduce.media import reader_of

needs_espeak = pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")


def config(**changes: object) -> DataConfig:
    values: dict[str, object] = {
        "task": "speech-to-text", "corpus": "speech-synthetic", "direction": "en-en", "n_pairs": 3,
        "training_voices": ("en-us", "en-us+f1"), "test_voices": ("en-gb+m2",),
    }  # fmt: skip
    return DataConfig(**(values | changes))  # type: ignore[arg-type]


@needs_espeak
def test_recordings_are_a_function_of_the_configuration() -> None:
    first = list(SyntheticSpeech(config()).made("train"))
    again = list(SyntheticSpeech(config(), n_workers=3).made("train"))
    assert len(first) == 3
    assert [each[:2] for each in first] == [each[:2] for each in again]
    for (_, text, one), (_, _, other) in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)
        assert 0.5 < len(one) / 16_000 < 30, text
    assert [text for _, text, _ in first] == list(SyntheticSpeech(config()).texts("train"))


@needs_espeak
def test_test_sentences_have_test_voices() -> None:
    test = list(islice(SyntheticSpeech(config()).made("test"), 4))
    assert [name.partition("/")[0] for name, _, _ in test] == ["clean", "noisy", "clean", "noisy"]
    assert {name.split()[1] for name, _, _ in test} == {"en-gb+m2"}
    dev = list(islice(SyntheticSpeech(config()).made("dev"), 4))
    assert {name.split()[1] for name, _, _ in dev} <= {"en-us", "en-us+f1"}
    items = SyntheticSpeech(config()).items("test", reader_of("audio", width=80))
    assert next(items).features.shape[1] == 80


@needs_espeak
def test_german_targets_are_translations_of_what_is_said() -> None:
    english = list(SyntheticSpeech(config()).texts("train"))
    german = list(SyntheticSpeech(config(direction="en-de")).texts("train"))
    assert len(german) == len(english) == 3
    assert english != german


@needs_espeak
def test_voices_that_there_are_not() -> None:
    with pytest.raises(ConfigError, match=naming("nosuch", "en-us+nosuch")):
        SyntheticSpeech(config(training_voices=("en-us+nosuch",)))
    with pytest.raises(DataError, match=naming("zz-nosuch", "--voices")):
        list(SyntheticSpeech(config(training_voices=("zz-nosuch",))).made("train"))
    with pytest.raises(ConfigError, match=naming("fr-en", "en-en")):
        SyntheticSpeech(config(direction="fr-en"))


def test_without_the_program_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(DataError, match=naming("speech-synthetic", "apt install espeak-ng")):
        list(SyntheticSpeech(config(training_voices=("en-us",), test_voices=("en-gb",))).made("train"))


def test_noise_has_the_ratio_that_was_asked_for() -> None:
    samples = np.sin(np.arange(20_000) / 5).astype(np.float32)
    noise = with_noise(samples, 10.0, np.random.default_rng(1)) - samples
    assert 10 * np.log10(np.mean(samples**2) / np.mean(noise**2)) == pytest.approx(10, abs=0.2)
    assert with_noise(samples, None, np.random.default_rng(1)) is samples
