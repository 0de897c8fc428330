"""Presets (the paper's models, two small ones, two with a shallow decoder) and TOML recipes.

A recipe may name a preset and override its fields::

    preset = "tiny"
    [data]
    corpus = "grammar"
    [training]
    max_updates = 1000
"""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from transduce.config import RunConfig, TrainingConfig, TransformerConfig, config_from_mapping, nearest_name
from transduce.config.migrations import renamed
from transduce.config.record import Tagged
from transduce.errors import ConfigError, quoted, shown
from transduce.files import cwd_note

__all__ = [
    "PRESETS", "TABLE_3", "base", "big", "deep_shallow", "preset", "read_recipe", "small", "small_deep_shallow", "tiny",
    "with_settings",
]  # fmt: skip


MAX_RECIPE_BYTES = 1 << 20


def base() -> RunConfig:
    """The base model: first row of Table 3, 100,000 updates, the last 5 checkpoints averaged."""
    return RunConfig()


def big() -> RunConfig:
    """The big model: last row of Table 3, P_drop 0.3, 300,000 updates, the last 20 checkpoints averaged."""
    return RunConfig(
        model=TransformerConfig(d_model=1024, d_ff=4096, n_heads=16, p_drop=0.3),
        training=TrainingConfig(max_updates=300_000, keep_checkpoints=20, average_last=20),
    )


def small() -> RunConfig:
    """3 + 3 layers, d_model 256: for a laptop, or corpora of a few hundred thousand pairs."""
    return RunConfig(
        model=TransformerConfig(n_encoder_layers=3, n_decoder_layers=3, d_model=256, d_ff=1024, n_heads=4),
        training=TrainingConfig(max_updates=20_000, max_tokens_per_batch=4000, warmup_steps=2000),
    )


def deep_shallow() -> RunConfig:
    """12 + 1 layers of the base model: as many weights, but each token takes few operations. Kasai et al. (2021).

    Such a model is trained on a teacher's translations (``transduce distil``).
    """
    return _varied(model={"n_encoder_layers": 12, "n_decoder_layers": 1})


def small_deep_shallow() -> RunConfig:
    """6 + 1 layers of the small model, see ``deep_shallow``."""
    config = small()
    layers = {"n_encoder_layers": 6, "n_decoder_layers": 1}
    return config.model_copy(update={"model": config.model.model_copy(update=layers)})


def tiny() -> RunConfig:
    """4 + 4 layers, d_model 128, dropout 0.3: for corpora of tens of thousands of pairs."""
    return RunConfig(
        model=TransformerConfig(
            n_encoder_layers=4, n_decoder_layers=4, d_model=128, d_ff=256, n_heads=4, d_k=32, d_v=32, p_drop=0.3
        ),
        training=TrainingConfig(max_updates=10_000, max_tokens_per_batch=4000, warmup_steps=2000),
    )


def _varied(*, model: Mapping[str, Any] | None = None, training: Mapping[str, Any] | None = None) -> RunConfig:
    """Return the base model with some fields changed."""
    return RunConfig(model=TransformerConfig(**(model or {})), training=TrainingConfig(**(training or {})))


# Every row of Table 3, in the paper's order.
TABLE_3: dict[str, Callable[[], RunConfig]] = {
    "base": base,
    "A-h1": lambda: _varied(model={"n_heads": 1, "d_k": 512, "d_v": 512}),
    "A-h4": lambda: _varied(model={"n_heads": 4, "d_k": 128, "d_v": 128}),
    "A-h16": lambda: _varied(model={"n_heads": 16, "d_k": 32, "d_v": 32}),
    "A-h32": lambda: _varied(model={"n_heads": 32, "d_k": 16, "d_v": 16}),
    "B-dk16": lambda: _varied(model={"d_k": 16}),
    "B-dk32": lambda: _varied(model={"d_k": 32}),
    "C-N2": lambda: _varied(model={"n_encoder_layers": 2, "n_decoder_layers": 2}),
    "C-N4": lambda: _varied(model={"n_encoder_layers": 4, "n_decoder_layers": 4}),
    "C-N8": lambda: _varied(model={"n_encoder_layers": 8, "n_decoder_layers": 8}),
    "C-d256": lambda: _varied(model={"d_model": 256, "d_k": 32, "d_v": 32}),
    "C-d1024": lambda: _varied(model={"d_model": 1024, "d_k": 128, "d_v": 128}),
    "C-ff1024": lambda: _varied(model={"d_ff": 1024}),
    "C-ff4096": lambda: _varied(model={"d_ff": 4096}),
    "D-drop0": lambda: _varied(model={"p_drop": 0.0}),
    "D-drop2": lambda: _varied(model={"p_drop": 0.2}),
    "D-smooth0": lambda: _varied(training={"eps_ls": 0.0}),
    "D-smooth2": lambda: _varied(training={"eps_ls": 0.2}),
    "E-learned": lambda: _varied(model={"positions": "learned"}),
    "big": big,
}

PRESETS: dict[str, Callable[[], RunConfig]] = {
    **TABLE_3,
    "small": small,
    "tiny": tiny,
    "deep-shallow": deep_shallow,
    "small-deep-shallow": small_deep_shallow,
}


def preset(name: str) -> RunConfig:
    """Return a preset by name. Raises ConfigError, with the closest known name, for an unknown one.

    >>> preset("tiny").model.d_model
    128
    """
    if name not in PRESETS:
        raise ConfigError(f"unknown preset {quoted(name)}; {nearest_name(name, PRESETS)}")
    return PRESETS[name]()


def _warn(line: str) -> None:
    warnings.warn(line.removeprefix("warning: "), FutureWarning, stacklevel=4)


def read_recipe(path: Path, settings: Iterable[str] = (), *, log: Callable[[str], None] = _warn) -> RunConfig:
    """Read a TOML recipe and apply ``table.key=value`` settings to it.

    ``log`` receives a warning for each renamed key; the default is a FutureWarning.
    Raises ConfigError if the file is missing, empty or not TOML, or has an unknown key or an invalid value.
    """
    values = _read_toml(path)
    if all(value == {} for value in values.values()):
        raise ConfigError(
            f'recipe {path} sets nothing; a recipe names a preset, as in preset = "tiny", and its text, as in [data] '
            'corpus = "multi30k"; see the folder recipes/'
        )
    name = values.pop("preset", "base")
    if not isinstance(name, str):
        raise ConfigError(f"{path}: preset: should be a string, got {quoted(name)}")
    return with_settings(_override(preset(name), values, where=path, log=log), settings, log=log)


def _read_toml(path: Path) -> dict[str, Any]:
    """Parse a recipe. Raises ConfigError if it is missing or not TOML."""
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_RECIPE_BYTES + 1)
        if len(content) > MAX_RECIPE_BYTES:
            raise ConfigError(f"recipe {path} has more than {MAX_RECIPE_BYTES:,} bytes; a recipe has a few dozen lines")
        return tomllib.loads(content.decode("utf-8-sig"))
    except IsADirectoryError as error:
        hint = f"; to resume the run in it: train --resume --out {path}" if (path / "run.json").exists() else ""
        raise ConfigError(f"recipe {path} cannot be read: it is a folder{hint}") from error
    except OSError as error:
        where = cwd_note(path) if isinstance(error, FileNotFoundError) else ""
        raise ConfigError(
            f"recipe {path} cannot be read: {error.strerror or error}{f' ({where})' if where else ''}"
            + (f'; {path} is a preset: write preset = "{path}" in a recipe' if str(path) in PRESETS else "")
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"recipe {path} is not UTF-8: {error.reason}") from error
    except (ValueError, RecursionError) as error:  # deep nesting, or a number of thousands of digits
        hint = "" if path.suffix == ".toml" else "; a recipe is a file like those in recipes/*.toml"
        raise ConfigError(f"recipe {path} is not valid TOML: {_reason(error)}{hint}") from error


def _reason(error: Exception) -> str:
    return "brackets are nested too deeply" if isinstance(error, RecursionError) else str(error)


def with_settings(config: RunConfig, settings: Iterable[str], *, log: Callable[[str], None] = _warn) -> RunConfig:
    """Return ``config`` with ``table.key=value`` settings applied; values are TOML, bare words are strings.

    ``log``: see ``read_recipe``.

    >>> with_settings(tiny(), ["training.max_updates=5", "data.direction=de-en"]).training.max_updates
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
