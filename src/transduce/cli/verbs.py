"""The command-line application: all verbs of ``transduce``."""

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
    distil,
    doctor,
    evaluate,
    export,
    fill,
    generate,
    import_model,
    init,
    model,
    paper,
    parse,
    parseval,
    perplexity,
    prepare,
    rank,
    read,
    score,
    serve,
    shortlist,
    train,
    transcribe,
    translate,
)
from transduce.cli.output import echo
from transduce.cli.paths import Verb

__all__ = ["app"]


class _Verbs(TyperGroup):
    """The group of all verbs. It reports an interrupt, which typer only signals by the exit code."""

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
    help='The system of "Attention Is All You Need": train Transformers on raw text, translate, parse and evaluate.',
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(is_set: bool) -> None:
    if is_set:
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
    init.init, prepare.prepare, train.train, average.average, shortlist.shortlist, translate.translate, distil.distil,
    rank.rank, score.score, evaluate.evaluate, parse.parse, parseval.parseval, model.model, attention.attention,
    generate.generate, fill.fill, perplexity.perplexity, read.read, transcribe.transcribe, serve.serve,
    export.export, paper.paper, doctor.doctor,
)  # fmt: skip
for verb in _VERBS:
    app.command(cls=Verb)(verb)
app.command("import", cls=Verb)(import_model.import_)
