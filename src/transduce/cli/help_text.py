"""The text of ``--help``: plain lines for a terminal of 80 columns. Rich, which takes longer to import, is left out.

The docstring of a verb is a line for the overview, paragraphs, and the lines below "Examples:". Options with a
``rich_help_panel`` come below the others, those of each panel together.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from typer import Exit, echo, style
from typer.core import TyperArgument, TyperGroup, TyperOption

__all__ = ["VerbGroup", "panels_of", "parts_of", "usage_pieces", "write_examples", "write_parameters"]

EXAMPLES = "Examples:\n"
SUMMARY_WIDTH = 64  # of the line that describes a verb
MAX_NAME_WIDTH = 24  # of an option with its value; the help of a longer one begins on the next line
FEW_OPTIONS = 12  # are printed as one list
TYPES = {"path": "PATH", "list[Path]": "PATH", "str": "TEXT", "list[str]": "TEXT"}


class VerbGroup(TyperGroup):
    """A group of verbs, each described in a line. Without a verb, its help is printed, and the exit code is 2."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before the verb."""
        if not args and not ctx.resilient_parsing:
            echo(ctx.get_help())
            raise Exit(2)
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the name of the group."""
        return ["VERB", "..."]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the verbs, then the options."""
        self.write_verbs(formatter, {"Verbs": tuple(self.commands)})
        write_parameters(ctx, formatter, self.get_params(ctx))

    def write_verbs(self, formatter: Any, groups: Mapping[str, Sequence[str]]) -> None:
        """Write the verbs of the group, by headings."""
        n_characters = max(map(len, self.commands))
        for heading, names in groups.items():
            named = [(name.ljust(n_characters), self.commands[name]) for name in names]
            write_list(formatter, heading, ((name, verb.get_short_help_str(SUMMARY_WIDTH)) for name, verb in named))


def parts_of(help: str | None) -> tuple[str, list[str]]:
    """Return the description in the help of a verb, and its examples, which are command lines.

    >>> parts_of("Count words.\\n\\nExamples:\\n    transduce count my.txt\\n")
    ('Count words.', ['transduce count my.txt'])
    """
    description, _, examples = inspect.cleandoc(help or "").partition(EXAMPLES)
    return description.strip(), [line.strip() for line in examples.splitlines() if line.strip()]


def usage_pieces(parameters: Iterable[Any], ctx: Any) -> list[str]:
    """Return what follows the name of a verb in the line of its usage."""
    pieces, has_options = [], False
    for each in parameters:
        if isinstance(each, TyperArgument):
            name = each.display_name_raw + "..." * (each.nargs != 1)
            pieces.append(name if each.required else f"[{name}]")
        elif each.required:
            pieces.append(_name_of(each, ctx))
        else:
            has_options = True
    return [*pieces, *(["[OPTIONS]"] if has_options else [])]


def write_examples(formatter: Any, examples: str | None) -> None:
    """Write command lines, each on a line of its own."""
    if examples:
        with formatter.section(_bold("Examples")):
            formatter.write("".join(f"  {line}\n" for line in examples.splitlines()))


def write_parameters(ctx: Any, formatter: Any, parameters: Sequence[Any]) -> None:
    """Write the arguments and options of a verb: those without a panel first."""
    for heading, rows in panels_of(ctx, parameters).items():
        write_list(formatter, heading, rows)


def panels_of(ctx: Any, parameters: Sequence[Any]) -> dict[str, list[tuple[str, str]]]:
    """Return the names of arguments and options, and what they mean, by headings."""
    arguments = [each for each in parameters if isinstance(each, TyperArgument)]
    options = [each for each in parameters if isinstance(each, TyperOption) and not each.hidden]
    panels: dict[str, list[Any]] = {"Arguments": arguments, "Options": []}
    for each in options:
        panel = each.rich_help_panel if len(options) > FEW_OPTIONS else None
        panels.setdefault(panel or "Options", []).append(each)
    return {
        panel: [(_name_of(each, ctx), _help_of(each, ctx)) for each in members] for panel, members in panels.items()
    }


def write_list(formatter: Any, heading: str, rows: Iterable[tuple[str, str]]) -> None:
    """Write names with what they mean, below a heading; nothing if there are none."""
    rows = [(_bold(name), meaning) for name, meaning in rows]
    if rows:
        with formatter.section(_bold(heading)):
            formatter.write_dl(rows, col_max=MAX_NAME_WIDTH)


def _bold(text: str) -> str:
    """Return a text in bold, which ``echo`` leaves out where stdout is no terminal."""
    return text if os.environ.get("TERM") == "dumb" else style(text, bold=True)


def _name_of(parameter: Any, ctx: Any) -> str:
    if isinstance(parameter, TyperArgument):
        return parameter.display_name_raw
    names = ", ".join(sorted(parameter.opts, key=len))
    return names if parameter.is_flag else f"{names} {_value_of(parameter, ctx)}"


def _value_of(option: TyperOption, ctx: Any) -> str:
    """Return the placeholder of an option's value: N, PATH, TEXT, a|b."""
    if option.metavar is not None:
        return option.metavar
    kind = option.display_type(ctx).strip("<>")
    return kind if "|" in kind else TYPES.get(kind, "N")


def _help_of(parameter: Any, ctx: Any) -> str:
    help, default = parameter.help or "", parameter.get_default(ctx, call=False)
    if not parameter.show_default or default is None or default is False or default == "":
        return help
    return f"{help} [default: {f'{default:g}' if isinstance(default, float) else default}]"
