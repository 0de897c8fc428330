"""JSON files: atomic writes, checked reads and format migrations."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transduce.errors import DataError, TransduceError, quoted
from transduce.files.regular import open_regular
from transduce.files.writing import replacement

__all__ = ["Migration", "migrated", "read_json", "write_json"]

Migration = Callable[[dict[str, Any]], dict[str, Any]]  # converts the values of one format to the next


def write_json(path: Path, value: object) -> None:
    """Write ``value`` as indented JSON, atomically replacing ``path``."""
    with replacement(path) as stream:
        stream.write((json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8"))


def read_json(path: Path, *, error: type[TransduceError] = DataError, may_be_link: bool = False) -> dict[str, Any]:
    """Read the JSON object in ``path``.

    Raises ``error`` if the file is missing, not a regular file, not JSON, or not an object. ``may_be_link`` also
    accepts a link to a regular file.
    """
    try:
        with open_regular(path, error=error, may_be_link=may_be_link) as stream:
            value = json.loads(stream.read())
    except OSError as cause:
        raise error(f"{path} cannot be read: {cause.strerror or cause}") from cause
    except (ValueError, RecursionError, MemoryError) as cause:  # also invalid UTF-8 and deep nesting
        raise error(f"{path} is not valid JSON: {cause}") from cause
    if not isinstance(value, dict):
        raise error(f"{path} should hold a JSON object, got {type(value).__name__}")
    return value


def migrated(
    values: Mapping[str, Any],
    migrations: Sequence[Migration],
    *,
    where: Path,
    first: int = 0,
    error: type[TransduceError] = DataError,
) -> dict[str, Any]:
    """Migrate the values of a JSON file to the newest format and drop their ``format`` number.

    ``migrations[n]`` converts format ``first + n`` to ``first + n + 1``. A file without a number has format 0.
    Raises ``error`` for an unknown format.

    >>> migrated({"colour": "red"}, [lambda values: {"color": values["colour"]}], where=Path("paint.json"))
    {'color': 'red'}
    """
    newest, number = first + len(migrations), values.get("format", 0)
    if type(number) is not int or not first <= number <= newest:
        raise error(f"{where} has format {quoted(number)}, this version reads formats {first} to {newest}")
    result = {name: value for name, value in values.items() if name != "format"}
    for migrate in migrations[number - first :]:
        result = migrate(result)
    return result
