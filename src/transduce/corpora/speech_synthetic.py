"""The generated corpus ``speech-synthetic``: the built-in corpus's sentences, spoken by the program espeak-ng.

It is synthetic speech: formant synthesis, not recordings of people. Every recording is a function of the configuration
and of the version of espeak-ng: the sentence, the voice, its speed and pitch, and the noise follow from the seed, the
split and the number of the sentence. The test sentences are those of the test split, spoken by the test voices, which
speak no training sentence; dev has the training voices. Half of dev and test have noise.

The source is spoken in ``direction``'s first language; the text is in its second one, the sentence itself or its
translation.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from random import Random

import numpy as np
from numpy.typing import NDArray

from transduce.config import SpeechData, Split
from transduce.corpora.grammar import generate_pairs
from transduce.corpora.media import GeneratedMedia
from transduce.errors import ConfigError, DataError, shown
from transduce.media.audio import Samples, resampled

__all__ = ["Spoken", "SyntheticSpeech", "require_variant", "spoken", "with_noise"]

PROGRAM = "espeak-ng"
DEV_SENTENCES, TEST_SENTENCES = 200, 1000  # half of them with noise
NOISY_SHARE = 0.5  # of the training sentences
SPEEDS, PITCHES = (130, 200), (30, 70)  # words a minute; espeak-ng's pitch, from 0 to 99
QUIETEST_NOISE_DB, LOUDEST_NOISE_DB = 30.0, 5.0  # signal-to-noise ratios
MARGIN = 0.3  # seconds of silence, at most, before and after
RATE_AT, HEADER_BYTES = 24, 44  # of espeak-ng's WAV on a pipe: where the rate is, and where samples begin
SENTENCES_AT_ONCE = 64
LANGUAGES = ("en", "de")


@dataclass(frozen=True, slots=True)
class Spoken:
    """How a sentence is spoken."""

    sentence: str
    voice: str
    speed: int  # words a minute
    pitch: int  # 0 to 99
    noise_db: float | None  # signal-to-noise ratio; None: no noise
    seed: int  # of noise and margins


class SyntheticSpeech(GeneratedMedia):
    """Sentences spoken by espeak-ng, in several processes at once."""

    def __init__(self, config: SpeechData, *, n_workers: int = 1) -> None:
        """Raises ConfigError for languages or voices that there are not, DataError if espeak-ng is missing."""
        self.config, self._n_workers = config, n_workers
        languages = config.src_language, config.tgt_language
        if not set(languages) <= set(LANGUAGES):
            raise ConfigError(
                f"corpus = 'speech-synthetic' speaks English or German, got direction = {config.direction!r}; use en-en"
                " to write down English, en-de to translate it"
            )
        for voice in (*config.training_voices, *config.test_voices):
            require_variant(voice)

    def texts(self, split: Split) -> Iterator[str]:
        """Yield the texts of a split."""
        return (text for _, text in self._sentences(split))

    def made(self, split: Split) -> Iterator[tuple[str, str, Samples]]:
        """Yield name, text and samples of each sentence of a split. Raises DataError if espeak-ng fails."""
        plans = self._plans(split)
        with ThreadPoolExecutor(self._n_workers, thread_name_prefix="espeak") as pool:
            while chunk := [plan for _, plan in zip(range(SENTENCES_AT_ONCE), plans, strict=False)]:
                spoken_ones = pool.map(lambda plan: spoken(plan[2]), chunk)
                for (name, text, _), samples in zip(chunk, spoken_ones, strict=True):
                    yield name, text, samples

    def _plans(self, split: Split) -> Iterator[tuple[str, str, Spoken]]:
        """Yield name, text and manner of each sentence of a split."""
        voices = self.config.test_voices if split == "test" else self.config.training_voices
        for number, (sentence, text) in enumerate(self._sentences(split)):
            random = Random(f"speech {split} {self.config.corpus_seed} {number}")
            is_noisy = random.random() < NOISY_SHARE if split == "train" else number % 2 == 1
            noise_db = random.uniform(LOUDEST_NOISE_DB, QUIETEST_NOISE_DB)
            plan = Spoken(
                sentence,
                random.choice(voices),
                random.randint(*SPEEDS),
                random.randint(*PITCHES),
                noise_db if is_noisy else None,
                random.getrandbits(63),
            )
            yield f"{'noisy' if is_noisy else 'clean'}/{number} {plan.voice}", text, plan

    def _sentences(self, split: Split) -> Iterator[tuple[str, str]]:
        """Yield the sentences of a split as they are spoken and as they are written."""
        n = {"train": self.config.n_pairs, "dev": DEV_SENTENCES, "test": TEST_SENTENCES}[split]
        for pair in generate_pairs(split, n_pairs=n, seed=self.config.corpus_seed):
            yield getattr(pair, self.config.src_language), getattr(pair, self.config.tgt_language)


def require_variant(voice: str) -> None:
    """Raise ConfigError unless espeak-ng has the variant of a voice ("f3" of "en-us+f3"), DataError without espeak-ng.

    espeak-ng itself ignores an unknown variant, and a test voice would then be a training voice.
    """
    variant = voice.partition("+")[2]
    if variant and variant not in _variants():
        raise ConfigError(f"{PROGRAM} has no variant {variant} for the voice {voice}; see {PROGRAM} --voices=variant")


@cache
def _variants() -> frozenset[str]:
    listed = _run(["--voices=variant"], "").decode(errors="replace")
    return frozenset(re.findall(r"!v/(\S+)", listed))


def _run(options: Sequence[str], text: str) -> bytes:
    """Return what espeak-ng writes. Raises DataError if it is missing or fails."""
    if shutil.which(PROGRAM) is None:
        raise DataError(f"corpus = 'speech-synthetic' needs the program {PROGRAM}; apt install {PROGRAM}")
    done = subprocess.run([PROGRAM, *options], input=text.encode(), capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise DataError(f"{PROGRAM} {' '.join(options)}: {shown(said[0])}; see {PROGRAM} --voices")
    return done.stdout


def spoken(how: Spoken) -> Samples:
    """Return a sentence as samples at 16,000 a second. Raises DataError if espeak-ng is missing or fails."""
    options = ["-v", how.voice, "-s", str(how.speed), "-p", str(how.pitch), "--stdin", "--stdout"]
    wave = _run(options, how.sentence)
    rate = int.from_bytes(wave[RATE_AT : RATE_AT + 4], "little")
    samples = np.frombuffer(wave[HEADER_BYTES:], "<i2").astype(np.float32) / 32768
    random = np.random.default_rng(how.seed)
    around = (random.uniform(0, MARGIN, 2) * rate).astype(int)
    padded: Samples = np.pad(samples, (int(around[0]), int(around[1]))).astype(np.float32)
    return with_noise(resampled(padded, rate), how.noise_db, random)


def with_noise(samples: NDArray[np.float32], noise_db: float | None, random: np.random.Generator) -> Samples:
    """Add white noise at a signal-to-noise ratio in decibels; None adds nothing."""
    if noise_db is None:
        return samples
    power = float(np.mean(samples**2)) / 10 ** (noise_db / 10)
    return (samples + random.normal(0, power**0.5, len(samples))).astype(np.float32)
