"""The command line. Each verb parses its arguments, calls one public function and prints the result.

Results go to stdout, progress and warnings to stderr. Exit codes: 0 success; 1 a problem with a value, a file or data,
reported in one line; 2 an unknown verb or option; 128 + n stopped by signal n.

The names here are for verbs of other distributions (``verbs.py``), so that these behave like the built-in ones. They
are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transduce.cli.machine import chosen_device
    from transduce.cli.main import run
    from transduce.cli.options import Data as DataOption
    from transduce.cli.options import Device as DeviceOption
    from transduce.cli.options import Json as JsonOption
    from transduce.cli.options import Treebank as TreebankOption
    from transduce.cli.output import echo, echo_error, print_json, print_line
    from transduce.cli.paths import require_folder, require_utf8_name
    from transduce.cli.progress import TrainingProgress
    from transduce.cli.signals import StopRequest

__all__ = [
    "DataOption", "DeviceOption", "JsonOption", "StopRequest", "TrainingProgress", "TreebankOption", "chosen_device",
    "echo", "echo_error", "print_json", "print_line", "require_folder", "require_utf8_name", "run",
]  # fmt: skip

_LAZY_IMPORTS = {
    "DataOption": "options:Data",
    "DeviceOption": "options:Device",
    "JsonOption": "options:Json",
    "StopRequest": "signals:StopRequest",
    "TrainingProgress": "progress:TrainingProgress",
    "TreebankOption": "options:Treebank",
    "chosen_device": "machine:chosen_device",
    "echo": "output:echo",
    "echo_error": "output:echo_error",
    "print_json": "output:print_json",
    "print_line": "output:print_line",
    "require_folder": "paths:require_folder",
    "require_utf8_name": "paths:require_utf8_name",
    "run": "main:run",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY_IMPORTS:
        module, _, attribute = _LAZY_IMPORTS[name].partition(":")
        return getattr(importlib.import_module(f"transduce.cli.{module}"), attribute)
    raise AttributeError(f"module 'transduce.cli' has no attribute {name!r}")
