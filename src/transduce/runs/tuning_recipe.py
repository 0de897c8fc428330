"""A recipe with which a translator learns from the user's own text: that of ``init --from``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch

from transduce.config import RunConfig
from transduce.config.record import Record
from transduce.errors import ConfigError
from transduce.files import write_text
from transduce.findings.finding import counted
from transduce.recipes import preset
from transduce.runs.fine_tuning import fine_tuning
from transduce.runs.new_recipe import NewRecipe
from transduce.runs.own_text import Log, OwnText
from transduce.training import peak_learning_rate

__all__ = ["tuning_recipe"]


def tuning_recipe(
    model: Path,
    text: OwnText,
    out: Path,
    *,
    minutes: float,
    device: torch.device,
    log: Log,
    mix: Sequence[str] = (),
    data_folder: Path | None = None,
) -> NewRecipe:
    """Write a recipe at ``out`` that goes on from a model; the text, with old text beside, is in ``<out>-text``.

    Raises ConfigError if one of them exists, DataError if the text cannot be used.
    """
    if out.exists():
        raise ConfigError(f"{out} exists already; remove it, or choose another --out")
    folder = out.with_name(f"{out.stem}-text")
    plan = fine_tuning(model, text, folder, device=device, log=log, mix=mix, data_folder=data_folder, minutes=minutes)
    assert plan.seconds_per_update is not None
    numbers = plan.n_train, plan.n_dev, plan.n_test, plan.n_left_out
    recipe = NewRecipe(out, folder, plan.config, *numbers, plan.n_updates, plan.seconds_per_update, plan.n_epochs)
    write_text(out, _toml(recipe, model))
    return recipe


def _toml(recipe: NewRecipe, model: Path) -> str:
    """Return the recipe as TOML: what differs from the base model of the paper."""
    config, base = recipe.config, preset("base")
    rate = peak_learning_rate(d_model=config.model.d_model, config=config.training)
    head = [
        f"{model} learns from {recipe.n_train:,} sentence pairs more.",
        f"  {recipe.command}",
        f"Expected on the machine where this was written: about {counted(round(recipe.minutes), 'minute')}, "
        f"{counted(recipe.n_updates, 'update')}",
        f"of {recipe.seconds_per_update:.2f} s, {recipe.n_epochs:.1f} epochs. The learning rate is at most {rate:.1e}: "
        "a higher one overwrites",
        "what the model knows. The weight of old text is how often an epoch reads each of its pairs.",
        "src/transduce/config/ documents all settings.",
    ]
    comment = "\n".join(f"# {line}" for line in "\n".join(head).splitlines())
    tables = [_table(name, getattr(config, name), getattr(base, name)) for name in RunConfig.model_fields]
    return "\n\n".join([f'{comment}\npreset = "base"', *filter(None, tables)]) + "\n"


def _table(name: str, record: Record, base: Record) -> str:
    """Return a table of TOML with the settings that differ from those of another record."""
    there = base.model_dump()
    changed = {
        key: value for key, value in record.model_dump().items() if value != there.get(key) and value is not None
    }
    lines = [f"{key} = {_value(value)}" for key, value in changed.items() if not key.endswith("vocab_size")]
    return "\n".join([f"[{name}]", *lines]) if lines else ""


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_value(each)}" for key, each in value.items()) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
