"""The results of the fuzzer: a table of counts, and the failures by kind."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from fuzzing.lanes import Played

__all__ = ["as_markdown", "as_table", "kind_of"]

MOST_NAMES = 4
FAULTS = "failures"
WHERE = re.compile(r"^where: (transduce/\S+?):(\d+) (\S+)$", re.MULTILINE)  # the innermost first
ERROR = re.compile(r"^[\w.]+(?:Error|Exception|Panic\w*|Interrupt|Warning)\b(?::.*)?$", re.MULTILINE)
FRAME = re.compile(r'File "[^"]*?/(transduce/[^"]+)", line (\d+)(?:,)? in (\w+)')


def as_table(played: Sequence[Played], *, seconds: float) -> str:
    """Return a Markdown table of cases by format and outcome."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    spent: Counter[str] = Counter()
    for each in played:
        counts[each.name.partition("/")[0]][each.outcome or FAULTS] += 1
        spent[each.name.partition("/")[0]] += each.seconds
    outcomes = [*sorted({outcome for row in counts.values() for outcome in row} - {FAULTS}), FAULTS]
    lines = ["| format | cases | " + " | ".join(outcomes) + " | CPU s |"]
    lines.append("| --- |" + " ---: |" * (len(outcomes) + 2))
    for name, row in counts.items():
        cells = " | ".join(f"{row[outcome]:,}" if row[outcome] else "" for outcome in outcomes)
        lines.append(f"| {name} | {row.total():,} | {cells} | {spent[name]:,.0f} |")
    n_faults = sum(row[FAULTS] for row in counts.values())
    lines.append(f"{len(played):,} cases in {seconds:,.0f} s; {n_faults:,} failures")
    return "\n".join(lines)


def _frames_of(each: Played) -> list[tuple[str, str, str]]:
    """Return the frames of a failure in transduce (file, line, function), innermost first, as for a hang."""
    return WHERE.findall(each.detail) or FRAME.findall(each.detail)


def kind_of(each: Played) -> str:
    """Return the key that groups similar failures: the kind, and the location in transduce."""
    frames = _frames_of(each)
    errors = [line.partition(":")[0] for line in ERROR.findall(each.detail)]
    where = f" at {frames[0][0]} {frames[0][2]}" if frames else f" ({each.name.partition('#')[0].split('/')[0]})"
    return each.fault + (f": {errors[-1]}" if errors else "") + where


def as_markdown(played: Sequence[Played]) -> str:
    """Return the failures by kind as Markdown, the most frequent first."""
    kinds: dict[str, list[Played]] = defaultdict(list)
    for each in played:
        if each.outcome is None:
            kinds[kind_of(each)].append(each)
    parts = [f"# {sum(map(len, kinds.values()))} failures of {len(kinds)} kinds in {len(played)} cases\n"]
    for kind, members in sorted(kinds.items(), key=lambda item: -len(item[1])):
        first = members[0]
        frames = _frames_of(first)
        last = [*first.detail.strip().splitlines()[-1:], *ERROR.findall(first.detail), ""][
            -1 if first.detail == "" else -2
        ]
        parts.append(f"## {len(members)}x {kind}\n")
        parts.append("".join(f"- `{each.name}`\n" for each in members[:MOST_NAMES]))
        parts.append(f"- command: `{first.command[:400]}`\n- last line: `{last[:600]}`\n")
        if frames:
            parts.append(
                "- where: " + " < ".join(f"{name}:{line} {function}" for name, line, function in frames[:3]) + "\n"
            )
    return "\n".join(parts)
