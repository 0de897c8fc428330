"""Options that several verbs share, with the same name, meaning and help."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "DataOption",
    "DeviceOption",
    "JsonOption",
    "ModelArgument",
    "ModelsArgument",
    "PrecisionOption",
    "SettingsOption",
    "require_positive_minutes",
]


def require_positive_minutes(minutes: float | None) -> float | None:
    """A check of ``--minutes``."""
    if minutes is not None and not 0 < minutes < math.inf:
        raise typer.BadParameter(f"should be more than 0, got {minutes:g}")
    return minutes


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
DeviceOption = Annotated[
    str, typer.Option("--device", help="cpu, cuda, cuda:1, ..., or auto: a GPU where there is one.")
]
DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="A folder with corpora, looked into before TRANSDUCE_DATA and the folder of 'corpus get'.",
        show_default=False,
    ),
]
ModelsArgument = Annotated[
    list[Path],
    typer.Argument(metavar="MODEL...", help="A model folder; several write together.", show_default=False),
]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder.", show_default=False)]
PrecisionOption = Annotated[
    str,
    typer.Option(
        "--precision", help="fp32; bf16, int8: faster, now and then another word; auto: bf16 where it is fast."
    ),
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a field of the recipe, as in training.max_updates=1000; may be repeated."),
]
