"""The command-line application: the verbs of ``transduce``."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

from transduce.cli.output import echo
from transduce.cli.paths import Verb

__all__ = ["VERBS", "make_app"]

# The module and the function, or application, of each verb, in the order of the help.
VERBS: Mapping[str, str] = {
    name: f"{name}:{name}"
    for name in (
        "demo", "init", "prepare", "train", "average", "shortlist", "translate", "distil", "rank", "score", "evaluate",
        "parse", "parseval", "model", "attention", "generate", "fill", "perplexity", "read", "transcribe", "serve",
        "export", "paper", "doctor",
    )
} | {"import": "import_model:import_", "corpus": "corpus:app"}  # fmt: skip

HELP = 'The system of "Attention Is All You Need": train Transformers on raw text, translate, parse and evaluate.'


class _Verbs(TyperGroup):
    """The group of all verbs. It reports an interrupt, which typer only signals by the exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the verb of a command line."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            echo("interrupted")
            raise


def make_app(names: tuple[str, ...] = tuple(VERBS)) -> typer.Typer:
    """Return the application with the verbs of these names; only their modules are imported."""
    app = typer.Typer(
        name="transduce",
        cls=_Verbs,
        help=HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for name in names:
        module, _, attribute = VERBS[name].partition(":")
        verb = getattr(importlib.import_module(f"transduce.cli.{module}"), attribute)
        if isinstance(verb, typer.Typer):
            app.add_typer(verb, name=name)
        else:
            app.command(name, cls=Verb)(verb)
    return app


def _show_version(is_set: bool) -> None:
    if is_set:
        print(f"transduce {importlib.metadata.version('transduce')}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    pass
