"""The paper, table by table and figure by figure: what it prints beside what we compute, measure and train.

Each module makes one ``Report``; those that need trained models ask the ``Laboratory`` for them.
"""

from __future__ import annotations

from transduce.paper.artefacts import ARTEFACTS
from transduce.paper.laboratory import Experiment, Laboratory, RunRecord, Scale, Stopped
from transduce.paper.report import Report, Table, write_report
from transduce.paper.request import Request

__all__ = [
    "ARTEFACTS",
    "Experiment",
    "Laboratory",
    "Report",
    "Request",
    "RunRecord",
    "Scale",
    "Stopped",
    "Table",
    "write_report",
]
