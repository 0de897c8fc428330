"""Relative paths in recipes: what they are relative to, told where a file is missing. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from transduce.errors import MissingFileError
from transduce.files import cwd_note

__all__ = ["paths_in_recipe"]


@contextmanager
def paths_in_recipe(recipe: Path | None) -> Iterator[None]:
    """Adds to a MissingFileError what relative paths are relative to, and whether the file is beside the recipe."""
    try:
        yield
    except MissingFileError as error:
        if recipe is None or error.path.is_absolute():
            raise
        where = f"{cwd_note(error.path)}; paths in a recipe are relative to where the command is called"
        beside = recipe.parent / error.path
        if beside.exists():
            where += f"; there is {beside}: name that, or call the command in {recipe.parent}"
        raise MissingFileError(error.path, where=where) from error
