"""Presets (functions), recipes (the TOML files of this folder), and the reading of recipes.

A recipe may name a preset and override its fields::

    preset = "tiny"
    [data]
    corpus = "grammar"
    [training]
    max_updates = 1000
"""

from transduce.recipes.built_in import RECIPES, about_recipe, built_in_recipes, recipe_file
from transduce.recipes.presets import PRESETS, TABLE_3, base, big, deep_shallow, preset, small, small_deep_shallow, tiny
from transduce.recipes.reading import read_recipe, with_settings

__all__ = [
    "PRESETS", "RECIPES", "TABLE_3", "about_recipe", "base", "big", "built_in_recipes", "deep_shallow", "preset",
    "read_recipe", "recipe_file", "small", "small_deep_shallow", "tiny", "with_settings",
]  # fmt: skip
