"""Printing: results on stdout, everything else on stderr. Imports nothing that takes time."""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from transduce.metrics import Parseval
    from transduce.tasks.task import Scores

__all__ = [
    "STANDARD",
    "echo",
    "echo_error",
    "echo_stopped",
    "is_first_process",
    "json_line",
    "print_json",
    "print_line",
    "print_parseval",
    "print_scores",
    "visible",
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
    """Which process of a run this is, as torchrun tells."""
    rank, n = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return int(rank) if rank.isdecimal() and n.isdecimal() and int(n) > 1 else 0


def is_first_process() -> bool:
    """Whether this is the one of several processes of a run that speaks: the first."""
    return _rank() == 0


# What a terminal obeys instead of showing it, or cannot be sent: controls, ends of lines, directions of writing, and
# halves of characters.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
MAX_LINE_CHARACTERS, TAIL_CHARACTERS = 2000, 500  # characters


def visible(line: str) -> str:
    """A line as it may stand on a terminal, whatever files and arguments have put into it; a long one is cut inside.

    >>> print(visible("no\\x1b[2J such\\nfile"))
    no\\x1b[2J such\\nfile
    """
    if len(line) > MAX_LINE_CHARACTERS:
        line = f"{line[: MAX_LINE_CHARACTERS - TAIL_CHARACTERS]} ... {line[-TAIL_CHARACTERS:]}"
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), line)


def echo(line: str) -> None:
    """A line for the person at the terminal, on stderr. Of several processes of a run one speaks."""
    if is_first_process():
        _print_to_stderr(line)


def echo_stopped(updates: int, folder: Path) -> None:
    """What a run that was stopped says last."""
    what = f"saved after update {updates:,}" if updates else "stopped before there was anything to save"
    echo(f"{what}; go on with: transduce train --resume --out {folder}")


def echo_error(line: str) -> None:
    """An error of this process, whichever it is."""
    _print_to_stderr(f"error: {line}" if is_first_process() else f"error in process {_rank()}: {line}")


def _print_to_stderr(line: str) -> None:
    stream: TextIO | None = sys.stderr
    if stream is None:  # else print would take stdout
        return
    # The terminal may be gone; a signal may have come within another line.
    with suppress(OSError, ValueError, RuntimeError):
        print(visible(line), file=stream, flush=True)


def print_line(line: str = "") -> None:
    """A line of a result for people, on stdout."""
    print(visible(line))


def json_line(value: Any) -> str:
    """JSON on one line, and text for any terminal: what is not to be seen is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def print_json(value: Any, *, to: TextIO | None = None) -> None:
    """One JSON object on one line of stdout, or of another stream."""
    print(json_line(value), file=to, flush=True)


def print_scores(scores: Scores, *, to: TextIO | None = None) -> None:
    """Each score with the settings that produced it, on stdout, or on another stream."""
    from transduce.metrics import TranslationScores

    if not isinstance(scores, TranslationScores):
        from transduce.tasks import ParsingScores  # late: it loads torch, which translations are scored without

        if isinstance(scores, ParsingScores):
            print_parseval(scores.result)
            return
    for name, entry in scores.as_json().items():
        told = f"{entry['score']:6.2f}   {entry['signature']}" if isinstance(entry, dict) else f"{entry:6,}"
        print(f"{name:<14} {told}", file=to, flush=True)


def print_parseval(result: Parseval) -> None:
    """All figures, over all sentences and over short ones."""
    columns: list[dict[str, Any]] = [asdict(result.all), asdict(result.length_40)]
    print(f"{'':<22}{'all':>10}{'length <= 40':>15}")
    for key, name in PARSEVAL_NAMES.items():
        all_told, short_told = (_formatted(column[key]) for column in columns)
        print(f"{name:<22}{all_told:>10}{short_told:>15}")


def _formatted(figure: float | None) -> str:
    if figure is None:
        return "not judged"
    return format(figure, ",d" if isinstance(figure, int) else ".2f")
