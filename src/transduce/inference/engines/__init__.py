"""The engines, and which one a model gets. Each module here is one: its ``make`` makes it for a model.

A distribution adds engines by entry points of the group ``transduce.engines``: a name, and a module like those here.
They are used by name only; ``auto`` does not ask them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from transduce.errors import ConfigError, quoted
from transduce.inference.engine import Engine, EngineSettings

__all__ = ["ENGINES", "EngineMaker", "make_engine", "reason_against"]

# Makes an engine for a model, or for several as an ensemble; None if it does not support the model or the settings.
# A model is a module of PyTorch, or a ``StoredModel``.
EngineMaker = Callable[[Sequence[Any], EngineSettings], Engine | None]

GROUP = "transduce.engines"  # of entry points
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
    settings = replace(settings, engine=wanted)
    makers = ENGINES.values() if wanted == "auto" else [ENGINES.get(wanted) or _module(wanted).make]
    for make in makers:
        engine: Engine | None = make(models, settings)
        if engine is not None:
            return engine
    raise ConfigError(f"the engine {wanted} cannot be used: {reason_against(wanted, *models)}; use auto, or torch")


def reason_against(name: str, *models: Any) -> str | None:
    """Return why an engine does not support a model, or an ensemble; None if it does."""
    reason: str | None = _module(name).reason_against(models)
    return reason


def _module(name: str) -> Any:
    """Return the module of an engine, here or of another distribution. Raises ConfigError if there is none."""
    if name in ENGINES:
        return import_module(f"{__name__}.{name}")
    from importlib.metadata import entry_points

    added = {each.name: each for each in entry_points(group=GROUP)}
    if name not in added:
        raise ConfigError(f"the engine should be auto or one of {', '.join([*ENGINES, *added])}, got {quoted(name)}")
    try:
        return added[name].load()
    except ImportError as error:
        raise ConfigError(f"the engine {quoted(name)} cannot be imported: {error}") from error
