"""Makes the fuzzer, a separate program and package, importable for tests that use its ways to damage a file."""

from __future__ import annotations

import sys
from pathlib import Path

collect_ignore = ["fuzz.py", "fuzzing"]
sys.path.append(str(Path(__file__).parent))
