"""What earlier versions wrote of a configuration, as this one has it: steps that all files with tables of it share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

# Keys that have another name now: the new one, and its values for those of the old.
RENAMED: Mapping[tuple[str, str], tuple[str, Mapping[str, str]]] = {
    ("data", "target"): ("task", {"text": "translation", "trees": "parsing"}),
}

# When there was one record for all systems: its fields that not all of them have, and who has them.
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
_NOT_OF_ALL = frozenset(chain.from_iterable(_OWN_FIELDS.values()))


def renamed(table: str, values: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str, Any]]]:
    """A table with the names of today, and each change: the old name, the new one, and its value.

    >>> renamed("data", {"target": "trees"})
    ({'task': 'parsing'}, [('target', 'task', 'parsing')])
    """
    now, changes = dict[str, Any](), list[tuple[str, str, Any]]()
    for name, value in values.items():
        new, value_of = RENAMED.get((table, name), (name, {}))
        if new != name and new not in values:
            now[new] = value_of.get(value, value) if isinstance(value, str) else value
            changes.append((name, new, now[new]))
        else:
            now[name] = value
    return now, changes


def config_of_format_1(values: Mapping[str, Any]) -> dict[str, Any]:
    """What holds all tables of a run as ``config``, as it became when formats got numbers."""
    tables = values.get("config")
    return {**values, "config": tables_of_format_1(tables)} if isinstance(tables, Mapping) else dict(values)


def tables_of_format_1(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The tables model, data, training and search, or some of them, as they became when formats got numbers.

    >>> tables_of_format_1({"model": {"system": "bytenet", "d_ff": 8, "kernel_width": 5}, "data": {"target": "text"}})
    {'model': {'system': 'bytenet', 'kernel_width': 5}, 'data': {'task': 'translation'}}
    """
    return {
        table: _table_of_format_1(table, values) if isinstance(values, Mapping) else values
        for table, values in tables.items()
    }


def _table_of_format_1(table: str, values: Mapping[str, Any]) -> dict[str, Any]:
    now, _ = renamed(table, values)
    match table:
        case "search":
            return {"kind": "beam", **now}
        case "model":
            now = {"system": "transformer", **now}
            own = _OWN_FIELDS.get(str(now["system"]), _NOT_OF_ALL)
            return {name: value for name, value in now.items() if name in own or name not in _NOT_OF_ALL}
        case _:
            return now
