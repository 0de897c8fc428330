"""The numbers that the paper prints, read from printed.toml, which says where each one stands."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

__all__ = ["PRINTED", "PrintedSystem", "Training"]


@dataclass(frozen=True, slots=True)
class Training:
    """How long a model was trained, as the paper says it."""

    hours: float
    n_gpus: int
    gpu: str


@dataclass(frozen=True, slots=True)
class PrintedSystem:
    """A row of Table 2: BLEU on newstest2014, training FLOPs, and the training if the paper describes it."""

    bleu_de: float | None = None
    bleu_fr: float | None = None
    flops_de: float | None = None
    flops_fr: float | None = None
    is_ensemble: bool = False
    trained: Training | None = None


@dataclass(frozen=True, slots=True)
class PrintedVariation:
    """A row of Table 3."""

    change: str
    perplexity: float
    bleu: float
    millions: int | None = None  # of parameters


@dataclass(frozen=True, slots=True)
class Printed:
    """The tables of the paper, and two of its numbers from the text."""

    tflops: dict[str, float]  # sustained single-precision TFLOP/s of each GPU, as the paper assumes
    text_bleu_fr: float  # of the big model, in the text of section 6.1
    table1: dict[str, tuple[str, str, str]]  # complexity, sequential operations, path length; "" if there is none
    table2: dict[str, PrintedSystem]
    table3: dict[str, PrintedVariation]
    table4: tuple[tuple[str, str, float], ...]  # parser, training, F1


PRINTED = TypeAdapter(Printed).validate_python(
    tomllib.loads(Path(__file__).with_name("printed.toml").read_text(encoding="utf-8"))
)
