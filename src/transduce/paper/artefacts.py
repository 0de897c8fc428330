"""What ``transduce paper`` can make, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from transduce.paper.laboratory import Laboratory
from transduce.paper.report import Report
from transduce.paper.request import Request
from transduce.paper.table2 import make_table2
from transduce.paper.table3 import make_table3

__all__ = ["ARTEFACTS", "Maker"]

Maker = Callable[[Laboratory, Request], Report]

# In the order of the paper.
ARTEFACTS: Mapping[str, Maker] = {
    "table2": make_table2,
    "table3": make_table3,
}
