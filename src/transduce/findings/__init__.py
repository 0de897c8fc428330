"""What is found in text: parallel lines, trees, documents, rankings, images and audio. Imports no torch.

Each function yields a ``Finding`` for everything that it checks. A task examines its text with them (``Task.examine``).
"""

from __future__ import annotations

from transduce.findings.finding import Finding, good, guard, note, problem

__all__ = ["Finding", "good", "guard", "note", "problem"]
