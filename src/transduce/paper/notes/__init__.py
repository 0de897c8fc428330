"""The experiments of a set of lecture notes about the paper: what they explain in words, measured.

One module makes each chapter of the report: ``normalisation``, ``positions``, ``smoothing``, ``adaptive_softmax``,
``subwords``. ``tiny`` has the small model that most of them train, ``padded_batch_norm`` the one that layers without
padding cannot make, ``calibration`` and ``two_level_softmax`` what can be used by itself.
"""

from __future__ import annotations

from transduce.paper.experiments import Experiments
from transduce.paper.notes.adaptive_softmax import make_adaptive_softmax
from transduce.paper.notes.normalisation import make_normalisation
from transduce.paper.notes.positions import make_positions
from transduce.paper.notes.smoothing import make_smoothing
from transduce.paper.notes.subwords import make_subwords
from transduce.paper.report import Report
from transduce.paper.request import Request

__all__ = ["make_notes"]

INTRODUCTION = """\
Lecture notes on language models go through the paper and explain, beside it, five choices that it makes or could have
made. Each is an experiment here. All but the three runs of label smoothing train models of seconds, whose numbers show
what happens and not how much of it a large model would show."""


def make_notes(experiments: Experiments, request: Request) -> Report:
    """All five; the experiments trains, or finds, the three runs of label smoothing."""
    is_short = request.is_short
    smoothing = make_smoothing(experiments, is_short=is_short)  # first, since it may be stopped
    parts = (
        make_normalisation(is_short=is_short),
        make_positions(is_short=is_short),
        smoothing,
        make_adaptive_softmax(is_short=is_short),
        make_subwords(is_short=is_short),
    )
    return Report(
        "notes",
        "The lecture notes' own experiments",
        (INTRODUCTION, *(section for part in parts for section in part.sections)),
        {name: draw for part in parts for name, draw in part.drawings.items()},
    )
