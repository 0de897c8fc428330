"""Pixels out: the run beside its recipe, and the baselines against plain formulas."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from transduce.recipes import read_recipe
from transduce_paper import Experiments
from transduce_paper.future import pixels
from transduce_paper.future.pixel_baselines import Images, PixelRegression, bits_by_histogram
from transduce_paper.future.pixels import nearest_distance, pixels_experiment, pixels_section


def images(n: int, seed: int) -> Images:
    """Random images in which each pixel but the first is one level above the one before it, or 0 after the last."""
    random = np.random.default_rng(seed)
    first_N = random.integers(17, size=n)
    return Images((first_N[:, None] + np.arange(64)) % 17, random.integers(10, size=n))


def test_the_run_is_that_of_the_recipe(tmp_path: Path) -> None:
    assert pixels_experiment(Experiments(tmp_path, tmp_path, scale="cpu")).config == read_recipe(Path("digits-pixels"))


def test_the_histogram_has_the_frequencies_of_each_class_and_pixel() -> None:
    train, held_out = images(30, seed=1), images(5, seed=2)
    bits = 0.0
    for levels, digit in zip(held_out.levels_NP, held_out.classes_N, strict=True):
        same = [row for row, other in zip(train.levels_NP, train.classes_N, strict=True) if other == digit]
        for pixel, level in enumerate(levels):
            n_equal = sum(int(row[pixel] == level) for row in same)
            bits -= math.log2((n_equal + 0.5) / (len(same) + 0.5 * 17))
    assert bits_by_histogram(train, held_out, added=0.5) == pytest.approx(bits / 5 / 64)


def test_the_regression_learns_from_the_pixels_before_and_sees_no_later_ones() -> None:
    train, held_out = images(200, seed=3), images(20, seed=4)
    regression = PixelRegression()
    assert regression.bits(held_out) == pytest.approx(math.log2(17))
    regression.fit(train, penalty=1e-4, n_steps=15)
    bits_NP = regression.bits(held_out)
    assert bits_NP[:, 0].mean() > 3.5  # nothing tells the first pixel
    assert bits_NP[:, 1:].mean() < 2.0 < bits_by_histogram(train, held_out, added=1.0)
    changed = Images(held_out.levels_NP.copy(), held_out.classes_N)
    changed.levels_NP[:, 40:] = 0
    np.testing.assert_allclose(regression.bits(changed)[:, :40], bits_NP[:, :40], atol=1e-6)
    assert not np.allclose(regression.bits(changed)[:, 41:], bits_NP[:, 41:], atol=0.1)


def test_distances_are_to_the_nearest_image() -> None:
    others = np.array([[0, 0], [8, 8]])
    assert nearest_distance(np.array([[1, 0], [8, 5]]), others) == pytest.approx((0.5 + 1.5) / 2)


def test_without_scikit_learn_the_section_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pixels, "find_spec", lambda name: None)
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="test")
    section = pixels_section(experiments)
    assert "scikit-learn" in str(section.contents[0])
    assert (len(section.contents), section.drawings, section.claims) == (1, {}, ())
