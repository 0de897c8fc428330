"""Searches with other options than those of the model."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from transduce.config import (
    BeamSearchConfig,
    GreedySearchConfig,
    SampledSearchConfig,
    SearchConfig,
    config_from_mapping,
)
from transduce.errors import ConfigError

__all__ = ["greedy_unless_sampled", "sampling_like", "search_with"]


def search_with(
    search: SearchConfig,
    *,
    n_best: int | None = None,
    beam_size: int | None = None,
    alpha: float | None = None,
    max_tokens_per_batch: int | None = None,
    limits: Mapping[str, int] = MappingProxyType({}),
) -> SearchConfig:
    """Override fields of a search configuration; the beam grows to ``n_best`` if needed. Raises ConfigError.

    ``limits``: of outputs, such as ``max_length`` and ``no_repeat_ngram``.
    Greedy search becomes beam search if ``n_best`` or ``beam_size`` is above 1; no other search does.
    """
    n_best = 1 if n_best is None else n_best
    min_beam = n_best if isinstance(n_best, int) else 1  # another type raises below
    changes: dict[str, Any] = {
        "n_best": n_best,
        "beam_size": max(search.beam_size, min_beam) if beam_size is None else beam_size,
        "alpha": search.alpha if alpha is None else float(alpha) if isinstance(alpha, int) else alpha,
        "max_tokens_per_batch": search.max_tokens_per_batch if max_tokens_per_batch is None else max_tokens_per_batch,
        **limits,
    }
    if not isinstance(search, BeamSearchConfig):
        if changes["n_best"] == changes["beam_size"] == 1:
            del changes["n_best"], changes["beam_size"]
        elif isinstance(search, GreedySearchConfig):
            changes["kind"] = "beam"
        else:
            raise ConfigError(
                f"search.kind = {search.kind!r} writes one translation of each sentence without a beam, got beam_size"
                f" {changes['beam_size']} and n_best {changes['n_best']}"
            )
    return config_from_mapping(SearchConfig, search.carried_over(changes) | changes, where="search")


def greedy_unless_sampled(search: SearchConfig) -> SearchConfig:
    """Return greedy search in place of beam search, with the same limits; another search is returned as it is."""
    if not isinstance(search, BeamSearchConfig):
        return search
    shared = search.model_dump(include=set(GreedySearchConfig.model_fields) - {"kind"})
    return GreedySearchConfig(**shared)


def sampling_like(search: SearchConfig, *, seed: int, temperature: float | None = None) -> SampledSearchConfig:
    """Return a search that samples from the model's distribution, with the limits of another search.

    ``temperature``: divides the logits. Default: that of the other search if it samples, else 1.
    """
    fields = set(SampledSearchConfig.model_fields) - {"kind", "seed"}
    changes = {} if temperature is None else {"temperature": temperature}
    return SampledSearchConfig(**search.model_dump(include=fields) | changes, seed=seed)
