"""The model of a folder: its weights are read by the engine that computes with it, in the form that this needs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from transduce.config import ModelConfig
from transduce.errors import CheckpointError, shown
from transduce.files import UnverifiedFile
from transduce.imports import needing_train_extra, without_collection
from transduce.inference.mapped_weights import MappedTensor, mapped_weights
from transduce.text import Tokenizers

__all__ = ["StoredModel", "in_torch"]


class StoredModel:
    """A model whose weights are in a file."""

    def __init__(self, config: ModelConfig, tokenizers: Tokenizers, weights: UnverifiedFile, *, device: str) -> None:
        """``device``: of the model in PyTorch."""
        self.config, self.tokenizers, self.device = config, tokenizers, device
        self.weights_file = weights

    def mapped_weights(self) -> dict[str, MappedTensor]:
        """Return the weights by their names on disk; the caller verifies their file.

        Raises CheckpointError if the file is damaged, or a weight is NaN or Inf.
        """
        weights = mapped_weights(self.weights_file.path)
        self._require_printable(weights)
        return weights

    @cached_property
    def module(self) -> Any:
        """The model in PyTorch, from ``make_model``. Raises CheckpointError as ``mapped_weights``."""
        path = self.weights_file.path
        with needing_train_extra(f"the model in {path.parent}"):
            from transduce.model import ShapesOnly, make_model
            from transduce.model.weights import assign_weights
            from transduce.model.weights_file import finite_tensors

        with without_collection(), self.weights_file.verified_while_read():
            weights = finite_tensors(path, may_be_link=True)
            self._require_printable(weights)
            with ShapesOnly():
                model = make_model(self.config, self.tokenizers)
            assign_weights(model, weights, where=path)
        return model.to(self.device).eval()

    def _require_printable(self, names: Mapping[str, object]) -> None:
        for name in names:
            if shown(name) != name:
                raise CheckpointError(
                    f"{self.weights_file.path} has an unknown tensor {shown(name)}; it belongs to another architecture"
                )


def in_torch(model: Any) -> Any:
    """Return a model as a module of PyTorch, whatever it is."""
    return model.module if isinstance(model, StoredModel) else model
