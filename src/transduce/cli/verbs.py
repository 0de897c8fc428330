"""The command-line application: the verbs of ``transduce``, and those that other distributions add.

A distribution adds a verb by an entry point of the group ``transduce.verbs``: its name is the verb, its object a
function or application of typer, as ours are. Ours cannot be replaced.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from transduce.cli.help_text import VerbGroup, write_parameters
from transduce.cli.output import echo
from transduce.cli.paths import Verb
from transduce.errors import ConfigError, quoted

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["ELSEWHERE", "ENTRY_POINTS", "VERBS", "added_verbs", "make_app"]

# All verbs, as the overview shows them.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "Most used": ("demo", "init", "train", "translate", "memory", "evaluate", "serve", "export", "doctor", "help"),
    "Train": ("corpus", "prepare", "average", "distil", "rank"),
    "Evaluate": ("score", "sweep", "parseval", "perplexity"),
    "Use models of other tasks": ("parse", "generate", "fill", "read", "transcribe"),
    "Models": ("import", "shortlist", "model"),
    "Study": ("attention", "align"),
}
NAMED = {"import": "import_model:import_", "corpus": "corpus:app", "memory": "memory:app"}
# The module and the function, or application, of each verb.
VERBS: Mapping[str, str] = {name: NAMED.get(name, f"{name}:{name}") for names in GROUPS.values() for name in names}

ENTRY_POINTS = "transduce.verbs"
# Verbs of this project in a distribution of their own, with its name.
ELSEWHERE: Mapping[str, str] = {"paper": "transduce-paper"}

HELP = 'Train, use and serve the Transformer of "Attention Is All You Need".'
OTHERS = "From other packages"


class _Verbs(VerbGroup):
    """The group of all verbs. It reports an interrupt, which typer only signals by the exit code."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the verbs in their groups, then the options, then the topics of ``transduce help``."""
        from transduce.cli.topics import TOPICS

        self.write_verbs(formatter, {**GROUPS, OTHERS: [name for name in self.commands if name not in VERBS]})
        write_parameters(ctx, formatter, self.get_params(ctx))
        formatter.write_paragraph()
        formatter.write_text(f"Help on a verb or a topic: transduce help NAME. Topics: {', '.join(TOPICS)}.")

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read a command line."""
        with _reported_interrupt():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb of a command line."""
        with _reported_interrupt():
            return super().invoke(ctx)


@contextmanager
def _reported_interrupt() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        echo("interrupted")
        raise


def added_verbs() -> dict[str, EntryPoint]:
    """Return the entry points of verbs that installed distributions add, by name."""
    from importlib.metadata import entry_points

    return {each.name: each for each in entry_points(group=ENTRY_POINTS) if each.name not in VERBS}


def make_app(verb: str = "", *, is_overview: bool = False) -> typer.Typer:
    """Return the application with one verb, of which only the module is imported; with all if it is unknown.

    ``is_overview``: only its help or its version is wanted, for which the built-in verbs are not imported.
    Raises ConfigError if the verb belongs to a distribution that is not installed, or cannot be imported.
    """
    app = typer.Typer(
        name="transduce",
        cls=_Verbs,
        help=HELP,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    if verb in VERBS:
        _add(app, verb, _built_in(verb))
        return app
    added = added_verbs()
    if verb in added:
        _add(app, verb, _loaded(added[verb]))
        return app
    if verb in ELSEWHERE:
        name = ELSEWHERE[verb]
        raise ConfigError(
            f"{quoted(verb)} is a verb of {name}, which is not installed; install it: pip install {name}, in a "
            f"checkout of transduce: pip install ./{verb}"
        )
    for name in VERBS:
        _add(app, name, _described(name) if is_overview else _built_in(name))
    for name, entry_point in added.items():
        try:
            _add(app, name, _loaded(entry_point))
        except ConfigError as error:  # the help of the other verbs is not its to prevent
            echo(f"warning: {error}")
    return app


def _add(app: typer.Typer, name: str, verb: Any) -> None:
    if isinstance(verb, typer.Typer):
        app.add_typer(verb, name=name)
    else:
        app.command(name, cls=Verb)(verb)


def _described(name: str) -> Any:
    """Return a function with the description of a built-in verb, that of its function or group, from its source."""
    module, _, attribute = VERBS[name].partition(":")
    source = (Path(__file__).parent / f"{module}.py").read_text(encoding="utf-8")

    def verb() -> None: ...

    beginning, end = ("\napp = typer.Typer(help=", '"') if attribute == "app" else (f"\ndef {attribute}(", '"""')
    verb.__doc__ = source.partition(beginning)[2].split(end)[1]
    return verb


def _built_in(name: str) -> Any:
    module, _, attribute = VERBS[name].partition(":")
    return getattr(importlib.import_module(f"transduce.cli.{module}"), attribute)


def _loaded(entry_point: EntryPoint) -> Any:
    """Import an added verb. Raises ConfigError if that fails, whatever the reason."""
    try:
        return entry_point.load()
    except Exception as error:
        distribution = entry_point.dist.name if entry_point.dist else entry_point.value
        raise ConfigError(
            f"the verb {quoted(entry_point.name)} of {distribution} cannot be imported ({type(error).__name__}: "
            f"{error}); update or uninstall {distribution}"
        ) from error


def _show_version(is_set: bool) -> None:
    if is_set:
        from transduce import __version__

        print(f"transduce {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    pass
