"""What is wrong, in words: the installation, corpora line by line, and the folders that transduce writes.

Each function yields a ``Finding`` for each thing that it looked at, and raises nothing, however broken that is.
Imports torch only where it is looked at, or needed to look.
"""

from __future__ import annotations

from transduce.diagnostics.finding import Finding
from transduce.diagnostics.installation import examine_installation
from transduce.diagnostics.recognition import examine

__all__ = ["Finding", "examine", "examine_installation"]
