"""Loading the models named on a command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from transduce.cli.imports import command_imports
from transduce.cli.machine import chosen_device, chosen_precision
from transduce.config import MIN_DRAFT_PROBABILITY, N_DRAFTED, MaskPredictSearchConfig
from transduce.errors import ConfigError

if TYPE_CHECKING:
    from transduce.config import SearchConfig
    from transduce.inference import BestOfSamples, Reranker, Translator

__all__ = ["SearchOptions", "load_translator", "requested_search"]


def load_translator(
    folders: Sequence[Path],
    *,
    device: str,
    precision: str,
    rerank: Path | None,
    weight: float,
    shortlist: Path | None = None,
    draft: Path | None = None,
    n_drafted: int = N_DRAFTED,
    draft_probability: float = MIN_DRAFT_PROBABILITY,
    best_of: int | None = None,
    reward_model: Path | None = None,
) -> Translator | Reranker | BestOfSamples:
    """Load an ensemble of models, with an optional reverse model for reranking, a model with a shortlist, or a draft.

    With ``best_of`` and ``reward_model``, the best of so many draws is chosen.

    Raises ConfigError or CheckpointError.
    """
    with command_imports():
        from transduce.inference import BestOfSamples, Reranker, RewardModel, Translator

    device = chosen_device(device)
    precision = chosen_precision(precision, device)
    of_model = None if draft is not None else shortlist  # a draft has the shortlist itself
    translator = Translator.load(*folders, device=device, precision=precision, shortlist=of_model)
    if draft is not None:
        small = Translator.load(draft, device=device, precision=precision, shortlist=shortlist)
        return translator.with_draft(small, n_drafted=n_drafted, min_probability=draft_probability)
    if best_of is not None and reward_model is not None:
        return BestOfSamples(translator, RewardModel.load(reward_model, device=device), n=best_of)
    if rerank is None:
        return translator
    return Reranker(translator, Translator.load(rerank, device=device, precision=precision), weight=weight)


class SearchOptions(TypedDict, total=False):
    """The command line's overrides of a model's search settings; None keeps the model's."""

    n_best: int | None
    beam: int | None
    alpha: float | None
    limits: Mapping[str, int]  # of outputs, as options.output_limits returns them
    sample_seed: int | None  # sample with this seed
    temperature: float | None
    n_iterations: int | None  # of mask-predict


def requested_search(search: SearchConfig, **options: Unpack[SearchOptions]) -> SearchConfig:
    """Return a model's search settings with command-line overrides. Raises ConfigError for invalid ones."""
    from transduce.inference.search_options import sampling_like, search_with

    if (n_iterations := options.get("n_iterations")) is not None:
        if not isinstance(search, MaskPredictSearchConfig):
            raise ConfigError(f"--iterations is for models of mask-predict, got search.kind = {search.kind!r}")
        search = search.model_copy(update={"n_iterations": n_iterations})
    if (seed := options.get("sample_seed")) is not None:
        search = sampling_like(search, seed=seed, temperature=options.get("temperature"))
    return search_with(
        search, n_best=options.get("n_best"), beam_size=options.get("beam"), alpha=options.get("alpha"),
        limits=options.get("limits", {}),
    )  # fmt: skip
