"""TOML recipes, and settings that change them."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from transduce.config import RunConfig, config_from_mapping
from transduce.config.migrations import renamed
from transduce.config.record import Tagged, nearest_name
from transduce.errors import ConfigError, quoted, shown
from transduce.files import cwd_note
from transduce.recipes.built_in import hint_of_recipe, recipe_file
from transduce.recipes.presets import PRESETS, preset

__all__ = ["read_recipe", "with_settings"]


MAX_RECIPE_BYTES = 1 << 20


def _warn(line: str) -> None:
    warnings.warn(line.removeprefix("warning: "), FutureWarning, stacklevel=4)


def read_recipe(path: Path, settings: Iterable[str] = (), *, log: Callable[[str], None] = _warn) -> RunConfig:
    """Read a TOML recipe and apply ``table.key=value`` settings to it. ``path`` may be the name of a built-in recipe.

    ``log`` receives a warning for each renamed key; the default is a FutureWarning.
    Raises ConfigError if the file is missing, empty or not TOML, or has an unknown key or an invalid value.
    """
    values = _read_toml(path)
    if all(value == {} for value in values.values()):
        raise ConfigError(
            f'recipe {path} sets nothing; a recipe names a preset, as in preset = "tiny", and its text, as in [data] '
            'corpus = "multi30k"; transduce train --list shows examples'
        )
    name = values.pop("preset", "base")
    if not isinstance(name, str):
        raise ConfigError(f"{path}: preset: should be a string, got {quoted(name)}")
    try:
        base = preset(name)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    for key in values:
        if key not in RunConfig.model_fields:
            raise ConfigError(f"{path}: unknown key {shown(key)}; {_home_of(key, base)}")
    return with_settings(_override(base, values, where=path, log=log), settings, log=log)


def _home_of(key: str, config: RunConfig) -> str:
    """Return a hint for a key outside the tables: the table that has it, or the name that it is close to."""
    for table in RunConfig.model_fields:
        if key in type(getattr(config, table)).model_fields:
            return f"it is a key of the table [{table}]"
    return nearest_name(key, ["preset", *RunConfig.model_fields])


def _read_toml(path: Path) -> dict[str, Any]:
    """Parse a recipe. Raises ConfigError if it is missing or not TOML."""
    try:
        with recipe_file(path).open("rb") as stream:
            content = stream.read(MAX_RECIPE_BYTES + 1)
        if len(content) > MAX_RECIPE_BYTES:
            raise ConfigError(f"recipe {path} has more than {MAX_RECIPE_BYTES:,} bytes; a recipe has a few dozen lines")
        return tomllib.loads(content.decode("utf-8-sig"))
    except IsADirectoryError as error:
        hint = f"; to resume the run in it: train --resume --out {path}" if (path / "run.json").exists() else ""
        raise ConfigError(f"recipe {path} cannot be read: it is a folder{hint}") from error
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        where = cwd_note(path) if is_missing else ""
        if str(path) in PRESETS:
            hint = f'; {path} is a preset: write preset = "{path}" in a recipe'
        else:
            hint = f"; {hint_of_recipe(path)}" if is_missing else ""
        raise ConfigError(
            f"recipe {path} cannot be read: {error.strerror or error}{f' ({where})' if where else ''}{hint}"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"recipe {path} is not UTF-8: {error.reason}") from error
    except (ValueError, RecursionError) as error:  # deep nesting, or a number of thousands of digits
        hint = "" if path.suffix == ".toml" else "; transduce train --list shows recipes"
        raise ConfigError(f"recipe {path} is not valid TOML: {_reason(error)}{hint}") from error


def _reason(error: Exception) -> str:
    return "brackets are nested too deeply" if isinstance(error, RecursionError) else str(error)


def with_settings(config: RunConfig, settings: Iterable[str], *, log: Callable[[str], None] = _warn) -> RunConfig:
    """Return ``config`` with ``table.key=value`` settings applied; values are TOML, bare words are strings.

    ``log``: see ``read_recipe``.

    >>> with_settings(preset("tiny"), ["training.max_updates=5", "data.direction=de-en"]).training.max_updates
    5
    """
    changes: dict[str, dict[str, Any]] = {}
    for setting in settings:
        key, equals_sign, text = setting.partition("=")
        table, _, field = key.strip().partition(".")
        if not equals_sign or not field:
            raise ConfigError(f"--set {shown(setting)}: expected table.key=value, as in training.max_updates=1000")
        changes.setdefault(table, {})[field] = _toml_value(text)
    return _override(config, changes, where="--set", log=log) if changes else config


def _toml_value(text: str) -> Any:
    try:
        values = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text.strip()
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, or deep nesting
        raise ConfigError(f"--set: {quoted(text)} cannot be read: {_reason(error)}") from None
    return values["value"] if len(values) == 1 else text.strip()  # several lines can be several keys


def _override(
    config: RunConfig, values: Mapping[str, Any], *, where: str | Path, log: Callable[[str], None]
) -> RunConfig:
    """Return ``config`` with the given fields replaced, and validate the result.

    When the kind of a table changes (``model.system``), fields that the new kind does not have are dropped.
    """
    merged: dict[str, Any] = config.model_dump()
    for table, fields in values.items():
        if table in merged and isinstance(fields, dict):
            fields, changes = renamed(table, fields)
            for old, new, value in changes:
                log(f"warning: {where}: {table}.{old} is now {table}.{new}; write {new} = {quoted(value)}")
            current = getattr(config, table)
            merged[table] = (current.carried_over(fields) if isinstance(current, Tagged) else merged[table]) | fields
        else:
            merged[table] = fields
    return config_from_mapping(RunConfig, merged, where=where)
