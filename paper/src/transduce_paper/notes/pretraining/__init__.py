"""What pre-training is worth: for translation and parsing, by layers, and what fine-tuning takes away.

One module for each question.
"""

from __future__ import annotations

from transduce_paper.experiments import Experiments
from transduce_paper.notes.pretraining.forgetting import study_forgetting
from transduce_paper.notes.pretraining.parsing import study_parsing
from transduce_paper.notes.pretraining.probe import study_probe
from transduce_paper.notes.pretraining.translation import study_translation
from transduce_paper.report import Section, sentence

__all__ = ["make_pretraining"]

INTRODUCTION = """\
The notes say that supervised training happens on top of a base model, which has learnt from text alone. What does it
bring for the tasks of this project, with models and texts of its size?"""


def make_pretraining(experiments: Experiments) -> Section:
    """Make the chapter; its models are trained or read from their records."""
    studies = [study(experiments) for study in (study_translation, study_parsing, study_probe, study_forgetting)]
    summaries = [study.summary for study in studies]
    return Section(
        "What pre-training is worth",
        (INTRODUCTION, *studies),
        finding=sentence("; ".join(summaries)),
        question=(
            "how much do a translator and a parser gain from text without labels, what do the layers know, and what is"
            " forgotten?"
        ),
        summary=summaries[0],
    )
