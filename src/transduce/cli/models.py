"""Loading the models named on a command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.cli.imports import command_imports
from transduce.cli.machine import chosen_device, chosen_precision

if TYPE_CHECKING:
    from transduce.config import SearchConfig
    from transduce.tasks import Reranker, Translator

__all__ = ["load_translator", "requested_search"]


def load_translator(
    folders: Sequence[Path],
    *,
    device: str,
    precision: str,
    rerank: Path | None,
    weight: float,
    shortlist: Path | None = None,
) -> Translator | Reranker:
    """Load an ensemble of models, with an optional reverse model for reranking, or a model with a shortlist.

    Raises ConfigError or CheckpointError.
    """
    with command_imports():
        from transduce.tasks import Reranker, Translator

    device = chosen_device(device)
    precision = chosen_precision(precision, device)
    translator = Translator.load(*folders, device=device, precision=precision, shortlist=shortlist)
    if rerank is None:
        return translator
    return Reranker(translator, Translator.load(rerank, device=device, precision=precision), weight=weight)


def requested_search(
    search: SearchConfig, *, n_best: int | None, beam: int | None, alpha: float | None
) -> SearchConfig:
    """Return a model's search settings with command-line overrides. Raises ConfigError for invalid ones."""
    from transduce.tasks.translator import search_with

    return search_with(search, n_best=n_best, beam_size=beam, alpha=alpha)
