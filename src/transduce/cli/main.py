"""The verbs together, and how errors and signals become exit codes."""

from __future__ import annotations

import importlib.metadata
import signal
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from types import FrameType
from typing import Annotated, Any

import typer
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
from transduce.cli.output import say, say_error
from transduce.errors import ElsewhereError, TransduceError

__all__ = ["app", "main", "run"]


class _Verbs(TyperGroup):
    """The group of all verbs: it says when one was interrupted, of which typer tells by the exit code alone."""

    def invoke(self, ctx: Any) -> Any:
        """Run the verb of a command line."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            say("interrupted")
            raise


app = typer.Typer(
    name="transduce",
    cls=_Verbs,
    help='The system of "Attention Is All You Need": raw text in, a trained Transformer and its translations out.',
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _where_to_read_on(error: typer.TyperException) -> str:
    """After a missing argument or an unknown flag: which help tells what there is. A bad value says that itself."""
    context = getattr(error, "ctx", None)
    if context is None or type(error) is typer.BadParameter:
        return ""
    return f" See: {context.command_path} --help"


def _show_version(is_asked: bool) -> None:
    if is_asked:
        print(f"transduce {importlib.metadata.version('transduce')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    pass


app.command()(demo.demo)
app.add_typer(corpus.app, name="corpus")
app.command()(init.init)
app.command()(prepare.prepare)
app.command()(train.train)
app.command()(average.average)
app.command()(translate.translate)
app.command()(score.score)
app.command()(evaluate.evaluate)
app.command()(parse.parse)
app.command()(parseval.parseval)
app.command()(model.model)
app.command()(attention.attention)
app.command()(paper.paper)
app.command()(doctor.doctor)


def main() -> None:
    """The entry point of the command ``transduce``."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # text is UTF-8, whatever the terminal's settings
    if hasattr(signal, "SIGPIPE"):  # where the reader of our output goes away ("... | head"), end as other filters do
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, _end)
    sys.exit(run(sys.argv[1:]))


def _end(number: int, frame: FrameType | None) -> None:
    """Leave as a Ctrl-C does: what is half written is removed on the way out."""
    raise SystemExit(128 + number)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        code = app(args=list(arguments), prog_name="transduce", standalone_mode=False)
    except ElsewhereError as error:
        say(f"error: {error}")
        return 1
    except TransduceError as error:
        say_error(str(error))
        return 1
    except typer.TyperException as error:
        message = error.format_message()
        if message:
            say_error(message + _where_to_read_on(error))
        # A bad value is a problem of the value; all else that the parser refuses is a verb or flag it does not know.
        return 1 if type(error) is typer.BadParameter else error.exit_code
    except typer.Exit as exit:
        return exit.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except OSError as error:  # a full disk, a folder without permission
        say_error(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""))
        return 1
    return code if isinstance(code, int) else 0
