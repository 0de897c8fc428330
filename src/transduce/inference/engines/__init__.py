"""The engines, and which one a model gets. Each module here is one: its ``make`` makes it for a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from transduce.errors import ConfigError, quoted
from transduce.inference.engine import Engine, EngineSettings

__all__ = ["ENGINES", "EngineMaker", "make_engine", "reason_against"]

# Makes an engine for a model, or for several as an ensemble; None if it does not support the model or the settings.
# A model is a module of PyTorch, or a ``StoredModel``.
EngineMaker = Callable[[Sequence[Any], EngineSettings], Engine | None]

LAST = "torch"  # the one that supports every model


def _maker(name: str) -> EngineMaker:
    """Return the maker of a module, which is imported when it is called."""
    return lambda models, settings: import_module(f"{__name__}.{name}").make(models, settings)


# By name, in the order in which they are asked.
ENGINES: dict[str, EngineMaker] = {
    name: _maker(name) for name in sorted((each.name for each in iter_modules(__path__)), key=lambda name: name == LAST)
}


def make_engine(*models: Any, settings: EngineSettings | None = None) -> Engine:
    """Return the engine that the settings ask for; ``auto`` is the first that supports the model, or the ensemble.

    TRANSDUCE_ENGINE names another one than ``auto``. Most weights are copied: make a new engine after changing them.
    Raises ConfigError if the engine does not support the model, if the settings contradict each other, or if the device
    does not support the precision.
    """
    settings = settings or EngineSettings()
    wanted = os.environ.get("TRANSDUCE_ENGINE", "auto") if settings.engine == "auto" else settings.engine
    if wanted != "auto" and wanted not in ENGINES:
        raise ConfigError(f"the engine should be auto or one of {', '.join(ENGINES)}, got {quoted(wanted)}")
    for name in ENGINES if wanted == "auto" else [wanted]:
        engine = ENGINES[name](models, settings)
        if engine is not None:
            return engine
    raise ConfigError(f"the engine {wanted} cannot be used: {reason_against(wanted, *models)}; use auto, or torch")


def reason_against(name: str, *models: Any) -> str | None:
    """Return why an engine does not support a model, or an ensemble; None if it does."""
    module = import_module(f"{__name__}.{name}")
    reason: str | None = module.reason_against(models)
    return reason
