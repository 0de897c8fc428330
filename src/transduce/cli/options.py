"""Options shared by several verbs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from transduce.cli.paths import require_utf8_name
from transduce.config import MAX_MINUTES
from transduce.config.decoding import EngineName
from transduce.errors import ConfigError, shown

if TYPE_CHECKING:
    from transduce.metrics import TokenisedBleu

__all__ = [
    "DEFAULT_RERANK_WEIGHT", "MAX_BUFFER_LINES", "MAX_SAMPLES", "Avoid", "BestOf", "Data", "Device", "Engine", "Json",
    "Model", "Models", "Multi30kBleu", "PaperBleu", "Precision", "Rerank", "RerankWeight", "RewardModelFolder",
    "Settings", "TermsHard", "Treebank", "check_minutes", "requested_bleus", "require_alone", "require_beside",
    "require_best_of", "set_once", "treebank_settings",
]  # fmt: skip


def requested_bleus(*, paper: bool, multi30k: bool) -> list[TokenisedBleu]:
    """Return the scores requested by ``--paper-bleu`` and ``--multi30k-bleu``."""
    flags: dict[TokenisedBleu, bool] = {"paper_bleu": paper, "multi30k_bleu": multi30k}
    return [name for name, is_set in flags.items() if is_set]


def require_best_of(best_of: int | None, reward_model: Path | None, others: Mapping[str, object]) -> None:
    """Raise ConfigError unless ``--best-of`` has its reward model, and none of the ``others`` is set beside it."""
    if (best_of is None) != (reward_model is None):
        raise ConfigError("--best-of and --reward-model belong together; give both")
    if best_of is not None:
        require_alone("--best-of samples by itself", others)


def require_alone(reason: str, others: Mapping[str, object]) -> None:
    """Raise ConfigError with a reason if one of the ``others`` is set."""
    given = [option for option, value in others.items() if value]
    if given:
        raise ConfigError(f"{reason}; leave out {' and '.join(given)}")


def require_beside(option: str, value: object, others: Mapping[str, object]) -> None:
    """Raise ConfigError if one of the ``others`` is set without the option that it belongs to."""
    given = [other for other, each in others.items() if each]
    if given and value is None:
        raise ConfigError(f"{' and '.join(given)} without {option} has no effect; add {option}, or leave it out")


def treebank_settings(treebank: Path | None) -> list[str]:
    """Return ``--treebank`` as a setting. Raises ConfigError for a path that cannot be stored in a recipe."""
    require_utf8_name("--treebank", treebank)
    return [] if treebank is None else [f"data.treebank={json.dumps(str(treebank))}"]


def set_once(settings: Iterable[str]) -> list[str]:
    """Return ``table.key=value`` settings. Raises ConfigError if a key has two, by ``--set`` or other options."""
    settings = list(settings)
    names = [setting.partition("=")[0].strip() for setting in settings]
    for name in names:
        if names.count(name) > 1:
            values = " and ".join(
                each.partition("=")[2] for each, of in zip(settings, names, strict=True) if of == name
            )
            raise ConfigError(f"{shown(name)} is set more than once, to {shown(values)}; set it once")
    return settings


def check_minutes(minutes: float | None) -> float | None:
    """Validate ``--minutes``. Raises BadParameter."""
    if minutes is not None and not 0 < minutes < math.inf:
        raise typer.BadParameter(f"should be more than 0, got {minutes:g}")
    if minutes is not None and minutes > MAX_MINUTES:
        raise typer.BadParameter(f"should be at most {MAX_MINUTES:,}, got {minutes:g}")
    return minutes


# Headings in the help of verbs with many options.
TEXT, DOCUMENTS, TERMS, SCORES = "Text", "Documents", "Terms", "Scores"
SEARCH, SPEED, REQUESTS, RECOVERY = "Search", "Devices and speed", "Requests", "Recovery"
DEFAULT_RERANK_WEIGHT, MAX_RERANK_WEIGHT = 0.3, 1000.0
MAX_BUFFER_LINES = 10**7

Json = Annotated[bool, Option("--json", help="Print JSON instead of text.")]
Device = Annotated[
    str,
    Option(
        "--device",
        metavar="NAME",
        help="Run on this device: cpu, cuda, cuda:1, ...; auto takes a GPU if there is one.",
        rich_help_panel=SPEED,
    ),
]
Engine = Annotated[
    EngineName,
    Option(
        "--engine",
        metavar="NAME",
        help="Compute with native, the engine in C, or torch; auto takes native for models on a CPU that it knows.",
        rich_help_panel=SPEED,
    ),
]
Data = Annotated[
    Path | None,
    Option(
        "--data",
        help="Search this data folder before TRANSDUCE_DATA and the folder of 'corpus get'.",
        show_default=False,
        rich_help_panel=TEXT,
    ),
]
Models = Annotated[
    list[Path], Argument(metavar="MODEL", help="The model folder; several form an ensemble.", show_default=False)
]
Model = Annotated[Path, Argument(metavar="MODEL", help="The model folder.", show_default=False)]
Treebank = Annotated[
    Path | None,
    Option(
        "--treebank",
        help='Read the Penn Treebank, sections 00 to 24, from this folder (for data.corpus = "wsj").',
        show_default=False,
        rich_help_panel=TEXT,
    ),
]
Precision = Annotated[
    str,
    Option(
        "--precision",
        metavar="NAME",
        help="Compute in fp32, or faster and less exactly in bf16 or int8; auto takes bf16 where it is fast.",
        rich_help_panel=SPEED,
    ),
]
Settings = Annotated[
    list[str] | None,
    Option("--set", help="Override a recipe field, as in training.max_updates=1000; may be repeated."),
]
Rerank = Annotated[
    Path | None,
    Option(
        "--rerank",
        metavar="REVERSE_MODEL",
        help="Rerank the beam with this model of the reverse direction.",
        show_default=False,
        rich_help_panel=SEARCH,
    ),
]
MAX_SAMPLES = 1000
BestOf = Annotated[
    int | None,
    Option(
        "--best-of",
        min=1,
        max=MAX_SAMPLES,
        help="Draw this many outputs for each input and write the one that --reward-model rates highest.",
        show_default=False,
        rich_help_panel=SEARCH,
    ),
]
RewardModelFolder = Annotated[
    Path | None,
    Option(
        "--reward-model",
        help="The folder of a reward model, for --best-of.",
        show_default=False,
        rich_help_panel=SEARCH,
    ),
]
TermsHard = Annotated[
    bool,
    Option(
        "--terms-hard",
        help="With --terms: search for a translation that has them all.",
        rich_help_panel=TERMS,
    ),
]
Avoid = Annotated[
    Path | None,
    Option(
        "--avoid",
        metavar="FILE",
        help="Write none of these phrases, one in each line.",
        show_default=False,
        rich_help_panel=TERMS,
    ),
]
PaperBleu = Annotated[
    bool,
    Option(
        "--paper-bleu",
        help="Also print the paper's tokenised BLEU: Moses tokens, compounds split.",
        rich_help_panel=SCORES,
    ),
]
Multi30kBleu = Annotated[
    bool,
    Option(
        "--multi30k-bleu",
        help="Also print the tokenised BLEU usual for Multi30k: lowercased Moses tokens.",
        rich_help_panel=SCORES,
    ),
]
RerankWeight = Annotated[
    float,
    Option(
        "--rerank-weight",
        min=0,
        max=MAX_RERANK_WEIGHT,
        help="Weight the reverse model's score by this factor; 0 keeps the order.",
        rich_help_panel=SEARCH,
    ),
]
