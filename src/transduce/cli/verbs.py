"""The verbs together: what ``transduce`` can be asked for."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

from transduce.cli import (
    attention,
    average,
    corpus,
    demo,
    doctor,
    evaluate,
    init,
    model,
    paper,
    parse,
    parseval,
    prepare,
    score,
    train,
    translate,
)
from transduce.cli.output import echo
from transduce.cli.paths import Verb

__all__ = ["app"]


class _Verbs(TyperGroup):
    """The group of all verbs: it says when one was interrupted, of which typer tells by the exit code alone."""

    def invoke(self, ctx: Any) -> Any:
        """Run the verb of a command line."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            echo("interrupted")
            raise


app = typer.Typer(
    name="transduce",
    cls=_Verbs,
    help='The system of "Attention Is All You Need": raw text in, a trained Transformer and its translations out.',
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        print(f"transduce {importlib.metadata.version('transduce')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    pass


app.command(cls=Verb)(demo.demo)
app.add_typer(corpus.app, name="corpus")
_VERBS: tuple[Callable[..., int | None], ...] = (
    init.init, prepare.prepare, train.train, average.average, translate.translate, score.score, evaluate.evaluate,
    parse.parse, parseval.parseval, model.model, attention.attention, paper.paper, doctor.doctor,
)  # fmt: skip
for verb in _VERBS:
    app.command(cls=Verb)(verb)
