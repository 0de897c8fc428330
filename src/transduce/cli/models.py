"""Loading the models named on a command line."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from transduce.cli.imports import command_imports
from transduce.cli.machine import chosen_device
from transduce.config.decoding import LoadingOptions

if TYPE_CHECKING:
    from transduce.inference import BestOfSamples, Reranker, Translator

__all__ = ["load_translator"]


def load_translator(options: LoadingOptions) -> Translator | Reranker | BestOfSamples:
    """Load what translates, on the device that is named. Raises ConfigError or CheckpointError."""
    with command_imports():
        from transduce.inference.translation import loading

    return loading.load_translator(replace(options, device=chosen_device(options.device)))
