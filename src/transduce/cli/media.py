"""What ``transduce read`` and ``transduce transcribe`` share: files in, text out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.cli.machine import chosen_device
from transduce.cli.model_folders import require_model_folders
from transduce.cli.output import STANDARD, echo, echo_error, print_json
from transduce.cli.paths import require_writable
from transduce.config.decoding import DecodingOptions, EngineName
from transduce.inference.devices import usable_precision

if TYPE_CHECKING:
    from transduce.inference import MediaModel

__all__ = ["N_BEST_OF_FILES", "print_texts"]

N_BEST_OF_FILES = "Print n-best lists: number TAB score TAB text."


def print_texts(
    kind: type[MediaModel],
    folder: Path,
    files: Sequence[Path],
    decoding: DecodingOptions,
    *,
    device: str,
    precision: str,
    engine: EngineName,
    json: bool,
) -> int:
    """Print the text of each file: a line, an n-best list (number TAB score TAB text), or a JSON object.

    A file that cannot be used has an empty line, or its error in the object. Returns the exit code: 1 if there was one.
    """
    require_model_folders(folder)
    device = chosen_device(device)
    model = kind.load(folder, device=device, precision=usable_precision(precision, device), engine=engine)
    require_writable("stdout", STANDARD)
    search = decoding.applied_to(model.search)
    code = 0
    texts = model.find_texts(files, n_best=search.n_best, search=search, keep_going=True)
    for number, found in enumerate(texts, start=1):
        for warning in found.warnings:
            echo(f"warning: {warning}")
        if found.error is not None:
            echo_error(found.error)
            code = 1
        if json and found.error is not None:
            print_json({"file": found.source, "error": found.error, "warnings": list(found.warnings)})
        elif json:
            best = [{"text": each.text, "score": each.score} for each in found.n_best]
            values = {"file": found.source, "text": found.text, "score": found.score, "n_best": best}
            print_json(values | {"warnings": list(found.warnings)})
        elif "n_best" in decoding.changes:
            for each in found.n_best:
                print(f"{number}\t{each.score:.4f}\t{each.text}")
        else:
            print(found.text)
        sys.stdout.flush()
    return code
