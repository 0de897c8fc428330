"""The tables and figures that ``transduce paper`` can make, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from transduce.paper.attention.figure3 import make_figure3
from transduce.paper.attention.figure4 import make_figure4
from transduce.paper.attention.figure5 import make_figure5
from transduce.paper.compatibility import make_compatibility_report
from transduce.paper.curves import make_curves
from transduce.paper.experiments import Experiments
from transduce.paper.figure1 import make_figure1
from transduce.paper.figure2 import make_figure2
from transduce.paper.future import make_future
from transduce.paper.notes import make_notes
from transduce.paper.report import Report
from transduce.paper.request import Request
from transduce.paper.table1 import make_table1
from transduce.paper.table2 import make_table2
from transduce.paper.table3 import make_table3
from transduce.paper.table4 import make_table4

__all__ = ["ARTEFACTS", "ON_REQUEST", "Maker"]

Maker = Callable[[Experiments, Request], Report]

# In the order of the paper.
ARTEFACTS: Mapping[str, Maker] = {
    "table1": make_table1,
    "table2": make_table2,
    "table3": make_table3,
    "table4": make_table4,
    "figure1": make_figure1,
    "figure2": make_figure2,
    "figure3": make_figure3,
    "figure4": make_figure4,
    "figure5": make_figure5,
    "curves": make_curves,
    "compatibility": make_compatibility_report,
    "future": make_future,
    "notes": make_notes,
}

ON_REQUEST = ("future",)  # hours of training: not made by "all"
