"""Simple models of digits by class, which a model of pixels should beat: independent pixels, and a regression.

Shapes: N rows (images), P pixels of an image, J classes, Y grey levels, I inputs of the regression.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from transduce.config import Split
from transduce.corpora import DIGIT_CLASSES, DIGIT_LEVELS, DIGIT_PIXELS, digit_images

__all__ = ["N_STEPS", "Images", "PixelRegression", "baseline_rows", "bits_by_histogram", "images_of"]

N_LEVELS, N_CLASSES = len(DIGIT_LEVELS), len(DIGIT_CLASSES)
ADDED = (0.01, 0.03, 0.1, 0.3, 1.0)  # counts added to each level; chosen on dev
PENALTIES = (0.01, 0.003, 0.001, 0.0003, 0.0001)  # of the regression's squared weights; chosen on dev
N_STEPS = 200  # of L-BFGS for each penalty, from the weights of the one before


@dataclass(frozen=True, slots=True, eq=False)
class Images:
    """Images with their classes."""

    levels_NP: NDArray[np.int64]
    classes_N: NDArray[np.int64]


def images_of(split: Split) -> Images:
    """Return the digits of a split."""
    images, classes = digit_images(split)
    return Images(images.reshape(len(images), DIGIT_PIXELS).astype(np.int64), classes.astype(np.int64))


def bits_by_histogram(train: Images, held_out: Images, *, added: float) -> float:
    """Return bits per dimension where each pixel has the levels' frequencies of its class, with ``added`` counts."""
    counts_JPY = np.full((N_CLASSES, DIGIT_PIXELS, N_LEVELS), added)
    pixels_P = np.arange(DIGIT_PIXELS)
    for levels_P, digit in zip(train.levels_NP, train.classes_N, strict=True):
        counts_JPY[digit, pixels_P, levels_P] += 1
    p_JPY = counts_JPY / counts_JPY.sum(axis=2, keepdims=True)
    return float(-np.log2(p_JPY[held_out.classes_N[:, None], pixels_P, held_out.levels_NP]).mean())


class PixelRegression:
    """For each pixel a softmax regression on the grey levels of those before it, and on the class."""

    def __init__(self) -> None:
        # (I, P, Y); the class has the bias, too
        self._weight = torch.zeros(DIGIT_PIXELS + N_CLASSES, DIGIT_PIXELS, N_LEVELS)
        before_PP = torch.arange(DIGIT_PIXELS)[:, None] < torch.arange(DIGIT_PIXELS)
        always_JP = torch.ones(N_CLASSES, DIGIT_PIXELS, dtype=torch.bool)
        self._sees_IP1 = torch.cat((before_PP, always_JP))[..., None].float()

    def fit(self, images: Images, *, penalty: float, n_steps: int = N_STEPS) -> None:
        """Minimise nats per image plus ``penalty`` times the squared weights by L-BFGS, from the present weights."""
        inputs_NI, targets = _inputs(images), torch.from_numpy(images.levels_NP)
        weight = self._weight.requires_grad_(True)
        optimiser = torch.optim.LBFGS([weight], max_iter=n_steps, line_search_fn="strong_wolfe")

        def closure() -> Tensor:
            optimiser.zero_grad()
            nats = F.cross_entropy(self._logits(inputs_NI).flatten(0, 1), targets.flatten(), reduction="sum")
            loss = nats / len(targets) + penalty * weight.square().sum()
            loss.backward()  # type: ignore[no-untyped-call]
            return loss

        optimiser.step(closure)  # type: ignore[no-untyped-call]
        self._weight = weight.detach()

    @torch.no_grad()
    def bits(self, images: Images) -> NDArray[np.float64]:
        """Return the bits of each pixel, (N, P)."""
        log_probs_NPY = self._logits(_inputs(images)).double().log_softmax(-1)
        chosen_NP = log_probs_NPY.gather(-1, torch.from_numpy(images.levels_NP)[..., None])[..., 0]
        return np.asarray(-chosen_NP.numpy() / math.log(2))

    def _logits(self, inputs_NI: Tensor) -> Tensor:
        seen_weight = (self._weight * self._sees_IP1).flatten(1)
        return (inputs_NI @ seen_weight).reshape(-1, DIGIT_PIXELS, N_LEVELS)


def _inputs(images: Images) -> Tensor:
    """Return grey levels from 0 to 1 and the class as one-hot, (N, I)."""
    levels_NP = torch.from_numpy(images.levels_NP).float() / (N_LEVELS - 1)
    return torch.cat((levels_NP, F.one_hot(torch.from_numpy(images.classes_N), N_CLASSES).float()), dim=1)


def baseline_rows(texts: Mapping[Split, Images], *, n_steps: int = N_STEPS) -> list[dict[str, Any]]:
    """Return dev and test bits per dimension of all baselines, each with the setting that is best on dev."""
    train, dev, test = (texts[split] for split in ("train", "dev", "test"))
    uniform = math.log2(N_LEVELS)
    rows: list[dict[str, Any]] = [
        {"model": "all levels equally probable", "parameters": 0, "dev": uniform, "test": uniform}
    ]
    added = min(ADDED, key=lambda each: bits_by_histogram(train, dev, added=each))
    rows.append(
        {
            "model": f"each pixel by itself, by class (added counts {added:g})",
            "parameters": N_CLASSES * DIGIT_PIXELS * (N_LEVELS - 1),
            **{split: bits_by_histogram(train, texts[split], added=added) for split in ("dev", "test")},
        }
    )  # fmt: skip
    regression, found = PixelRegression(), list[dict[str, Any]]()
    for penalty in PENALTIES:
        regression.fit(train, penalty=penalty, n_steps=n_steps)
        found.append(
            {
                "model": f"softmax regression on the pixels before, by class (penalty {penalty:g})",
                "parameters": N_LEVELS * (DIGIT_PIXELS * (DIGIT_PIXELS - 1) // 2 + DIGIT_PIXELS * N_CLASSES),
                "dev": float(regression.bits(dev).mean()),
                "test": float(regression.bits(test).mean()),
            }
        )
    return [*rows, min(found, key=lambda row: float(row["dev"]))]
