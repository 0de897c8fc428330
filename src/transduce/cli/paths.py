"""Checks of a command line, and of the paths on it, made before the work begins."""

from __future__ import annotations

import errno
import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperOption

from transduce.cli.help_text import parts_of, usage_pieces, write_examples, write_parameters
from transduce.cli.output import STANDARD
from transduce.cli.streams import is_stdout_open
from transduce.errors import ConfigError
from transduce.files import created_folder, descriptor_named

__all__ = ["Verb", "require_folder", "require_utf8_name", "require_writable"]

CURRENT_FOLDER = Path()
LONGEST_SUFFIX = ".{}.4294967295.tmp"  # the temporary name while a file or folder is written


class Verb(TyperCommand):
    """A command that rejects empty and impossible paths, and an option given twice that has one value."""

    def __init__(self, name: str | None, *, help: str | None = None, epilog: str | None = None, **values: Any) -> None:
        """``help``: a description, whose examples become the ``epilog``."""
        description, examples = parts_of(help)
        super().__init__(name, help=description, epilog=epilog or "\n".join(examples), **values)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the arguments and the required options."""
        return usage_pieces(self.get_params(ctx), ctx)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what the verb does, and its examples."""
        super().format_help_text(ctx, formatter)
        write_examples(formatter, self.epilog)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write nothing at the end: the examples come before the options."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options."""
        write_parameters(ctx, formatter, self.get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. Raises BadParameter for an invalid path or a second value."""
        given = list(args)
        order = self.make_parser(ctx).parse_args(list(args))[2] if args else []
        for option, n in Counter(each for each in order if isinstance(each, TyperOption)).items():
            if n > 1 and not (option.multiple or option.is_flag):
                raise typer.BadParameter(f"it is given {n} times; give it once", ctx=ctx, param=option)
        rest: list[str] = super().parse_args(ctx, args)
        for parameter in self.params:
            value = ctx.params.get(parameter.name)
            for path in value if isinstance(value, list) else [value]:
                problem = _problem_of(path, given) if isinstance(path, Path) and path != STANDARD else None
                if problem is not None:
                    raise typer.BadParameter(problem, ctx=ctx, param=parameter)  # type: ignore[arg-type]
        return rest


def _problem_of(path: Path, given: Sequence[str]) -> str | None:
    """Return why ``path``, parsed from the arguments ``given``, is invalid, or None."""
    if path == CURRENT_FOLDER and not any(_names_current_folder(word) for word in given):
        return "the name is empty; name a file or a folder"
    try:
        path.stat()
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            return f"{path} cannot be used: {error.strerror}"
    return None


def _names_current_folder(word: str) -> bool:
    """Return whether an argument names the current folder: ``.``, ``./``, ``--out=.``."""
    name = word.rpartition("=")[2]
    return name != "" and Path(name) == CURRENT_FOLDER


def require_writable(option: str, path: Path | None) -> None:
    """Raise ConfigError if the file of an option cannot be written; None is stdout."""
    if path is None or path == STANDARD:
        if not is_stdout_open():
            raise ConfigError("stdout cannot be written: it is closed; redirect it, as in > FILE")
        return
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if descriptor_named(path) is not None:
            return
        if path.is_file() or not path.exists():  # else it is an existing pipe or device
            target = path.resolve()
            _require_short_name(target)
            with created_folder(target.parent):
                tempfile.TemporaryFile(dir=target.parent).close()
    except OSError as error:
        raise ConfigError(f"{option} {path} cannot be written: {error.strerror}") from error


def require_folder(option: str, path: Path) -> None:
    """Raise ConfigError if the folder of an option cannot be created or written."""
    try:
        if path.exists() and not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        target = path.resolve()
        _require_short_name(target)
        existing = next(each for each in (target, *target.parents) if os.path.lexists(each))
        if not existing.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(existing, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise ConfigError(f"{option} {path} cannot be written: {error.strerror}; name a folder") from error


def _require_short_name(target: Path) -> None:
    """Raise OSError if the temporary name of ``target`` would be too long."""
    with suppress(FileNotFoundError, NotADirectoryError):  # NotADirectoryError is reported when the folder is created
        os.lstat(target.with_name(LONGEST_SUFFIX.format(target.name)))


def require_utf8_name(option: str, path: Path | None) -> None:
    """Raise ConfigError for a path that is not valid UTF-8, where it must be stored as text or passed to a library."""
    if path is None:
        return
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        raise ConfigError(f"{option} {path} is not valid UTF-8, which is required here; rename it") from None
