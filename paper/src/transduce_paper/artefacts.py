"""The tables and figures that ``transduce paper`` can make, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from transduce.errors import ConfigError
from transduce_paper import future, table2, table3, table4
from transduce_paper.attention.figure3 import make_figure3
from transduce_paper.attention.figure4 import make_figure4
from transduce_paper.attention.figure5 import make_figure5
from transduce_paper.compatibility import make_compatibility_report
from transduce_paper.curves import make_curves
from transduce_paper.experiments import Experiments, Scale
from transduce_paper.figure1 import make_figure1
from transduce_paper.figure2 import make_figure2
from transduce_paper.future import make_future
from transduce_paper.notes import make_notes
from transduce_paper.report import Report
from transduce_paper.request import Request
from transduce_paper.table1 import make_table1
from transduce_paper.table2 import make_table2
from transduce_paper.table3 import make_table3
from transduce_paper.table4 import make_table4

__all__ = ["ARTEFACTS", "LARGER", "ON_REQUEST", "Larger", "Maker"]

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

# Hours of training: not made by "all", which takes their claims once they are recorded.
ON_REQUEST: Mapping[str, Callable[[Experiments], bool]] = {"future": future.is_recorded}


@dataclass(frozen=True, slots=True)
class Larger:
    """The scales of larger models whose report, as far as it is recorded, tests the claims in place of the small one's.

    ``recorded`` returns the request for what is recorded: ``Request()`` for all, None for nothing.
    """

    scales: tuple[Scale, ...]  # the longer trained first
    recorded: Callable[[Experiments], Request | None]

    def require_recorded(self, name: str, experiments: Experiments) -> Request:
        """Return the request for what is recorded. Raises ConfigError if that is too little for a report."""
        request = self.recorded(experiments)
        if request is None:
            raise ConfigError(
                f"{experiments.records / experiments.scale} has too few records for a report of {name}: it needs"
                " the first seeds of the Transformer and another system of table2, of base and another row of"
                " table3, or all of table4; without --recorded they are trained"
            )
        return request


LARGER: Mapping[str, Larger] = {
    "table2": Larger(("hours",), table2.recorded),
    "table3": Larger(("hours", "gpu"), table3.recorded),
    "table4": Larger(("hours",), lambda experiments: Request() if table4.is_recorded(experiments) else None),
}
