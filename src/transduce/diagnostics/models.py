"""Diagnostics of model folders."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from transduce.findings.finding import Finding, good, guard, note
from transduce.inference import Parser, Translator
from transduce.inference.engines import reason_against
from transduce.inference.folder import CARD_FILE, read_model_folder
from transduce.inference.native.binding import kernels
from transduce.inference.trained_model import TrainedModel
from transduce.model.cost import cost_of

__all__ = ["examine_model"]

# Short test inputs; the output is shown, not evaluated.
SENTENCES = {"en": "A dog sleeps.", "de": "Ein Hund schläft.", "fr": "Un chien dort."}
ANY_LANGUAGE = "1, 2, 3."


def examine_model(folder: Path) -> Iterator[Finding]:
    """Examine a model folder: its files, its weights, and the output for a short sentence."""
    read = read_model_folder(folder, device="cpu")
    config = read.config
    yield good(
        folder,
        f"a model folder: {read.direction}, {config.layers_in_words()} of width {config.d_model},"
        f" {cost_of(config).parameters:,} parameters",
    )
    if not (folder / CARD_FILE).is_file():
        yield note(folder, f"no model card ({CARD_FILE}): its training data is not documented")
    reason = reason_against("native", read.stored)
    if reason is None:
        yield good(folder, f"on a CPU it is run by the engine in C, with kernels for {kernels()}")
    else:
        yield good(folder, f"it is run by PyTorch; not by the engine in C: {reason}")
    if TrainedModel.class_of(read.used_as, read.task) is not None:
        yield from guard(folder, _examine_output(folder, TrainedModel.class_for(read).from_folder(read)))


def _examine_output(folder: Path, model: TrainedModel) -> Iterator[Finding]:
    """Show what a translator or a parser makes of a short sentence."""
    start = time.perf_counter()
    match model:
        case Translator(src_language=language):
            sentence, verb = SENTENCES.get(language, ANY_LANGUAGE), "translates"
            output = model.translate([sentence])[0]
        case Parser():
            sentence, verb = SENTENCES["en"], "parses"
            output = str(model.parse([sentence])[0])
        case _:
            return
    if output:
        yield good(folder, f"it {verb} {sentence!r} as {output!r} in {time.perf_counter() - start:.2f} s")
    else:
        yield note(folder, f"its translation of {sentence!r} is empty: was it trained long enough?")
