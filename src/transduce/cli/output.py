"""Printing: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from typing import Any

from transduce.metrics import TranslationScores

__all__ = ["print_json", "print_scores", "say"]


def say(line: str) -> None:
    """A line for the person at the terminal, on stderr."""
    print(line, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """One JSON object on one line of stdout."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def print_scores(scores: TranslationScores) -> None:
    """Each score with the settings that produced it."""
    for name, entry in scores.as_json().items():
        if isinstance(entry, dict):
            print(f"{name:<14} {entry['score']:6.2f}   {entry['signature']}")
    print(f"{'sentences':<14} {scores.sentences:6,}", flush=True)
