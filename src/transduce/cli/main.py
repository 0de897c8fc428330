"""The entry point: turns errors and signals into one-line messages and exit codes."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import transduce
from transduce.cli.imports import command_imports
from transduce.cli.output import echo, echo_error
from transduce.cli.signals import EndedBySignal, end_on_signals, exit_on_signals, ignore_hangups
from transduce.cli.streams import discard_stdout, open_streams
from transduce.errors import DataError, PeerError, TransduceError
from transduce.imports import needing_train_extra

__all__ = ["main", "run"]

TRACEBACK = "TRANSDUCE_TRACEBACK"  # environment variable


def main() -> None:
    """The entry point of the command ``transduce``."""
    open_streams()
    exit_on_signals()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # else it reads the metadata of all packages
    if sys.argv[1:2] == ["serve"]:
        ignore_hangups()  # before its modules are imported: it may be told to reload while it starts
    code = run(sys.argv[1:])
    end_on_signals()
    try:
        sys.stdout.flush()
    except DataError as error:
        discard_stdout()
        if code == 0:
            echo_error(str(error))
        code = code or 1
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. Every error is reported in one line."""
    try:
        _require_working_folder()
        with needing_train_extra(" ".join(["transduce", *arguments[:1]])):
            return _run(arguments)
    except PeerError as error:
        echo(f"error: {error}")
        return 1
    except TransduceError as error:
        echo_error(str(error))
        return 1
    except EndedBySignal as end:
        echo(f"ended by {signal.Signals(end.number).name}")
        return 128 + end.number
    except KeyboardInterrupt:
        echo("interrupted")
        return 130
    except OSError as error:  # a full disk, a folder without permission
        echo_error(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""))
        return 1
    except Exception as error:
        if os.environ.get(TRACEBACK):
            traceback.print_exc()
        echo_error(_internal_error_message(error))
        return 1


def _require_working_folder() -> None:
    """Raise DataError if the working folder was removed, in which case torch's libraries would abort the process."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise DataError("the working folder does not exist any more; change to another, as in: cd") from error


def _run(arguments: Sequence[str]) -> int:
    """Run one command line. Invalid arguments are reported here, all other errors are raised."""
    with command_imports():  # late: ``main`` must set up the streams before any file is opened
        import typer

        from transduce.cli.verbs import make_app

        # The modules of other verbs would take a tenth of the time of --help, and half of that of a completion.
        verb = (arguments[0] if arguments else "") or _completed_verb()
        app = make_app(verb, is_overview=verb in ("", "-h", "--help", "--version"))
    try:
        code = app(args=list(arguments), prog_name="transduce", standalone_mode=False)
    except typer.TyperException as error:
        message = error.format_message().replace("Value error, ", "")  # pydantic's, of an invalid choice
        # An invalid value exits with 1, an unknown verb or option with 2.
        is_value = type(error) is typer.BadParameter
        context = getattr(error, "ctx", None)
        help_hint = "" if context is None or is_value else f" See: {context.command_path} --help"
        if message:
            echo_error(message + help_hint)
        return 1 if is_value else error.exit_code
    except typer.Exit as exit:
        return exit.exit_code
    except typer.Abort as abort:  # how typer tells an EOFError
        raise (abort.__cause__ or abort) from None
    return code if isinstance(code, int) else 0


def _completed_verb() -> str:
    """Return the verb of the line that a shell completes, if another word follows it."""
    words = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    _, verb, *others = [*words.replace("\n", " ").split(" "), "", ""]
    return verb if len(others) > 2 and "_TRANSDUCE_COMPLETE" in os.environ else ""


def _internal_error_message(error: Exception) -> str:
    """Return the message for an unexpected exception: out of memory, or a bug in transduce."""
    reason = " ".join(str(error).split())
    if _is_out_of_memory(error):
        return f"out of memory{f' ({reason})' if reason else ''}"
    home = Path(transduce.__file__).parent
    frames = [each for each in traceback.extract_tb(error.__traceback__) if home in Path(each.filename).parents]
    where = f" ({Path(frames[-1].filename).relative_to(home)}, line {frames[-1].lineno})" if frames else ""
    return (
        f"{type(error).__name__}: {reason or 'no message'}{where}; this is a bug: {TRACEBACK}=1 prints the traceback "
        "for a report"
    )


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, RuntimeError) and "torch" in sys.modules:
        from transduce.memory import is_out_of_memory

        return is_out_of_memory(error)
    return isinstance(error, MemoryError)
