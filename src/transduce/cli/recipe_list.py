"""The list of the recipes that come with the package. Imports no torch."""

from __future__ import annotations

from textwrap import shorten

from transduce.cli.output import print_json, print_line

__all__ = ["list_recipes"]

WIDTH = 120


def list_recipes(*, json: bool) -> None:
    """Print the name of each built-in recipe and what it trains."""
    from transduce.recipes import RECIPES, about_recipe, built_in_recipes

    recipes = built_in_recipes()
    if json:
        recipe_rows = [{"name": name, "about": about_recipe(path), "file": str(path)} for name, path in recipes.items()]
        print_json({"recipes": recipe_rows})
        return
    column = max(map(len, recipes)) + 2
    for name, path in recipes.items():
        about = shorten(about_recipe(path), WIDTH - column, placeholder=" ...", break_on_hyphens=False)
        print_line(f"{name:<{column}}{about}")
    print_line()
    print_line(f"To change one, copy its file: {RECIPES}")
