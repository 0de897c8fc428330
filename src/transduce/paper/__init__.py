"""Reproduction of the paper's tables and figures: its printed numbers beside those we count, measure and train.

Each module makes one ``Report``. ``Experiments`` trains the models that a report needs, or reads their records.
"""

from __future__ import annotations

from transduce.paper.artefacts import ARTEFACTS, ON_REQUEST
from transduce.paper.claims import write_claims
from transduce.paper.experiments import Experiment, Experiments, RunRecord, Scale, Stopped
from transduce.paper.report import Report, Table, write_report
from transduce.paper.request import Request

__all__ = [
    "ARTEFACTS",
    "ON_REQUEST",
    "Experiment",
    "Experiments",
    "Report",
    "Request",
    "RunRecord",
    "Scale",
    "Stopped",
    "Table",
    "write_claims",
    "write_report",
]
