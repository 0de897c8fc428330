"""The engines, and which one a model gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from transduce.inference.engine import Engine, EngineSettings
from transduce.inference.torch_engine import torch_engine

__all__ = ["ENGINES", "EngineMaker", "make_engine"]

# Makes an engine for a model, or for several as an ensemble; None if it does not support the model or the settings.
EngineMaker = Callable[[Sequence[Any], EngineSettings], Engine | None]

# In the order of preference. The last one supports every model.
ENGINES: dict[str, EngineMaker] = {"torch": torch_engine}


def make_engine(*models: Any, settings: EngineSettings | None = None) -> Engine:
    """Return the first engine that supports a model, or an ensemble, and the settings.

    Most weights are copied: make a new engine after changing them. Raises ConfigError if the settings contradict each
    other, or the device does not support the precision.
    """
    settings = settings or EngineSettings()
    made = (make(models, settings) for make in ENGINES.values())
    return next(engine for engine in made if engine is not None)
