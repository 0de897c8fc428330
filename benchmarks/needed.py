"""What a benchmark compares with: named in one line where it is missing, before anything is measured."""

from __future__ import annotations

import argparse
import importlib.util
import shutil
from collections.abc import Sequence

__all__ = ["BENCH", "need"]

BENCH = 'pip install -e ".[bench]"'


def need(parser: argparse.ArgumentParser, *modules: str, programs: Sequence[str] = (), how: str = BENCH) -> None:
    """End with one line that says ``how`` to install the modules and programs that are missing, if any is."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    missing += [program for program in programs if shutil.which(program) is None]
    if missing:
        parser.error(f"{' and '.join(missing)} not found: {how}")
