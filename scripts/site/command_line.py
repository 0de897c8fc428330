"""The page of the command line: each verb with its help."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from markdown import cell, table

from transduce.cli.topics import TOPICS
from transduce.cli.verbs import GROUPS, make_app

__all__ = ["command_line"]

HEAD = """# Command line

All verbs of `transduce` with their options, as `transduce VERB --help` shows them. `transduce --version` prints the
version.

"""


def command_line() -> str:
    """Return the page."""
    program: Any = typer.main.get_command(make_app())
    parts = [HEAD]
    for group, names in GROUPS.items():
        rows = [(f"[`{name}`](#{name})", cell(_lines(program.commands[name])[0])) for name in names]
        parts.append(f"**{group}**\n\n{table(('verb', 'what it does'), rows)}")
    for name in (name for names in GROUPS.values() for name in names):
        parts += _verb(name, program.commands[name], 2)
    parts.append("## Topics\n\nWhat `transduce help TOPIC` says.\n")
    parts += [f"### Topic: {name}\n\n```\n{text.strip()}\n```\n" for name, text in TOPICS.items()]
    return "\n".join(parts)


def _verb(name: str, verb: Any, level: int) -> Iterator[str]:
    yield f"{'#' * level} {name}\n"
    yield from (f"{cell(line)}\n" for line in _lines(verb))
    if commands := getattr(verb, "commands", None):
        for each, command in commands.items():
            yield from _verb(f"{name} {each}", command, level + 1)
        return
    context = verb.context_class(verb, info_name=f"transduce {name}")
    yield f"```\n{verb.get_usage(context).removeprefix('Usage: ')}\n```\n"
    records = [each.get_help_record(context) for each in verb.params if not getattr(each, "hidden", False)]
    yield table(("option", "what it does"), [(f"`{first}`", cell(what)) for first, what in filter(None, records)])
    if verb.epilog:
        yield f"Examples:\n\n```\n{verb.epilog.strip()}\n```\n"


def _lines(verb: Any) -> list[str]:
    """Return the paragraphs of a help."""
    return [" ".join(each.split()) for each in (verb.help or "").split("\n\n") if each.strip()]
