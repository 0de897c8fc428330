"""Printing: results on stdout, everything else on stderr. Imports no slow modules."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from transduce.patterns import compiled_on_use

if TYPE_CHECKING:
    from transduce.metrics import Parseval
    from transduce.tasks.task import Scores

__all__ = [
    "STANDARD", "echo", "echo_error", "echo_stopped", "is_first_process", "json_line", "print_json", "print_line",
    "print_parseval", "print_scores", "visible",
]  # fmt: skip

STANDARD = Path("-")  # stdin where a file is read, stdout where one is written

PARSEVAL_NAMES = {
    "recall": "labelled recall",
    "precision": "labelled precision",
    "f1": "labelled F1",
    "complete_match": "complete match",
    "average_crossing": "average crossing",
    "no_crossing": "no crossing",
    "two_or_less_crossing": "two or less crossing",
    "tagging_accuracy": "tagging accuracy",
    "valid": "valid sentences",
    "skipped": "skipped sentences",
    "errors": "error sentences",
}


def _rank() -> int:
    """Return this process's rank, as set by torchrun; 0 without it."""
    rank, n = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return int(rank) if rank.isdecimal() and n.isdecimal() and int(n) > 1 else 0


def is_first_process() -> bool:
    """Return whether this is rank 0, the process that prints."""
    return _rank() == 0


# Characters that a terminal interprets or cannot encode: control characters, line separators, bidirectional controls,
# lone surrogates.
_UNPRINTABLE = compiled_on_use("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
MAX_LINE_CHARACTERS, TAIL_CHARACTERS = 2000, 500  # characters


def visible(line: str) -> str:
    """Make a line safe for a terminal: escape unprintable characters, shorten a long line in the middle.

    >>> print(visible("no\\x1b[2J such\\nfile"))
    no\\x1b[2J such\\nfile
    """
    if len(line) > MAX_LINE_CHARACTERS:
        line = f"{line[: MAX_LINE_CHARACTERS - TAIL_CHARACTERS]} ... {line[-TAIL_CHARACTERS:]}"
    return _UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), line)


def echo(line: str) -> None:
    """Print a line on stderr, from rank 0 only."""
    if is_first_process():
        _print_to_stderr(line)


def echo_stopped(updates: int, folder: Path) -> None:
    """Print the last line of an interrupted run: what was saved, and how to resume."""
    what = f"saved after update {updates:,}" if updates else "stopped before there was anything to save"
    echo(f"{what}; resume with: transduce train --resume --out {folder}")


def echo_error(line: str) -> None:
    """Print an error on stderr, from any rank."""
    _print_to_stderr(f"error: {line}" if is_first_process() else f"error in process {_rank()}: {line}")


def _print_to_stderr(line: str) -> None:
    stream: TextIO | None = sys.stderr
    if stream is None:  # print(file=None) would write to stdout
        return
    # The terminal may be gone; a signal handler may have interrupted another print.
    with suppress(OSError, ValueError, RuntimeError):
        print(visible(line), file=stream, flush=True)


def print_line(line: str = "") -> None:
    """Print a line of a result on stdout."""
    print(visible(line))


def json_line(value: Any) -> str:
    """Return JSON on one line, with unprintable characters escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def print_json(value: Any, *, to: TextIO | None = None) -> None:
    """Print JSON on one line of stdout or of another stream."""
    print(json_line(value), file=to, flush=True)


def print_scores(scores: Scores, *, to: TextIO | None = None) -> None:
    """Print each score with its signature, on stdout or on another stream."""
    from transduce.metrics import TranslationScores

    if not isinstance(scores, TranslationScores):
        from transduce.tasks import ParsingScores  # late: it imports torch, which ``transduce score`` does not need

        if isinstance(scores, ParsingScores):
            print_parseval(scores.result)
            return
    for name, entry in scores.as_json().items():
        if isinstance(entry, dict):
            value = f"{entry['score']:6.2f}   {entry['signature']}"
        else:
            value = f"{entry:6,.4f}" if isinstance(entry, float) else f"{entry:6,}"
        print(f"{name:<14} {value}", file=to, flush=True)


def print_parseval(result: Parseval) -> None:
    """Print a table of all figures, over all sentences and over short ones."""
    columns: list[dict[str, Any]] = [asdict(result.all), asdict(result.length_40)]
    print(f"{'':<22}{'all':>10}{'length <= 40':>15}")
    for key, name in PARSEVAL_NAMES.items():
        total, short_total = (_formatted(column[key]) for column in columns)
        print(f"{name:<22}{total:>10}{short_total:>15}")


def _formatted(figure: float | None) -> str:
    if figure is None:
        return "not judged"
    return format(figure, ",d" if isinstance(figure, int) else ".2f")
