"""Translating, generating and parsing with the engine in C need no PyTorch; what needs it says so in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tasks.small_recipes import SmallRuns
from transduce.cli.imports import command_imports  # noqa: F401
from transduce.inference.native.library import library

pytestmark = [pytest.mark.merge, pytest.mark.skipif(library() is None, reason="the engine in C was not compiled")]
