"""Speech to text, end to end on own files of tones: prepared, trained, resumed, used, evaluated, examined."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from said import naming, says
from transduce import Transcriber
from transduce.data import open_store
from transduce.diagnostics import examine
from transduce.errors import CheckpointError, DataError
from transduce.recipes import read_recipe
from transduce.tasks import prepare, train
from transduce.view import attention_of_media

soundfile: Any = pytest.importorskip("soundfile")
CommandLine = Callable[..., Any]
WORDS = {"low": 300, "mid": 1000, "high": 3000}

RECIPE = """
preset = "tiny"
[model]
source = "frames"
source_width = 20
n_encoder_layers = 1
n_decoder_layers = 1
d_model = 32
d_ff = 32
n_heads = 2
d_k = 16
d_v = 16
[data]
task = "speech-to-text"
corpus = "files"
direction = "en-en"
n_bands = 20
max_seconds = 1.0
tokenizer = "characters"
vocab_size = 300
train_media = "{0}/train.tsv"
dev_media = "{0}/dev.tsv"
test_media = "{0}/test.tsv"
[training]
max_updates = 6
feature_masks = 1
ctc_weight = 0.5
max_tokens_per_batch = 200
warmup_steps = 10
validate_every_updates = 3
checkpoint_every_updates = 3
log_every_updates = 1
average_last = 1
"""


def sing(path: Path, words: list[str]) -> None:
    time = np.arange(1600) / 16_000
    samples = np.concatenate([np.zeros(400), *(np.sin(2 * np.pi * WORDS[word] * time) for word in words)])
    soundfile.write(path, (0.5 * samples).astype(np.float32), 16_000)


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, random = tmp_path_factory.mktemp("sounds"), Random(1)
    for split, n in (("train", 16), ("dev", 3), ("test", 4)):
        lines = []
        for number in range(n):
            words = random.choices(list(WORDS), k=random.randint(1, 4))
            ending = "flac" if number % 2 else "wav"
            sing(folder / f"{split}-{number}.{ending}", words)
            lines.append(f"{split}-{number}.{ending}\t{' '.join(words).capitalize()}.\n")
        (folder / f"{split}.tsv").write_text("".join(lines), encoding="utf-8")
    sing(folder / "long.wav", ["low"] * 12)
    soundfile.write(folder / "silent.wav", np.zeros(1000, np.float32), 16_000)
    (folder / "bad.wav").write_bytes(b"no sound")
    with (folder / "train.tsv").open("a", encoding="utf-8") as stream:
        stream.write("long.wav\tlow\nsilent.wav\tlow\nbad.wav\tlow\n")
    return folder


@pytest.fixture(scope="module")
def recipe(sounds: Path) -> Path:
    path = sounds / "sounds.toml"
    path.write_text(RECIPE.format(sounds), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    train(read_recipe(recipe), folder)
    return folder


def test_what_cannot_be_used_is_counted_and_named(recipe: Path, sounds: Path, tmp_path: Path) -> None:
    told = list[str]()
    prepare(read_recipe(recipe).data, tmp_path / "prepared", log=told.append)
    text = "\n".join(told)
    assert says(text, 1, "unreadable", sounds / "bad.wav")
    assert says(text, 1, "empty", sounds / "silent.wav")
    assert says(text, 1, "too long", sounds / "long.wav", "seconds")
    assert says(text, "train:", 16, "recordings")
    features = open_store(tmp_path / "prepared" / "train").columns["features"].row(0)
    assert (features.dtype, features.shape[1]) == (np.float16, 20)


def test_a_resumed_run_has_the_same_bits(recipe: Path, run: Path, tmp_path: Path) -> None:
    halves = tmp_path / "halves"
    train(read_recipe(recipe, ["training.max_updates=3"]), halves)
    train(read_recipe(recipe), halves, resume=True)
    kept = [(folder / "model" / "model.safetensors").read_bytes() for folder in (run, halves)]
    assert kept[0] == kept[1]


def test_a_transcriber_hears_files_and_arrays(run: Path, sounds: Path) -> None:
    transcriber = Transcriber.load(run / "model")
    files = [sounds / "test-0.wav", sounds / "test-1.flac"]
    together = transcriber.transcribe(files)
    assert [transcriber.transcribe([file])[0] for file in files] == together
    samples, _ = soundfile.read(files[0], dtype="float32")
    assert transcriber.transcribe([samples]) == together[:1]
    assert len(transcriber.transcribe(files[:1], n_best=2)[0]) == 2
    with pytest.raises(DataError, match=naming(sounds / "silent.wav")):
        transcriber.transcribe([sounds / "silent.wav"])
    with pytest.raises(CheckpointError, match="image-to-text"):
        __import__("transduce").Reader.load(run / "model")


def test_transcribe_prints_a_line_for_each_recording(transduce: CommandLine, run: Path, sounds: Path) -> None:
    model, files = run / "model", [sounds / "test-0.wav", sounds / "test-1.flac"]
    plain = transduce("transcribe", model, *files)
    assert (plain.code, plain.out.splitlines()) == (0, Transcriber.load(model).transcribe(files))
    record = json.loads(transduce("transcribe", model, files[0], "--json").out)
    assert (record["file"], record.keys()) == (str(files[0]), {"file", "text", "score", "n_best"})
    refused = transduce("transcribe", model, sounds / "bad.wav")
    assert (refused.code, says(refused.err, sounds / "bad.wav")) == (1, True)


def test_words_are_scored_without_case_and_punctuation(transduce: CommandLine, run: Path, sounds: Path) -> None:
    scores = json.loads(transduce("evaluate", run / "model", "--media", sounds / "test.tsv", "--json").out)
    assert "case:lower|punctuation:no" in scores["word_error_rate"]["signature"]
    card = (run / "model" / "README.md").read_text(encoding="utf-8")
    assert f"| word_error_rate | {scores['word_error_rate']['score']:.2f} |" in card
    assert "frames of 20 mel bands" in card
    assert "transduce transcribe" in card


def test_speech_in_another_language_is_scored_as_a_translation(recipe: Path, tmp_path: Path) -> None:
    settings = ["data.direction=en-de", "training.max_updates=3"]
    result = train(read_recipe(recipe, settings), tmp_path / "run")
    assert result.scores is not None
    assert result.scores.as_json().keys() == {"sacrebleu", "chrf", "sentences"}
    records = map(json.loads, (tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
    assert ["bleu" in record for record in records if record["kind"] == "validation"] == [True]


def test_a_translation_of_speech_starts_from_a_model_that_writes_it_down(
    recipe: Path, run: Path, sounds: Path, tmp_path: Path
) -> None:
    (tmp_path / "german.tsv").write_text(
        "".join(f"{sounds}/train-{number}.{'flac' if number % 2 else 'wav'}\tHöhe.\n" for number in range(16)),
        encoding="utf-8",
    )
    own = [f"data.train_media={json.dumps(str(tmp_path / 'german.tsv'))}", "data.direction=en-de"]
    settings = [*own, f"training.init_from={json.dumps(str(run / 'model'))}", "training.max_updates=1"]
    told = list[str]()
    result = train(read_recipe(recipe, settings), tmp_path / "run", log=told.append)
    assert result.updates == 1
    (drawn,) = (line for line in told if line.startswith("drawn at random"))
    assert says(drawn, "tgt_embedding")
    assert "encoder" not in drawn  # its weights were taken
    assert "decoder" not in drawn


def test_attention_is_over_the_spectrogram(transduce: CommandLine, run: Path, sounds: Path, tmp_path: Path) -> None:
    maps = attention_of_media(Transcriber.load(run / "model"), sounds / "test-0.wav", "low mid")
    assert maps.picture is not None
    assert maps.picture.name == "Spectrogram"
    assert maps.picture.pixels.shape == (20, 4 * len(maps.src_tokens))
    assert maps.src_tokens[:2] == ("0.00 s", "0.04 s")
    path = tmp_path / "page.html"
    outcome = transduce("attention", run / "model", "--src", sounds / "test-0.wav", "--out", path)
    assert (outcome.code, path.exists()) == (0, True)


def test_the_doctor_examines_lists_of_recordings(recipe: Path, sounds: Path) -> None:
    found = list(examine([str(sounds / "train.tsv")]))
    assert [each.status for each in found] == ["problem", "problem", "good"]
    assert says(found[-1].message, 17, 19, "recordings", "minutes")
    of_recipe = list(examine([str(recipe)]))
    assert any(says(each.message, "speech (en-en) of files") for each in of_recipe)
