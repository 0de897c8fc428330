"""Output other than text: digits as sequences of pixels, by class, beside simple baselines.

Shapes: N rows (images), P pixels of an image.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.corpora import DIGIT_CLASSES, DIGIT_LEVELS, DIGIT_PIXELS, DIGIT_SIDE
from transduce.inference import PixelModel
from transduce.recipes import preset, with_settings
from transduce_paper.drawing import INK, new_figure, save_svg
from transduce_paper.experiments import Experiments
from transduce_paper.future.pixel_baselines import N_STEPS, Images, baseline_rows, images_of
from transduce_paper.measurement_cache import MeasuredArrays
from transduce_paper.report import Claim, Section, Table, agreement, picture
from transduce_paper.run_records import Experiment, about_runs, machines

__all__ = ["PIXELS", "pixels_experiment", "pixels_section"]

# Those of the recipe digits-pixels.
PIXELS = (
    "model.system=language-model", "model.n_layers=4", "model.d_model=96", "model.d_ff=384", "model.n_heads=4",
    "model.d_k=24", "model.d_v=24", "model.p_drop=0.2", "model.norm=pre", "model.activation=gelu",
    "model.positions=learned", "model.n_positions=68", "data.task=pixels", "data.corpus=digits",
    "data.tokenizer=characters", "data.vocab_size=400", "training.max_updates=1000",
    "training.max_tokens_per_batch=2176", "training.warmup_steps=100", "training.lr_factor=0.2",
    "training.decay=cosine", "training.adam_beta2=0.99", "training.weight_decay=0.1", "training.clip_norm=1.0",
    "training.eps_ls=0.0", "training.validate_every_updates=100", "training.checkpoint_every_updates=100",
    "training.average_last=1",
)  # fmt: skip
TEST = (
    "model.n_layers=1", "model.d_model=16", "model.d_ff=16", "model.n_heads=1", "data.max_pairs=40",
    "training.max_updates=2", "training.validate_every_updates=2", "training.checkpoint_every_updates=1",
    "training.max_tokens_per_batch=600",
)  # fmt: skip
N_DRAWN, N_SHOWN = 20, 8  # images of each class that are measured, and drawn in the picture
TITLE = "Output other than text: digits, pixel by pixel"
MISSING = "scikit-learn, which has the digits, was not installed."

ABOUT = """\
{finding} The model ({n_layers} layers of width {d_model}; {updates:,} updates) reads the class
of a digit, then predicts its {n_pixels} pixels of {n_levels} grey levels one after the other, row by row. It learns
from {n_train:,} digits; dev and test are the 400 after them. The baselines know the class, too, and are fitted to the
same digits; their setting is the best on dev. {about_runs}"""

SAMPLES = """\
{picture}

Each row: two test digits of a class, then {n_shown} that the model draws at temperature 1. A logistic regression that
knows the training digits gives {drawn:.1%} of {n:,} drawn digits their class, and {real:.1%} of the test digits. A
drawn digit differs from the nearest training digit by {drawn_distance:.2f} levels a pixel, a test digit by
{real_distance:.2f}; {copies}. {machine}."""


def pixels_experiment(experiments: Experiments) -> Experiment:
    """Return the run of the model of pixels."""
    config = with_settings(preset("tiny"), [*PIXELS, *experiments.pick((), test=TEST)])
    return Experiment("future-pixels-seed1", config)


def pixels_section(experiments: Experiments) -> Section:
    """Train the model and fit the baselines, or read what was measured."""
    run = pixels_experiment(experiments)
    if not experiments.record_path(run).exists() and find_spec("sklearn") is None:
        return Section(TITLE, (MISSING,))
    record = experiments.run(run)
    n_steps, n_drawn = experiments.pick((N_STEPS, N_DRAWN), test=(2, 2))
    baselines = experiments.measurement(
        "future-pixels",
        "baselines",
        lambda: baseline_rows({split: images_of(split) for split in ("train", "dev", "test")}, n_steps=n_steps),
        settings={"n_steps": n_steps},
    )
    drawn = experiments.cached_arrays(
        run, "samples", lambda folder: _drawn(experiments, folder, n_drawn), settings={"n_drawn": n_drawn, "seed": 1}
    )
    assert record.test_scores is not None
    ours = {
        "model": "Transformer", "parameters": record.parameters,
        **{split: scores["bits_per_dimension"] for split, scores in
           (("dev", record.dev_scores), ("test", record.test_scores))},
    }  # fmt: skip
    columns = ("model", "parameters", "bits per dimension, dev", "bits per dimension, test")
    rows = tuple((row["model"], row["parameters"], row["dev"], row["test"]) for row in (*baselines, ours))
    formats = {"parameters": ",", **dict.fromkeys(columns[2:], ".3f")}
    best = min(float(row["test"]) for row in baselines)
    about = ABOUT.format(
        finding=f"A test digit has {ours['test']:.3f} bits per dimension; the best baseline has {best:.3f}.",
        n_layers=record.config["model"]["n_layers"],
        d_model=record.config["model"]["d_model"],
        updates=record.updates,
        about_runs=about_runs([record]),
        n_pixels=DIGIT_PIXELS,
        n_levels=len(DIGIT_LEVELS),
        n_train=drawn.values["n_train"],
    )
    shown = SAMPLES.format(
        picture=picture("future-pixels", "Test digits, and digits that the model draws, by class"),
        n_shown=min(n_drawn, N_SHOWN),
        n=n_drawn * len(DIGIT_CLASSES),
        copies="so they are no copies" if _are_new(drawn.values) else "so many are nearly copies",
        machine=machines([record]),
        **{name: drawn.values[name] for name in ("drawn", "real", "drawn_distance", "real_distance")},
    )
    claim = Claim(
        "problems involving input and output modalities other than text",
        "section 7",
        agreement(ours["test"] < best),
        f"Digits of 8 x 8 pixels as sequences: {ours['test']:.3f} bits per dimension; the best simple baseline has"
        f" {best:.3f}.",
    )
    table = Table("-pixels", columns, rows, formats=formats)
    return Section(
        TITLE,
        (about, table, shown),
        drawings={"future-pixels": lambda path: _draw(drawn.arrays, path)},
        claims=(claim,),
    )


def _are_new(values: Mapping[str, Any]) -> bool:
    """Return whether drawn digits are at least half as far from the training digits as test digits are."""
    return bool(values["drawn_distance"] >= values["real_distance"] / 2)


def _drawn(experiments: Experiments, folder: Path, n_drawn: int) -> MeasuredArrays:
    """Draw digits of each class; compare them with real ones."""
    from sklearn.linear_model import LogisticRegression

    model = PixelModel.load(folder, device=experiments.device)
    classes = np.repeat(np.arange(len(DIGIT_CLASSES)), n_drawn)
    images = model.draw(classes.tolist(), seed=1)
    drawn = Images(images.reshape(len(images), DIGIT_PIXELS).astype(np.int64), classes)
    train, test = images_of("train"), images_of("test")
    classifier = LogisticRegression(max_iter=500).fit(train.levels_NP / (len(DIGIT_LEVELS) - 1), train.classes_N)
    values: dict[str, Any] = {"n_train": len(train.classes_N)}
    for name, each in (("drawn", drawn), ("real", test)):
        found = classifier.predict(each.levels_NP / (len(DIGIT_LEVELS) - 1))
        values[name] = float((found == each.classes_N).mean())
        values[f"{name}_distance"] = nearest_distance(each.levels_NP, train.levels_NP)
    pairs = np.stack([test.levels_NP[test.classes_N == digit][:2] for digit in range(len(DIGIT_CLASSES))])
    return MeasuredArrays(values, {"drawn": images, "real": pairs.reshape(-1, DIGIT_SIDE, DIGIT_SIDE).astype(np.uint8)})


def nearest_distance(images_NP: NDArray[np.int64], others_NP: NDArray[np.int64]) -> float:
    """Return the mean distance of images from their nearest of some others, in levels a pixel.

    >>> nearest_distance(np.array([[0, 4]]), np.array([[0, 3], [9, 9]]))
    0.5
    """
    return float(np.mean([np.abs(others_NP - image_P).mean(axis=1).min() for image_P in images_NP]))


def _draw(arrays: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Draw real digits and drawn ones, a row for each class."""
    real = arrays["real"].reshape(len(DIGIT_CLASSES), -1, DIGIT_SIDE, DIGIT_SIDE)
    drawn = arrays["drawn"].reshape(len(DIGIT_CLASSES), -1, DIGIT_SIDE, DIGIT_SIDE)[:, :N_SHOWN]
    gap, n_real = 1, real.shape[1]
    columns = [*np.moveaxis(real, 1, 0), None, *np.moveaxis(drawn, 1, 0)]
    parts = [np.zeros((len(DIGIT_CLASSES), DIGIT_SIDE, DIGIT_SIDE // 2)) if each is None else each for each in columns]
    framed = [np.pad(part, ((0, 0), (gap, gap), (gap, gap))) for part in parts]
    grid = np.concatenate(framed, axis=2).reshape(len(DIGIT_CLASSES) * (DIGIT_SIDE + 2 * gap), -1)
    figure = new_figure(grid.shape[1] / 22, grid.shape[0] / 22 + 0.3)
    panel = figure.add_subplot()
    panel.imshow(grid, cmap="gray_r", vmin=0, vmax=len(DIGIT_LEVELS) - 1, interpolation="nearest")
    panel.set_axis_off()
    cell = DIGIT_SIDE + 2 * gap
    for x, label in ((n_real * cell / 2, "test"), ((grid.shape[1] + n_real * cell + DIGIT_SIDE // 2) / 2, "drawn")):
        panel.text(x, -2, label, ha="center", va="bottom", color=INK, fontsize=9)
    for number, digit in enumerate(DIGIT_CLASSES):
        panel.text(-2, (number + 0.5) * cell, digit, ha="right", va="center", color=INK, fontsize=9)
    save_svg(figure, path)
