"""Reproduction of the paper's tables and figures: its printed numbers beside those we count, measure and train.

Each module makes one ``Report``. ``Experiments`` trains the models that a report needs, or reads their records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transduce.imports import imported_on_use

if TYPE_CHECKING:
    from transduce_paper.artefacts import ARTEFACTS, LARGER, ON_REQUEST
    from transduce_paper.claims import write_claims
    from transduce_paper.experiments import Experiments, Scale, Stopped
    from transduce_paper.report import Report, Table, write_report
    from transduce_paper.request import Request
    from transduce_paper.run_records import Experiment, RunRecord

__all__ = [
    "ARTEFACTS", "LARGER", "ON_REQUEST", "Experiment", "Experiments", "Report", "Request", "RunRecord", "Scale",
    "Stopped", "Table", "write_claims", "write_report",
]  # fmt: skip

imported_on_use(__name__)
