"""Options that several verbs share, with the same name, meaning and help."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from transduce.cli.paths import require_utf8_name
from transduce.config import MAX_ALPHA, MAX_BEAM_SIZE, MAX_MINUTES

if TYPE_CHECKING:
    from transduce.metrics import TokenisedBleu

__all__ = [
    "DEFAULT_RERANK_WEIGHT",
    "MAX_BUFFER_LINES",
    "Alpha",
    "Beam",
    "Data",
    "Device",
    "Json",
    "Model",
    "Models",
    "Multi30kBleu",
    "PaperBleu",
    "Precision",
    "Rerank",
    "RerankWeight",
    "Settings",
    "Treebank",
    "check_minutes",
    "requested_bleus",
    "treebank_settings",
]  # fmt: skip


def requested_bleus(*, paper: bool, multi30k: bool) -> list[TokenisedBleu]:
    """What ``--paper-bleu`` and ``--multi30k-bleu`` name."""
    asked: dict[TokenisedBleu, bool] = {"paper_bleu": paper, "multi30k_bleu": multi30k}
    return [name for name, is_asked in asked.items() if is_asked]


def treebank_settings(treebank: Path | None) -> list[str]:
    """What ``--treebank`` sets. Raises ConfigError if it cannot be written into a recipe."""
    require_utf8_name("--treebank", treebank)
    return [] if treebank is None else [f"data.treebank={json.dumps(str(treebank))}"]


def check_minutes(minutes: float | None) -> float | None:
    """A check of ``--minutes``."""
    if minutes is not None and not 0 < minutes < math.inf:
        raise typer.BadParameter(f"should be more than 0, got {minutes:g}")
    if minutes is not None and minutes > MAX_MINUTES:
        raise typer.BadParameter(f"should be at most {MAX_MINUTES:,}, got {minutes:g}")
    return minutes


DEFAULT_RERANK_WEIGHT, MAX_RERANK_WEIGHT = 0.3, 1000.0
MAX_BUFFER_LINES = 10**7  # read before the first of them is answered

Json = Annotated[bool, Option("--json", help="Print JSON instead of text.")]
Device = Annotated[str, Option("--device", help="cpu, cuda, cuda:1, ..., or auto: a GPU where there is one.")]
Data = Annotated[
    Path | None,
    Option(
        "--data",
        help="A folder with corpora, looked into before TRANSDUCE_DATA and the folder of 'corpus get'.",
        show_default=False,
    ),
]
Models = Annotated[
    list[Path], Argument(metavar="MODEL", help="A model folder; several write together.", show_default=False)
]
Model = Annotated[Path, Argument(metavar="MODEL", help="A model folder.", show_default=False)]
Treebank = Annotated[
    Path | None,
    Option(
        "--treebank",
        help='For data.corpus = "wsj": the folder of the Penn Treebank with the sections 00 to 24.',
        show_default=False,
    ),
]
Precision = Annotated[
    str, Option("--precision", help="fp32; bf16, int8: faster, now and then another word; auto: bf16 where it is fast.")
]
Settings = Annotated[
    list[str] | None,
    Option("--set", help="Override a field of the recipe, as in training.max_updates=1000; may be repeated."),
]
Beam = Annotated[
    int | None, Option("--beam", min=1, max=MAX_BEAM_SIZE, help="Beam size; 1 is greedy. Default: the model's.")
]
Alpha = Annotated[
    float | None, Option("--alpha", min=0, max=MAX_ALPHA, help="Of the length penalty. Default: the model's.")
]
Rerank = Annotated[
    Path | None,
    Option(
        "--rerank",
        metavar="REVERSE_MODEL",
        help="A model of the other direction; of the whole beam, the one it would translate back is chosen.",
        show_default=False,
    ),
]
PaperBleu = Annotated[
    bool, Option("--paper-bleu", help="Also the tokenised BLEU of the paper: Moses tokens, compounds split.")
]
Multi30kBleu = Annotated[
    bool, Option("--multi30k-bleu", help="Also the tokenised BLEU of work on Multi30k: lowercased Moses tokens.")
]
RerankWeight = Annotated[
    float,
    Option(
        "--rerank-weight",
        min=0,
        max=MAX_RERANK_WEIGHT,
        help="Of the reverse model's score; 0 leaves the order as it was.",
    ),
]
