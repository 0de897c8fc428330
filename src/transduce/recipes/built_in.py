"""The recipes that come with the package, the TOML files beside this module, by name."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path

from transduce.config import nearest_name

__all__ = ["RECIPES", "about_recipe", "built_in_recipes", "hint_of_recipe", "recipe_file"]

RECIPES = Path(__file__).parent  # the folder


def built_in_recipes() -> Mapping[str, Path]:
    """Return the file of each recipe by its name, such as ``multi30k-en-de`` or ``alignment/dpo``.

    >>> built_in_recipes()["alignment/dpo"].name
    'dpo.toml'
    """
    named = {path.relative_to(RECIPES).with_suffix("").as_posix(): path for path in RECIPES.rglob("*.toml")}
    return dict(sorted(named.items()))


def recipe_file(recipe: Path) -> Path:
    """Return the file of a recipe: ``recipe`` itself if it is a file, else that of the built-in recipe of this name.

    An unknown name is returned as it is.

    >>> recipe_file(Path("multi30k-en-de")) == RECIPES / "multi30k-en-de.toml"
    True
    """
    return recipe if recipe.is_file() else built_in_recipes().get(recipe.as_posix(), recipe)


def hint_of_recipe(missing: Path) -> str:
    """Return what an error about a missing file says of recipes: the built-in one that was meant, or where they are.

    >>> hint_of_recipe(Path("recipes/multi30k-en-de.toml"))
    'the recipe of this name comes with transduce: multi30k-en-de'
    >>> hint_of_recipe(Path("multi30k-ende"))
    'did you mean multi30k-en-de? transduce train --list shows the recipes'
    """
    recipes, name = built_in_recipes(), missing.as_posix().removesuffix(".toml")
    for each in recipes:
        if f"/{name}".endswith(f"/{each}"):
            return f"the recipe of this name comes with transduce: {each}"
    shown_by = "transduce train --list shows the recipes"
    nearest = nearest_name(name.rpartition("/")[2], recipes)
    return f"{nearest} {shown_by}" if nearest.endswith("?") else shown_by


def about_recipe(file: Path) -> str:
    """Return the first sentence of the comment at the beginning of a recipe."""
    lines = takewhile(_is_prose, file.read_text(encoding="utf-8").splitlines())
    comment = " ".join(line.removeprefix("#").strip() for line in lines)
    return comment.partition(". ")[0].removesuffix(".")


def _is_prose(line: str) -> bool:
    """Return whether a line is part of a comment, and not a command in it, which is indented further."""
    return line.startswith("# ") and not line.startswith("#  ")
