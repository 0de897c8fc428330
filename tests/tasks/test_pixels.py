"""Images as sequences of pixels: their text, batches, bits per dimension, and what a trained model draws."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from small_recipes import SmallRuns

from commands import CommandLine
from said import naming, says
from transduce.corpora.digits import DIGIT_LEVELS, digit_images, image_of, line_of
from transduce.errors import ConfigError, DataError, SearchError
from transduce.inference import LanguageModel, PixelModel
from transduce.tasks import open_prepared, task_named
from transduce.tasks.documents.pixels import PixelBatches
from transduce.text import BOS_ID


@pytest.fixture(scope="module")
def run(small_runs: SmallRuns) -> Path:
    return small_runs["pixels"].folder


def test_an_image_is_a_line_and_back() -> None:
    image = np.arange(64).reshape(8, 8).astype(np.uint8) % 17
    line = line_of(image, 7)
    assert (line[0], len(line), line[1:18]) == ("7", 65, DIGIT_LEVELS)
    assert (image_of(line) == image).all()
    for wrong in (line[:-1], f"{line}a", f"a{line[1:]}", f"{line[:-1]}r"):
        with pytest.raises(DataError, match=naming(64)):
            image_of(wrong)


def test_the_splits_share_no_image() -> None:
    pytest.importorskip("sklearn")
    sizes = {split: len(digit_images(split)[0]) for split in ("train", "dev", "test")}  # type: ignore[arg-type]
    assert sizes == {"train": 1397, "dev": 200, "test": 200}
    lines = {split: {line_of(*each) for each in zip(*digit_images(split), strict=True)} for split in sizes}  # type: ignore[arg-type]
    assert len(lines["train"] | lines["dev"] | lines["test"]) == sum(map(len, lines.values()))


def test_without_scikit_learn_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ConfigError, match=naming("scikit-learn", "transduce[media]")):
        digit_images("dev")


def test_only_pixels_are_targets(run: Path) -> None:
    prepared = open_prepared(run / "store")
    batches = PixelBatches(prepared.train, max_length=68, max_tokens=600, seed=1, device=torch.device("cpu"))
    images = {line_of(*each) for each in zip(*digit_images("train"), strict=True)}
    seen = 0
    for index in range(batches.n_batches(0)):
        batch = batches.batch(0, index)
        assert batch.positions_N is not None
        assert len(batch.targets_N) == batches.n_tokens(0, index)[1] == 64 * len(batch.ids_BT)
        read = batch.ids_BT.reshape(-1)[batch.positions_N]  # all rows have one length
        decode = prepared.tokenizers.src.decode
        for row, ids in enumerate(batch.ids_BT.tolist()):
            pixels = batch.targets_N[64 * row : 64 * row + 64].tolist()
            line = decode(ids[1:3]).strip() + decode(pixels)
            assert ids[0] == BOS_ID
            assert line in images
            assert decode(read[64 * row : 64 * row + 64].tolist()) == line[:-1]  # each pixel is predicted from the last
            seen += 1
    assert seen == 40


@torch.no_grad()
def test_bits_per_dimension_are_those_of_each_pixel_in_turn(run: Path) -> None:
    model = PixelModel.load(run / "model")
    images, classes = digit_images("test")
    total = 0.0
    for image, digit in zip(images, classes, strict=True):
        ids = model.tokenizer.encode(line_of(image, int(digit)))
        logits = model.model.output.logits(model.model(torch.tensor([[BOS_ID, *ids]]))).double()
        log_probs = logits.log_softmax(-1)[torch.arange(2, 66), torch.tensor(ids[2:])]
        total -= float(log_probs.sum())
    prepared = open_prepared(run / "store")
    score = task_named("pixels").evaluate(run / "model", prepared, "test", device="cpu", extra_bleus=())
    assert score.as_json().keys() == {"bits_per_dimension", "images"}
    assert score.as_json()["images"] == 200
    assert score.as_json()["bits_per_dimension"] == pytest.approx(total / math.log(2) / 200 / 64, abs=1e-4)


def test_what_is_drawn(run: Path, tmp_path: Path, transduce: CommandLine) -> None:
    model = LanguageModel.load(run / "model")
    assert isinstance(model, PixelModel)
    images = model.draw([3, 7, 3], seed=2)
    assert (images.shape, images.dtype) == ((3, 8, 8), np.uint8)
    assert images.max() <= 16
    assert (images == model.draw([3, 7, 3], seed=2)).all()
    assert (images[0] != images[2]).any()
    first = model.generate(["3"], seed=2)[0]
    assert first.text == line_of(images[0], 3)[1:]
    begun = model.generate(["3", "3" + "a" * 60], seed=2)
    assert begun[0].text == first.text
    assert len(begun[1].text) == 4
    printed = transduce("generate", run / "model", "--samples", 2, "--seed", 2, stdin=b"3\n")
    assert [image_of(line).shape for line in printed.out.splitlines()] == [(8, 8), (8, 8)]
    refused = transduce("generate", run / "model", stdin=b"x\n")
    assert (refused.code, len(refused.err.splitlines())) == (1, 1)
    assert says(refused.err, 63, "x")
    text = tmp_path / "digits.txt"
    text.write_text(f"{line_of(images[0], 3)}\n", encoding="utf-8")
    unscored = transduce("perplexity", run / "model", text)
    assert (unscored.code, len(unscored.err.splitlines()), says(unscored.err, "bits per dimension")) == (1, 1, True)
    with pytest.raises(SearchError, match=naming("beam")):
        model.generate(["3"], beam_size=2)


def test_the_doctor_counts_the_images(transduce: CommandLine) -> None:
    pytest.importorskip("sklearn")
    recipe = Path("digits-pixels")
    outcome = transduce("doctor", recipe)
    assert outcome.code == 0
    assert [says(outcome.out, fact) for fact in ("from digits", "1,397", 200)] == [True] * 3
