"""The page of claims: each sentence of the sources that a report has tested, and what came out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

from transduce.files import write_text
from transduce_paper.report import Claim, Kind, Report, Section, Table, Verdict

__all__ = ["CLAIMS_FILE", "write_claims"]

CLAIMS_FILE = "claims.md"
KINDS: tuple[Kind, ...] = get_args(Kind)
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

INTRODUCTION = """\
Sentences of the paper and of the lecture notes about it, in the order of the reports; those without quotation marks are
put in our words. *Agrees*: what came out is as the
sentence says. *Does not*: it is otherwise. *Cannot tell*: the difference is smaller than what another seed makes, or
the test decides only a part. *Not trained to the end*: the models behind it had not converged, or were validated too
rarely to know, so there is no verdict.

Only what is *measured* could have come out otherwise. *Arithmetic* is done on numbers that the paper prints, *algebra*
on its formulas; *by construction*, a model or trainer is built so, and was seen to do what it is built for. Models and
texts here are much smaller than the paper's: a sentence about its own models is tested in kind, not in its numbers."""


def write_claims(reports: Mapping[str, Report], folder: Path, *, scale: str) -> Path:
    """Write the claims of some reports, by name, as ``claims.md``; return its path.

    A sentence in several reports counts in the first.
    """
    first: dict[tuple[str, str], tuple[Claim, str]] = {}
    for name, report in reports.items():
        for claim in (claim for part in report.parts() for claim in part.claims):
            first.setdefault((claim.sentence, claim.where), (claim, name))
    claims = list(first.values())
    rows = tuple(
        (
            f"“{claim.sentence}”" if claim.is_quoted else claim.sentence,
            claim.where,
            claim.kind,
            claim.verdict,
            claim.found,
            f"[{name}]({name}.md)",
        )
        for claim, name in claims
    )
    of_kinds = "; ".join(_counted(kind, [claim.verdict for claim, _ in claims if claim.kind == kind]) for kind in KINDS)
    table = Table("", ("sentence", "where", "kind", "verdict", "what came out", "report"), rows)
    command = (
        f"To reproduce: `transduce paper all --scale {scale} --out DIR`; one report alone: `transduce paper NAME`."
    )
    page = Section(
        "Claims of the paper, tested",
        (INTRODUCTION, command, table),
        f"{len(rows)} claims. {of_kinds[0].upper()}{of_kinds[1:]}.",
    )
    path = folder / CLAIMS_FILE
    write_text(path, page.as_markdown())
    return path


def _counted(kind: Kind, verdicts: Sequence[Verdict]) -> str:
    """Count the verdicts on claims of one kind.

    >>> _counted("algebra", ["agrees", "does not", "agrees"])
    'algebra: 2 agrees, 1 does not'
    """
    counts = Counter(verdicts)
    return f"{kind}: {', '.join(f'{counts[each]} {each}' for each in VERDICTS if counts[each]) or 'none'}"
