"""Starting a run from the weights of another model: of the same task, or of another one.

A weight is taken from the weight of the same place: encoders from encoders, decoders from decoders. The one stack of a
language model is an encoder if it is bidirectional, else a decoder. A weight that has no place in the other model, or
another shape there, keeps its random values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from transduce.config import LanguageModelConfig, ModelConfig, RunConfig
from transduce.errors import ConfigError
from transduce.inference.folder import SavedWeights
from transduce.model.weights import VALUE, NamedOnDisk
from transduce.text import Tokenizers
from transduce.training import peak_learning_rate

__all__ = ["TakenWeights", "gentle_rate", "overwriting", "require_same_vocabulary", "take_weights"]

MAX_NAMED = 8  # weights in a message
# A tenth of the highest learning rate of the paper, with its 4,000 updates of warm-up; one far above it overwrites.
RATE, PAPER_WARMUP, FAR_ABOVE = 0.1, 4000, 10
# Settings that weights of the same shape depend on.
USES_OF_WEIGHTS = (
    "n_heads", "d_k", "d_v", "compatibility", "norm", "norm_eps", "activation", "positions", "scale_embeddings",
    "attention", "neighbourhood",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TakenWeights:
    """Which weights of a model were taken from another one."""

    taken: tuple[str, ...]  # names on disk
    drawn: tuple[str, ...]  # these have no counterpart, or one of another shape
    unused: tuple[str, ...]  # weights of the other model without a place here
    differing: tuple[tuple[str, Any, Any], ...] = ()  # settings: name, value there, value here
    n_of_other_shapes: int = 0

    def lines(self, folder: Path) -> list[str]:
        """Describe it for people."""
        lines = [f"took {len(self.taken):,} weights of {folder}"]
        for what, names in (("drawn at random", self.drawn), ("not used", self.unused)):
            if names:
                more = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
                lines.append(f"{what}: {', '.join(names[:MAX_NAMED])}{more}")
        if self.n_of_other_shapes > len(self.taken):
            lines.append(f"warning: most weights have other shapes in {folder}; the recipe should have its model")
        if self.differing:
            listed = ", ".join(f"{name} {there!r} there and {here!r} here" for name, there, here in self.differing)
            lines.append(f"warning: the models use their weights differently: {listed}")
        return lines


def require_same_vocabulary(saved: SavedWeights, config: ModelConfig, tokenizers: Tokenizers, folder: Path) -> None:
    """Raise ConfigError unless source or target have the tokenizer of the model that the run starts from.

    Two models of the same kind of media need none in common: an encoder that hears English is a start for speech
    translation. The embeddings of another vocabulary are not taken.
    """
    there, here = (getattr(each, "source", "tokens") for each in (saved.config, config))
    if there == here != "tokens":
        return
    theirs = {saved.tokenizers.src.fingerprint, saved.tokenizers.tgt.fingerprint}
    if theirs.isdisjoint({tokenizers.src.fingerprint, tokenizers.tgt.fingerprint}):
        raise ConfigError(
            f"the text was prepared with another tokenizer than that of {folder}, so that its weights have no meaning; "
            f"prepare it with data.tokenizer_from = {str(folder)!r}"
        )


@torch.no_grad()
def take_weights(model: NamedOnDisk, config: ModelConfig, tokenizers: Tokenizers, saved: SavedWeights) -> TakenWeights:
    """Copy the weights that fit into ``model``; return their names and those of the others.

    A value function is left to its task, which starts it from a reward model.
    """
    name_at = {_place(name, saved.config): name for name in saved.weights}
    taken: dict[str, str] = {}  # name here: name there
    n_of_other_shapes = 0
    for name, weight in model.canonical().items():
        place = _place(name, config)
        same = name_at.get(place)
        n_of_other_shapes += same is not None and saved.weights[same].shape != weight.shape
        for other_place in (place, _OTHER_SIDE.get(place, place)):
            other = name_at.get(other_place)
            if (
                other is not None
                and saved.weights[other].shape == weight.shape
                and _vocabulary(place, tokenizers) == _vocabulary(other_place, saved.tokenizers)
            ):
                weight.copy_(saved.weights[other])
                taken[name] = other
                break
    drawn = tuple(name for name in model.canonical() if name not in taken and not name.startswith(VALUE))
    unused = tuple(name for name in saved.weights if name not in taken.values())
    values = (
        (name, getattr(saved.config, name, None), getattr(config, name, None)) for name in USES_OF_WEIGHTS
    )  # None: a system without this setting
    differing = tuple((name, there, here) for name, there, here in values if there != here)
    return TakenWeights(tuple(taken), drawn, unused, differing, n_of_other_shapes)


def gentle_rate(d_model: int) -> float:
    """Return a learning rate that overwrites little of what a model knows.

    >>> f"{gentle_rate(512):.1e}"
    '7.0e-05'
    """
    return RATE * float((d_model * PAPER_WARMUP) ** -0.5)


def overwriting(config: RunConfig, folder: Path) -> str | None:
    """Return a warning if the learning rate of a run overwrites what the model that it starts from knows."""
    peak, gentle = (
        peak_learning_rate(d_model=config.model.d_model, config=config.training),
        gentle_rate(config.model.d_model),
    )
    if peak < FAR_ABOVE * gentle * (1 - 1e-9):  # the paper's own rate is just so far above
        return None
    fitting = config.training.lr_factor * gentle / peak
    return (
        f"warning: the learning rate rises to {peak:.1e}, which overwrites what {folder} knows; to keep it, write a "
        f"recipe with transduce init --from {folder}, or --set training.lr_factor={fitting:.2g}"
    )


# A shared vocabulary may have one embedding for both sides, or one for each.
_OTHER_SIDE = {"src_embedding.weight": "tgt_embedding.weight", "tgt_embedding.weight": "src_embedding.weight"}


def _place(name: str, config: ModelConfig) -> str:
    """Return the name that a weight has in an encoder-decoder.

    >>> _place("decoder.0.feed_forward.w_1.weight", LanguageModelConfig(is_causal=False))
    'encoder.0.feed_forward.w_1.weight'
    """
    if not isinstance(config, LanguageModelConfig):
        return name
    if config.is_causal:
        return re.sub("^src_", "tgt_", name)
    return re.sub("^decoder", "encoder", name)


def _vocabulary(place: str, tokenizers: Tokenizers) -> str | None:
    """Return the fingerprint of the tokenizer that the rows of a weight belong to; None if they are no tokens."""
    match place.split("."):
        case ["src_embedding", _]:
            return tokenizers.src.fingerprint
        case ["tgt_embedding" | "output", *_]:
            return tokenizers.tgt.fingerprint
        case _:
            return None
