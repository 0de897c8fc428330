"""The command line. Each verb parses its arguments, calls one public function and prints the result.

Results go to stdout, progress and warnings to stderr. Exit codes: 0 success; 1 a problem with a value, a file or data,
reported in one line; 2 an unknown verb or option; 128 + n stopped by signal n.

The names here are for verbs of other distributions (``verbs.py``), so that these behave like the built-in ones. They
are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transduce.imports import imported_on_use

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

imported_on_use(__name__)
