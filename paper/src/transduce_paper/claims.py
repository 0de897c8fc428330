"""The page of claims: each sentence of the sources that a report has tested, and what came out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from transduce.files import write_text
from transduce_paper.report import Report, Section, Table, Verdict

__all__ = ["CLAIMS_FILE", "write_claims"]

CLAIMS_FILE = "claims.md"

INTRODUCTION = """\
Sentences of the paper and of the lecture notes about it that can be tested at this size, in the order of the reports.
*Agrees*: what was measured here is as the sentence says. *Does not*: it is otherwise. *Cannot tell*: the difference is
smaller than what another seed makes, or the test decides only a part. Models and texts here are much smaller than the
paper's, so a sentence about its own models is tested in kind, not in its numbers. Each report has the details."""


def write_claims(reports: Mapping[str, Report], folder: Path, *, scale: str) -> Path:
    """Write the claims of some reports, by name, as ``claims.md``; return its path."""
    rows = tuple(
        (f"“{claim.sentence}”", claim.where, claim.verdict, claim.found, f"[{name}]({name}.md)")
        for name, report in reports.items()
        for part in report.parts()
        for claim in part.claims
    )
    counts = Counter(verdict for _, _, verdict, _, _ in rows)
    verdicts: tuple[Verdict, ...] = get_args(Verdict)
    of_each = ", ".join(f"{verdict}: {counts[verdict]}" for verdict in verdicts)
    table = Table("", ("sentence", "where", "verdict", "what came out", "report"), rows)
    command = (
        f"To reproduce: `transduce paper all --scale {scale} --out DIR`; one report alone: `transduce paper NAME`."
    )
    page = Section("Claims of the paper, tested", (INTRODUCTION, command, table), f"{len(rows)} claims; {of_each}.")
    path = folder / CLAIMS_FILE
    write_text(path, page.as_markdown())
    return path
