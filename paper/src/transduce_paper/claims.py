"""The page of claims: each sentence of the sources that a report has tested, and what came out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from transduce.files import write_text
from transduce_paper.report import Report, Table, Verdict, verdict_line

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
        for claim in report.claims
    )
    counts = Counter(claim.verdict for report in reports.values() for claim in report.claims)
    verdicts: tuple[Verdict, ...] = get_args(Verdict)
    of_each = ", ".join(f"{verdict}: {counts[verdict]}" for verdict in verdicts)
    table = Table("", ("sentence", "where", "verdict", "what came out", "report"), rows)
    command = (
        f"To reproduce: `transduce paper all --scale {scale} --out DIR`; one report alone: `transduce paper NAME`."
    )
    sections = ("# Claims of the paper, tested", verdict_line(f"{len(rows)} claims; {of_each}."), INTRODUCTION, command)
    path = folder / CLAIMS_FILE
    write_text(path, "\n\n".join((*sections, table.as_markdown())) + "\n")
    return path
