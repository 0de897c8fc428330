"""The records that runs write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TIMED = ("elapsed_s", "tgt_tokens_per_s")


def records(folder: Path, kind: str | None = None) -> list[dict[str, Any]]:
    """The records of a run folder, or those of a kind, without times and rates."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    found = [record for record in map(json.loads, lines) if kind in (None, record["kind"])]
    return [{name: value for name, value in record.items() if name not in TIMED} for record in found]
