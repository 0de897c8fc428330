"""The manual page of ``transduce``, made of the help of all verbs: ``python -m transduce.cli.manual > transduce.1``.

SOURCE_DATE_EPOCH is its date in seconds, as for other builds that are to be reproduced; by default today.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from typer.main import get_command

from transduce.cli.help_text import panels_of, usage_pieces
from transduce.cli.topics import TOPICS
from transduce.cli.verbs import GROUPS, HELP, make_app

__all__ = ["manual_page"]


def manual_page() -> str:
    """Return the manual page, in the macros ``man`` of troff."""
    verbs = get_command(make_app()).commands  # type: ignore[attr-defined]
    day = time.strftime("%Y-%m-%d", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))
    lines = [
        f'.TH TRANSDUCE 1 "{day}" "transduce {version("transduce")}"', ".SH NAME", rf"transduce \- {_text(HELP)}",
        ".SH SYNOPSIS", r".B transduce", r".I VERB ...", ".SH DESCRIPTION",
        "The verbs and their options, then what concerns several of them.",
    ]  # fmt: skip
    for group, names in GROUPS.items():
        lines.append(f'.SH "{group.upper()}"')
        for name in names:
            for words, verb in _leaves(name, verbs[name]):
                lines += _section(words, verb)
    for name, text in TOPICS.items():
        lines += [f'.SH "{name.upper()}"', ".nf", *map(_text, text.rstrip().splitlines()), ".fi"]
    return "\n".join(lines) + "\n"


def _leaves(words: str, verb: Any) -> Iterator[tuple[str, Any]]:
    """Yield a verb, or those of its group."""
    for name, each in getattr(verb, "commands", {"": verb}).items():
        yield f"{words} {name}".strip(), each


def _section(words: str, verb: Any) -> Iterator[str]:
    ctx = verb.context_class(verb, info_name=words)
    parameters = verb.get_params(ctx)
    yield f'.SS "{_text(words)}"'
    yield rf"\fBtransduce {_text(words)}\fR {_text(' '.join(usage_pieces(parameters, ctx)))}"
    for paragraph in verb.help.split("\n\n"):
        yield from (".PP", _text(" ".join(paragraph.split())))
    yield from (".PP", ".nf", *(f"  {_text(line)}" for line in verb.epilog.splitlines()), ".fi")
    for rows in panels_of(ctx, parameters).values():
        for name, meaning in rows:
            yield from (".TP", rf"\fB{_text(name)}\fR", _text(" ".join(meaning.split())))


def _text(line: str) -> str:
    """Escape what troff would take for a request or a special character."""
    escaped = line.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga")
    return rf"\&{escaped}" if escaped.startswith(".") else escaped


if __name__ == "__main__":
    print(manual_page(), end="")
