"""The engines, and which one a model gets. Each module here is one: its ``make`` makes it for a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from transduce.inference.engine import Engine, EngineSettings

__all__ = ["ENGINES", "EngineMaker", "make_engine"]

# Makes an engine for a model, or for several as an ensemble; None if it does not support the model or the settings.
EngineMaker = Callable[[Sequence[Any], EngineSettings], Engine | None]

LAST, ON_REQUEST = "torch", ("native",)  # the one that supports every model; those that only a name asks


def _maker(name: str) -> EngineMaker:
    """Return the maker of a module, which is imported when it is called."""
    return lambda models, settings: import_module(f"{__name__}.{name}").make(models, settings)


# By name, in the order in which they are asked.
ENGINES: dict[str, EngineMaker] = {
    name: _maker(name) for name in sorted((each.name for each in iter_modules(__path__)), key=lambda name: name == LAST)
}


def make_engine(*models: Any, settings: EngineSettings | None = None) -> Engine:
    """Return the first engine that supports a model, or an ensemble, and the settings.

    TRANSDUCE_ENGINE may name one that is asked first, such as native. Most weights are copied: make a new engine after
    changing them. Raises ConfigError if the settings contradict each other, or the device does not support the
    precision.
    """
    settings = settings or EngineSettings()
    wanted = os.environ.get("TRANSDUCE_ENGINE")
    asked = sorted((name for name in ENGINES if name == wanted or name not in ON_REQUEST), key=lambda n: n != wanted)
    made = (ENGINES[name](models, settings) for name in asked)
    return next(engine for engine in made if engine is not None)
