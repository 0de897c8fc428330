"""The commands that come next, printed when a verb is done."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

__all__ = ["uses_of"]


def uses_of(model: Path, memories: Sequence[Path] = (), *, first: str = "next") -> list[str]:
    """Return how a translator is used on files, with a memory and terms; ``memories`` are files of translations."""
    translate = shlex.join(["transduce", "translate", str(model), "--in", "FILES", "--out", "NEW"])
    memory = shlex.quote(str(memories[0])) if memories else "OLD.tmx"
    return [
        f"{first}: {translate}  (docx, html, po, ...: docs/documents.md)",
        f"      with --memory {memory}: your translations; opened at once if transduce memory build has read them",
        "      with --terms TERMS.tsv: your terms, source TAB target",
    ]
