"""The paper, table by table and figure by figure: what it prints beside what we compute, measure and train.

Each module makes one ``Report``; those that need trained models ask the ``Experiments`` for them.
"""

from __future__ import annotations

from transduce.paper.artefacts import ARTEFACTS
from transduce.paper.experiments import Experiment, Experiments, RunRecord, Scale, Stopped
from transduce.paper.report import Report, Table, write_report
from transduce.paper.request import Request

__all__ = [
    "ARTEFACTS",
    "Experiment",
    "Experiments",
    "Report",
    "Request",
    "RunRecord",
    "Scale",
    "Stopped",
    "Table",
    "write_report",
]
