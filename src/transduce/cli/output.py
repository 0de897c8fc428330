"""Printing: results on stdout, everything else on stderr."""

from __future__ import annotations

import errno
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from transduce.errors import ConfigError
from transduce.files import made_folder
from transduce.metrics import Parseval, TranslationScores

if TYPE_CHECKING:
    from transduce.tasks import ParsingScores

__all__ = [
    "STANDARD",
    "is_speaker",
    "json_line",
    "print_json",
    "print_parseval",
    "print_scores",
    "require_writable",
    "say",
    "say_error",
    "say_stopped",
]

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


def _rank_of_run() -> int:
    """Which process of a run this is, as torchrun tells."""
    rank, n = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return int(rank) if rank.isdecimal() and n.isdecimal() and int(n) > 1 else 0


_RANK = _rank_of_run()


def is_speaker() -> bool:
    """Whether this is the one of several processes of a run that speaks: the first."""
    return _RANK == 0


def say(line: str) -> None:
    """A line for the person at the terminal, on stderr. Of several processes of a run one speaks."""
    if is_speaker():
        print(line, file=sys.stderr, flush=True)


def say_stopped(updates: int, folder: Path) -> None:
    """What a run that was stopped says last."""
    what = f"saved after update {updates:,}" if updates else "stopped before there was anything to save"
    say(f"{what}; go on with: transduce train --resume --out {folder}")


def say_error(line: str) -> None:
    """An error of this process, whichever it is."""
    print(f"error: {line}" if is_speaker() else f"error in process {_RANK}: {line}", file=sys.stderr, flush=True)


def require_writable(option: str, path: Path) -> None:
    """Raises ConfigError if the file of an option cannot be written, before there is anything to write."""
    if path == STANDARD:
        return
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if path.is_file() or not path.exists():  # else it is a pipe or a device, which is there already
            folder = path.resolve().parent
            with made_folder(folder):
                tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise ConfigError(f"{option} {path} cannot be written: {error.strerror}") from error


def json_line(value: Any) -> str:
    """JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def print_json(value: Any, *, to: TextIO | None = None) -> None:
    """One JSON object on one line of stdout, or of another stream."""
    print(json_line(value), file=to, flush=True)


def print_scores(scores: TranslationScores | ParsingScores, *, to: TextIO | None = None) -> None:
    """Each score with the settings that produced it, on stdout, or on another stream."""
    if not isinstance(scores, TranslationScores):
        print_parseval(scores.result)
        return
    for name, entry in scores.as_json().items():
        if isinstance(entry, dict):
            print(f"{name:<14} {entry['score']:6.2f}   {entry['signature']}", file=to)
    print(f"{'sentences':<14} {scores.sentences:6,}", file=to, flush=True)


def print_parseval(result: Parseval) -> None:
    """All figures, over all sentences and over short ones."""
    columns: list[dict[str, Any]] = [asdict(result.all), asdict(result.length_40)]
    print(f"{'':<22}{'all':>10}{'length <= 40':>15}")
    for key, name in PARSEVAL_NAMES.items():
        all_told, short_told = (_shown(column[key]) for column in columns)
        print(f"{name:<22}{all_told:>10}{short_told:>15}")


def _shown(figure: float | None) -> str:
    if figure is None:
        return "not judged"
    return format(figure, ",d" if isinstance(figure, int) else ".2f")
