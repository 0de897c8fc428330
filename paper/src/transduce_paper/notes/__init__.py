"""Checks of lecture notes on the Transformer: what the notes explain in words, measured.

One module makes each part of the report: ``normalisation``, ``positions``, ``smoothing``, ``adaptive_softmax``,
``recurrence``, ``subwords``, ``language_models``, ``pretraining``, ``alignment``. ``tiny`` has the small model that
most of the first train, ``padded_batch_norm`` a model that also computes on padding; ``softmax_losses`` trains language
models over whole words of real text, once. ``two_level_softmax`` can be used by itself.
"""

from __future__ import annotations

from transduce_paper.experiments import Experiments
from transduce_paper.notes.adaptive_softmax import make_adaptive_softmax
from transduce_paper.notes.alignment import make_alignment
from transduce_paper.notes.language_models import make_language_models
from transduce_paper.notes.normalisation import make_normalisation
from transduce_paper.notes.positions import make_positions
from transduce_paper.notes.pretraining import make_pretraining
from transduce_paper.notes.recurrence import make_recurrence
from transduce_paper.notes.smoothing import make_smoothing
from transduce_paper.notes.subwords import make_subwords
from transduce_paper.report import Report, how_to_reproduce, sentence
from transduce_paper.request import Request

__all__ = ["make_notes"]

INTRODUCTION = """\
This report checks lecture notes on the Transformer and later models, which are a source of this project. The
notes explain six choices that the paper makes or could have made, and then the language models that followed it. Each
part below checks one of these; what came out stands beside the question:

{checks}

The models of batch and layer norm, of the positional encodings and most of those on recurrent networks are trained in
seconds: their numbers show an effect, not its size in a large model. Where records do not tell whether runs are trained
to the end, their differences decide nothing ([what counts](README.md#how-to-run-it-again))."""


MAKERS = (
    make_normalisation, make_positions, make_smoothing, make_adaptive_softmax, make_recurrence, make_subwords,
    make_language_models, make_pretraining, make_alignment,
)  # fmt: skip


def make_notes(experiments: Experiments, request: Request) -> Report:
    """Make all parts; runs of more than seconds are trained or read from their records."""
    parts = tuple(make(experiments) for make in MAKERS)
    return Report(
        "Checks of the lecture notes",
        (
            INTRODUCTION.format(
                checks="\n".join(f"- {part.title}: {part.question} {sentence(part.summary)}" for part in parts)
            ),
            how_to_reproduce(
                "notes", scale=experiments.scale, seeds="seed 1", hardware="hardware beside the times below"
            ),
            *parts,
        ),
        name="notes",
    )
