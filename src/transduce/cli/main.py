"""The entry point, and how errors and signals become one line and an exit code."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import transduce
from transduce.cli.output import echo, echo_error
from transduce.cli.signals import EndedBySignal, exit_on_signals
from transduce.cli.streams import discard_stdout, open_streams
from transduce.errors import DataError, PeerError, TransduceError

__all__ = ["main", "run"]

TRACEBACK = "TRANSDUCE_TRACEBACK"  # a variable of the environment


def main() -> None:
    """The entry point of the command ``transduce``."""
    open_streams()
    if hasattr(signal, "SIGPIPE"):  # where the reader of our output goes away ("... | head"), end as other filters do
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    exit_on_signals()
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except DataError as error:
        discard_stdout()
        if code == 0:
            echo_error(str(error))
        code = code or 1
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. Whatever goes wrong is told in one line."""
    try:
        _require_working_folder()
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
    """Raises DataError if somebody has removed it: then the libraries of torch would end the process."""
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise DataError("the working folder is not there any more; change to another, as in: cd") from error


def _run(arguments: Sequence[str]) -> int:
    """The same, where what goes wrong beside the command line itself is raised."""
    import typer

    from transduce.cli.verbs import app  # late, so that nothing is opened before ``main`` has looked at the streams

    try:
        code = app(args=list(arguments), prog_name="transduce", standalone_mode=False)
    except typer.TyperException as error:
        message = error.format_message()
        # A bad value is a problem of the value; all else that the parser refuses is a verb or flag it does not know.
        is_value = type(error) is typer.BadParameter
        context = getattr(error, "ctx", None)
        where_to_read_on = "" if context is None or is_value else f" See: {context.command_path} --help"
        if message:
            echo_error(message + where_to_read_on)
        return 1 if is_value else error.exit_code
    except typer.Exit as exit:
        return exit.exit_code
    except typer.Abort:
        return 130
    return code if isinstance(code, int) else 0


def _internal_error_message(error: Exception) -> str:
    """What is said of an error that is none of ours: memory that does not suffice, or a mistake in this program."""
    words = " ".join(str(error).split())
    if _is_out_of_memory(error):
        return f"memory does not suffice{f' ({words})' if words else ''}"
    home = Path(transduce.__file__).parent
    ours = [each for each in traceback.extract_tb(error.__traceback__) if home in Path(each.filename).parents]
    where = f" ({Path(ours[-1].filename).relative_to(home)}, line {ours[-1].lineno})" if ours else ""
    return (
        f"{type(error).__name__}: {words or 'without a word'}{where}; this was not foreseen: {TRACEBACK}=1 shows where "
        "it happened, for a report"
    )


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, RuntimeError) and "torch" in sys.modules:
        from transduce.training.memory import is_out_of_memory

        return is_out_of_memory(error)
    return isinstance(error, MemoryError)
