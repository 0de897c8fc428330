"""The engines, and which one a model gets."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from transduce.inference.engine import Engine, EngineSettings
from transduce.inference.native_engine import native_engine
from transduce.inference.torch_engine import torch_engine

__all__ = ["ENGINES", "EngineMaker", "make_engine"]

# Makes an engine for a model, or for several as an ensemble; None if it does not support the model or the settings.
EngineMaker = Callable[[Sequence[Any], EngineSettings], Engine | None]

# In the order of preference. PyTorch's supports every model.
ENGINES: dict[str, EngineMaker] = {"torch": torch_engine, "native": native_engine}


def make_engine(*models: Any, settings: EngineSettings | None = None) -> Engine:
    """Return the first engine that supports a model, or an ensemble, and the settings.

    TRANSDUCE_ENGINE may name another one that is asked first, such as native. Most weights are copied: make a new
    engine after changing them. Raises ConfigError if the settings contradict each other, or the device does not support
    the precision.
    """
    settings = settings or EngineSettings()
    wanted = os.environ.get("TRANSDUCE_ENGINE")
    makers = sorted(ENGINES.items(), key=lambda entry: entry[0] != wanted)  # stable
    made = (make(models, settings) for _, make in makers)
    return next(engine for engine in made if engine is not None)
