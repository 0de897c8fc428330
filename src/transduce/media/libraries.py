"""The libraries for images and audio, imported only where they are used."""

from __future__ import annotations

import importlib
from typing import Any

from transduce.errors import ConfigError

__all__ = ["library"]


def library(module: str, *, needed_for: str) -> Any:
    """Import a module of the extra ``media``. Raises ConfigError, with the command that installs it, if it is missing.

    >>> library("no_such_module", needed_for="a picture")
    Traceback (most recent call last):
    transduce.errors.ConfigError: a picture needs no_such_module (No module named 'no_such_module'); ...
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = {"PIL": "Pillow", "sklearn": "scikit-learn"}.get(module.partition(".")[0], module.partition(".")[0])
        raise ConfigError(f"{needed_for} needs {name} ({error}); pip install 'transduce[media]'") from error
