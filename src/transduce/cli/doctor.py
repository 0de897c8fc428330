"""``transduce doctor``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from typer import Argument

from transduce.cli import options
from transduce.cli.output import print_json, print_line

__all__ = ["doctor"]


def doctor(
    what: Annotated[
        list[str] | None,
        Argument(
            metavar="WHAT",
            help="A run, model, prepared, checkpoint or corpus folder, a corpus name, a recipe, a .tsv, .ptb"
            " or .jsonl file, or two text files. Default: the installation.",
            show_default=False,
        ),
    ] = None,
    data: options.Data = None,
    json: options.Json = False,
) -> int:
    """Find problems of the installation, a text, a run or a model.

    Prints a line for each finding, with a remedy. Exits with 1 if there is a problem.

    Examples:
        transduce doctor
        transduce doctor my.en my.de
        transduce doctor runs/my
    """
    from transduce.diagnostics import examine, examine_installation
    from transduce.findings.finding import counted

    findings = []
    for finding in examine(what, data) if what else examine_installation(data):
        findings.append(finding)
        if not json:
            print_line(f"{finding.status:<8}{finding.subject}: {finding.message}")
    n_problems = sum(finding.status == "problem" for finding in findings)
    if json:
        print_json({"findings": list(map(asdict, findings)), "problems": n_problems})
    else:
        print_line(f"{counted(n_problems, 'problem')} found" if n_problems else "no problem found")
    return 1 if n_problems else 0
