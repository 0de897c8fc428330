"""Files that hold a JSON object: written whole, read warily, and brought to the newest format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transduce.errors import DataError, TransduceError, quoted
from transduce.files.regular import open_regular
from transduce.files.writing import replacement

__all__ = ["Migration", "migrated", "read_json", "write_json"]

Migration = Callable[[dict[str, Any]], dict[str, Any]]  # the values of one format to those of the next


def write_json(path: Path, value: object) -> None:
    """Write ``value`` as indented JSON, whole or not at all, in place of whatever was there."""
    with replacement(path) as stream:
        stream.write((json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8"))


def read_json(path: Path, *, error: type[TransduceError] = DataError, may_be_link: bool = False) -> dict[str, Any]:
    """The JSON object in ``path``.

    Raises ``error`` if the file is missing, is no regular one, is not JSON or holds no object. With ``may_be_link`` a
    link to a regular file is one, too.
    """
    try:
        with open_regular(path, error=error, may_be_link=may_be_link) as stream:
            value = json.loads(stream.read())
    except OSError as cause:
        raise error(f"{path} cannot be read: {cause.strerror or cause}") from cause
    except (ValueError, RecursionError, MemoryError) as cause:  # bytes that are not UTF-8, or brackets without end
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
    """The values of a JSON file as the newest format has them, without the number of their format (``format``).

    ``migrations[n]`` makes what format ``first + n + 1`` has of what format ``first + n`` had. A file without a number
    is of format 0, of before there were numbers. Raises ``error`` if the number is not known.

    >>> migrated({"colour": "red"}, [lambda values: {"color": values["colour"]}], where=Path("paint.json"))
    {'color': 'red'}
    """
    newest, found = first + len(migrations), values.get("format", 0)
    if type(found) is not int or not first <= found <= newest:
        raise error(f"{where} has format {quoted(found)}, this version reads formats {first} to {newest}")
    now = {name: value for name, value in values.items() if name != "format"}
    for migrate in migrations[found - first :]:
        now = migrate(now)
    return now
