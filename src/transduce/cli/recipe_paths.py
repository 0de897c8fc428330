"""Error messages for missing files named by relative paths in recipes. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from transduce.errors import MissingFileError
from transduce.files import cwd_note

__all__ = ["paths_in_recipe"]


@contextmanager
def paths_in_recipe(recipe: Path | None) -> Iterator[None]:
    """Add to a MissingFileError what the path is relative to, and whether the file exists beside the recipe."""
    try:
        yield
    except MissingFileError as error:
        if recipe is None or error.path is None or error.path.is_absolute():
            raise
        where = f"{cwd_note(error.path)}; paths in a recipe are relative to the working folder of the command"
        beside = recipe.parent / error.path
        if beside.exists():
            where += f"; {beside} exists: write that path, or run the command in {recipe.parent}"
        raise MissingFileError(error.path, where=where) from error
