"""How a call decodes: what differs from the model's search, and which models are loaded.

The command line, Python, workers, bulk translation and the server all pass these two records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, Unpack

from transduce.config.record import config_from_mapping, nearest_name
from transduce.config.search import (
    MIN_DRAFT_PROBABILITY,
    N_DRAFTED,
    BeamSearchConfig,
    GreedySearchConfig,
    SampledSearchConfig,
    SearchConfig,
    SearchKeywords,
)
from transduce.errors import ConfigError

__all__ = [
    "NO_CHANGES", "SEARCH_FIELDS", "DecodingOptions", "EngineName", "LoadingOptions",
    "greedy_unless_sampled", "sampling_like",
]  # fmt: skip

# What computes: auto is the engine in C for models on a CPU that it knows, else PyTorch. Or the name of an engine, of
# the package or of another distribution.
EngineName = str

# The fields of all searches, by name.
SEARCH_FIELDS = {name: field for kind in SearchConfig.members.values() for name, field in kind.model_fields.items()}
SEARCH_FIELDS |= SearchConfig.model_fields


@dataclass(frozen=True, slots=True, init=False)
class DecodingOptions:
    """What a call changes of the search of a model; ``applied_to`` gives the search. Its JSON is that of ``changes``.

    >>> DecodingOptions(n_best=3, alpha=0.0).applied_to(GreedySearchConfig(max_length=9)).beam_size
    3
    """

    changes: Mapping[str, Any]  # by field

    def __init__(self, *, n_best: int | None = None, **changes: Unpack[SearchKeywords]) -> None:
        """Leave out what is None. Raises TypeError for an unknown field."""
        given = {name: value for name, value in {"n_best": n_best, **changes}.items() if value is not None}
        for name in given:
            if name not in SEARCH_FIELDS:
                raise TypeError(f"unknown option {name} of a search; {nearest_name(name, SEARCH_FIELDS)}")
        object.__setattr__(self, "changes", given)

    def changed(self, **changes: Unpack[SearchKeywords]) -> Self:
        """Return these options with others."""
        return type(self)(**{**self.changes, **changes})

    def applied_to(self, search: SearchConfig) -> SearchConfig:
        """Return the search with these changes. Raises ConfigError for an invalid value, or one of another search.

        ``n_best`` is 1 unless it is given. The beam grows to it if needed, and greedy search becomes beam search if
        either is above 1; no other search does. A seed is only of searches that draw.
        """
        changes: dict[str, Any] = {"n_best": 1, "kind": search.kind, **self.changes}
        n_best = changes["n_best"] if isinstance(changes["n_best"], int) else 1  # another type raises below
        before = search if changes["kind"] == search.kind else SearchConfig(kind=changes["kind"])
        changes.setdefault("beam_size", max(before.beam_size, n_best))
        kind = SearchConfig.member(changes)
        if "seed" not in kind.model_fields:
            changes.pop("seed", None)
        if kind is not BeamSearchConfig:
            if changes["n_best"] == changes["beam_size"] == 1:
                del changes["n_best"], changes["beam_size"]
            elif kind is GreedySearchConfig:
                changes["kind"] = "beam"
            else:
                raise ConfigError(
                    f"search.kind = {changes['kind']!r} writes one translation of each sentence without a beam, got"
                    f" beam_size {changes['beam_size']} and n_best {changes['n_best']}"
                )
        return config_from_mapping(SearchConfig, search.carried_over(changes) | changes, where="search")


NO_CHANGES = DecodingOptions()


def greedy_unless_sampled(search: SearchConfig) -> SearchConfig:
    """Return greedy search in place of beam search, with the same limits; another search is returned as it is."""
    return DecodingOptions(kind="greedy").applied_to(search) if isinstance(search, BeamSearchConfig) else search


def sampling_like(search: SearchConfig, *, seed: int, temperature: float | None = None) -> SampledSearchConfig:
    """Return a search that samples from the model's distribution, with the limits of another search.

    ``temperature``: divides the logits. Default: that of the other search if it samples, else 1.
    """
    sampled = DecodingOptions(kind="sampling", seed=seed, temperature=temperature).applied_to(search)
    assert isinstance(sampled, SampledSearchConfig)
    return sampled


@dataclass(frozen=True, slots=True)
class LoadingOptions:
    """Which models translate, and how they are run."""

    folders: Sequence[Path]  # of the model; several form an ensemble
    device: str = "cpu"  # auto: a GPU if there is one
    precision: str = "fp32"  # auto: bf16 where it is fast
    shortlist: Path | None = None  # of the draft, if there is one
    draft: Path | None = None  # a smaller model
    n_drafted: int = N_DRAFTED
    draft_probability: float = MIN_DRAFT_PROBABILITY
    rerank: Path | None = None  # a model of the reverse direction
    rerank_weight: float = 0.0
    best_of: int | None = None  # draws, of which the reward model chooses
    reward_model: Path | None = None
    engine: EngineName = "auto"
    terms: Path | None = None  # a list of terms
    avoid: Path | None = None  # a list of phrases that no translation has
    are_terms_required: bool = False  # by a search of its own, where no hypothesis has them
    memory: Path | None = None  # a translation memory

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the options whose fields are given, paths as strings."""
        names = ("shortlist", "draft", "rerank", "reward_model", "terms", "avoid", "memory")
        paths = {name: Path(values[name]) for name in names if values[name] is not None}
        return cls(**{**values, **paths, "folders": [Path(each) for each in values["folders"]]})
