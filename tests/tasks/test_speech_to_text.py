"""Speech to text, end to end on own files of tones: prepared, trained, used, evaluated, examined."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_recipes import SmallRuns

from commands import CommandLine
from run_records import records
from said import naming, says
from transduce import Transcriber
from transduce.data import open_store
from transduce.diagnostics import examine
from transduce.errors import CheckpointError, DataError
from transduce.files import write_manifest
from transduce.recipes import read_recipe
from transduce.runs import train
from transduce.tasks import prepare
from transduce.view import attention_of_media

soundfile: Any = pytest.importorskip("soundfile")


@pytest.fixture(scope="module")
def sounds(small_runs: SmallRuns) -> Path:
    return small_runs["speech-to-text"].files


@pytest.fixture(scope="module")
def recipe(small_runs: SmallRuns) -> Path:
    return small_runs["speech-to-text"].recipe


@pytest.fixture(scope="module")
def run(small_runs: SmallRuns) -> Path:
    return small_runs["speech-to-text"].folder


def test_what_cannot_be_used_is_counted_and_named(recipe: Path, sounds: Path, tmp_path: Path) -> None:
    told = list[str]()
    config = read_recipe(recipe, [f"data.train_media={sounds / 'flawed.tsv'}"])
    prepare(config.data, tmp_path / "prepared", log=told.append)
    text = "\n".join(told)
    assert says(text, 1, "unreadable", sounds / "bad.wav")
    assert says(text, 1, "empty", sounds / "silent.wav")
    assert says(text, 1, "too long", sounds / "long.wav", "seconds")
    assert says(text, "train:", 16, "recordings")
    features = open_store(tmp_path / "prepared" / "train").columns["features"].row(0)
    assert (features.dtype, features.shape[1]) == (np.float16, 20)


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
    with pytest.raises(CheckpointError, match="reads images"):
        __import__("transduce").Reader.load(run / "model")


def test_transcribe_prints_a_line_for_each_recording(transduce: CommandLine, run: Path, sounds: Path) -> None:
    model, files = run / "model", [sounds / "test-0.wav", sounds / "test-1.flac"]
    plain = transduce("transcribe", model, *files)
    assert (plain.code, plain.out.splitlines()) == (0, Transcriber.load(model).transcribe(files))
    record = json.loads(transduce("transcribe", model, files[0], "--json").out)
    assert (record["file"], record.keys()) == (str(files[0]), {"file", "text", "score", "n_best", "warnings"})
    refused = transduce("transcribe", model, sounds / "bad.wav")
    assert (refused.code, says(refused.err, sounds / "bad.wav")) == (1, True)


def test_a_recording_longer_than_those_of_training_is_told(
    transduce: CommandLine, run: Path, sounds: Path, tmp_path: Path
) -> None:
    samples, rate = soundfile.read(sounds / "test-0.wav", dtype="float32")
    transcriber = Transcriber.load(run / "model")
    assert 0 < transcriber.longest_source <= 100  # frames
    soundfile.write(tmp_path / "long.wav", np.tile(samples, 8), rate)
    outcome = transduce("transcribe", run / "model", sounds / "test-0.wav", tmp_path / "long.wav")
    assert outcome.code == 0
    seconds = f"{transcriber.longest_source / 100:.1f}"
    assert [says(line, tmp_path / "long.wav", seconds) for line in outcome.err.splitlines()].count(True) == 1


def test_folders_of_earlier_versions_have_the_limit_of_recipes(run: Path, tmp_path: Path) -> None:
    model = Path(shutil.copytree(run / "model", tmp_path / "model"))
    values = json.loads((model / "config.json").read_text())
    for longest in (None, "100", 0):
        (model / "config.json").write_text(json.dumps(values | {"longest_source": longest}))
        write_manifest(model, exempt=("README.md",))
        if longest is None:
            assert Transcriber.load(model).longest_source == 2000  # frames: 20 s
        else:
            with pytest.raises(CheckpointError, match=naming("longest_source", repr(longest))):
                Transcriber.load(model)


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
    assert ["bleu" in record for record in records(tmp_path / "run", "validation")] == [True]


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
    found = list(examine([str(sounds / "flawed.tsv")]))
    assert [each.status for each in found] == ["problem", "problem", "good"]
    assert says(found[-1].message, 17, 19, "recordings", "minutes")
    of_recipe = list(examine([str(recipe)]))
    assert any(says(each.message, "speech in en to text in en from files") for each in of_recipe)
