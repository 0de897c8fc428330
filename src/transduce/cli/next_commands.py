"""The commands that come next, printed when a verb is done."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

__all__ = ["uses_of"]


def uses_of(model: Path, direction: str, memories: Sequence[Path] = (), *, first: str = "next") -> list[str]:
    """Return how a translator is used on files, with a memory and terms; ``memories`` are files to build one of."""
    src, _, tgt = direction.partition("-")
    files = list(map(str, memories)) or ["OLD.tmx"]
    built = Path(files[0]).with_suffix(".tm")
    build = shlex.join(["transduce", "memory", "build", *files, "--src", src, "--tgt", tgt, "--out", str(built)])
    translate = shlex.join(["transduce", "translate", str(model), "--in", "FILES", "--out", "NEW"])
    return [
        f"{first}: {translate}  (docx, html, po, ...: docs/documents.md)",
        f"      with --memory {shlex.quote(str(built))}, after: {build}",
        "      with --terms TERMS.tsv: your terms, source TAB target",
    ]
