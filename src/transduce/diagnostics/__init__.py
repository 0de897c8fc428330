"""Diagnostics of the installation, of corpora, and of the folders that transduce writes.

Each function yields a ``Finding`` for everything that it checks and never raises, however damaged the input is.
Imports torch only where it is needed.
"""

from __future__ import annotations

from transduce.diagnostics.installation import examine_installation
from transduce.diagnostics.recognition import examine
from transduce.findings.finding import Finding

__all__ = ["Finding", "examine", "examine_installation"]
