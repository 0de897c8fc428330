"""Changes to files that the project wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Edit = Callable[[dict[str, Any]], object]  # changes the values of a JSON file


def edit_json(path: Path, edit: Edit) -> None:
    """Write a JSON file again with values changed."""
    values = json.loads(path.read_bytes())
    edit(values)
    path.write_text(json.dumps(values), encoding="utf-8")
