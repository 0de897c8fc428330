"""The other libraries, imported only where they are used."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from transduce import imports

__all__ = ["is_installed", "library", "quiet_transformers"]

library = partial(imports.library, extra="exchange")


def is_installed(name: str) -> bool:
    """Whether a library can be imported."""
    return importlib.util.find_spec(name) is not None


@contextmanager
def quiet_transformers() -> Iterator[Any]:
    """Give transformers without its progress bars, reports of missing weights and connections."""
    before = {name: os.environ.get(name) for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_NO_ADVISORY_WARNINGS")}
    os.environ |= dict.fromkeys(before, "1")
    transformers = library("transformers", needed_for="the exchange with Hugging Face")
    logging = transformers.utils.logging
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield transformers
    finally:
        logging.set_verbosity(verbosity)
        logging.enable_progress_bar()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
