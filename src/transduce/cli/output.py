"""Printing: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from transduce.metrics import TranslationScores

__all__ = ["is_speaker", "print_json", "print_scores", "say", "say_error"]

_RANK = int(os.environ.get("RANK", "0"))  # which process of a run this is, as torchrun tells


def is_speaker() -> bool:
    """Whether this is the one of several processes of a run that speaks: the first."""
    return _RANK == 0


def say(line: str) -> None:
    """A line for the person at the terminal, on stderr. Of several processes of a run one speaks."""
    if is_speaker():
        print(line, file=sys.stderr, flush=True)


def say_error(line: str) -> None:
    """An error of this process, whichever it is."""
    print(f"error: {line}" if is_speaker() else f"error in process {_RANK}: {line}", file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """One JSON object on one line of stdout."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def print_scores(scores: TranslationScores) -> None:
    """Each score with the settings that produced it."""
    for name, entry in scores.as_json().items():
        if isinstance(entry, dict):
            print(f"{name:<14} {entry['score']:6.2f}   {entry['signature']}")
    print(f"{'sentences':<14} {scores.sentences:6,}", flush=True)
