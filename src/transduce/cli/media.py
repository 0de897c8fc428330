"""What ``transduce read`` and ``transduce transcribe`` share: files in, text out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.cli.models import requested_search
from transduce.cli.output import STANDARD, print_json
from transduce.cli.paths import require_writable

if TYPE_CHECKING:
    from transduce.tasks import MediaModel

__all__ = ["print_texts"]


def print_texts(
    model: MediaModel,
    files: Sequence[Path],
    *,
    n_best: int | None,
    beam: int | None,
    alpha: float | None,
    sample_seed: int | None,
    json: bool,
) -> None:
    """Print the text of each file: a line, an n-best list (number TAB score TAB text), or a JSON object."""
    require_writable("stdout", STANDARD)
    search = requested_search(model.search, n_best=n_best, beam=beam, alpha=alpha, sample_seed=sample_seed)
    for number, found in enumerate(model.find_texts(files, n_best=search.n_best, search=search), start=1):
        if json:
            best = [{"text": each.text, "score": each.score} for each in found.n_best]
            print_json({"file": found.source, "text": found.text, "score": found.score, "n_best": best})
        elif n_best is not None:
            for each in found.n_best:
                print(f"{number}\t{each.score:.4f}\t{each.text}")
        else:
            print(found.text)
        sys.stdout.flush()
