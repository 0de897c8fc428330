"""Migrations of configuration tables to formats 1 to 3; each file that contains them has its own format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

# Renamed keys: (table, old name) -> new name and the mapping of old to new values.
RENAMED: Mapping[tuple[str, str], tuple[str, Mapping[str, str]]] = {
    ("data", "target"): ("task", {"text": "translation", "trees": "parsing"}),
    ("data", "recombination"): ("subtree_substitution", {}),
    ("training", "both_ways_epochs"): ("bidirectional_epochs", {}),
    ("training", "n_skippable"): ("max_skipped_updates", {}),
}

# Format 0 had one record for all systems: the fields that only some systems have.
_OWN_FIELDS: Mapping[str, Sequence[str]] = {
    "transformer": (
        "d_ff", "n_heads", "d_k", "d_v", "p_drop_attention", "p_drop_relu", "positions", "n_positions", "norm",
        "n_experts", "n_active_experts",
    ),
    "recurrent": (),
    "last-state": (),
    "convs2s": ("kernel_width", "positions", "n_positions"),
    "bytenet": ("kernel_width",),
}  # fmt: skip
_SYSTEM_FIELDS = frozenset(chain.from_iterable(_OWN_FIELDS.values()))

# Up to format 1, only the task told what these models are.
_MODELS_OF_TASKS: Mapping[str, Mapping[str, str]] = {
    "mask-predict": {"decoder": "masked"},
    "reward": {"output": "scalar"},
    "ppo": {"output": "tokens-and-value"},
}


def renamed(table: str, values: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str, Any]]]:
    """Return a table with its current key names, and each change: the old name, the new name, the value.

    >>> renamed("data", {"target": "trees"})
    ({'task': 'parsing'}, [('target', 'task', 'parsing')])
    """
    result, changes = dict[str, Any](), list[tuple[str, str, Any]]()
    for name, value in values.items():
        new, value_of = RENAMED.get((table, name), (name, {}))
        if new != name and new not in values:
            result[new] = value_of.get(value, value) if isinstance(value, str) else value
            changes.append((name, new, result[new]))
        else:
            result[name] = value
    return result, changes


def tables_of_format_1(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Migrate the tables model, data, training and search, or some of them, to format 1.

    >>> tables_of_format_1({"model": {"system": "bytenet", "d_ff": 8, "kernel_width": 5}, "data": {"target": "text"}})
    {'model': {'system': 'bytenet', 'kernel_width': 5}, 'data': {'task': 'translation'}}
    """
    return {
        table: _table_of_format_1(table, values) if isinstance(values, Mapping) else values
        for table, values in tables.items()
    }


def _table_of_format_1(table: str, values: Mapping[str, Any]) -> dict[str, Any]:
    result, _ = renamed(table, values)
    match table:
        case "search":
            return {"kind": "beam", **result}
        case "model":
            result = {"system": "transformer", **result}
            own = _OWN_FIELDS.get(str(result["system"]), _SYSTEM_FIELDS)
            return {name: value for name, value in result.items() if name in own or name not in _SYSTEM_FIELDS}
        case _:
            return result


def model_of_format_2(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Migrate the table ``model`` to format 2, which says what the model is; before, its task did.

    The task stands among the tables, or in the table ``data``.

    >>> model_of_format_2({"task": "reward", "model": {"system": "language-model"}})
    {'task': 'reward', 'model': {'system': 'language-model', 'output': 'scalar'}}
    """
    data, model = tables.get("data"), tables.get("model")
    task = data.get("task") if isinstance(data, Mapping) else tables.get("task")
    own = _MODELS_OF_TASKS.get(str(task), {})
    return {**tables, "model": {**model, **own}} if isinstance(model, Mapping) else dict(tables)


def tables_of_format_3(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Migrate the tables data and training, or one of them, to format 3.

    >>> tables_of_format_3({"training": {"n_skippable": 2}})
    {'training': {'max_skipped_updates': 2}}
    """
    return {
        table: renamed(table, values)[0] if isinstance(values, Mapping) else values for table, values in tables.items()
    }


def _of_config(migrate: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return the migration of the tables under ``config``, in the values of a file such as ``run.json``."""

    def migrated(values: Mapping[str, Any]) -> dict[str, Any]:
        tables = values.get("config")
        return {**values, "config": migrate(tables)} if isinstance(tables, Mapping) else dict(values)

    return migrated


config_of_format_1 = _of_config(tables_of_format_1)
config_of_format_2 = _of_config(model_of_format_2)
config_of_format_3 = _of_config(tables_of_format_3)
