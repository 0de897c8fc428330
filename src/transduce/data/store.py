"""The store: rows of named columns on disk, each row with a list of ids, or of vectors, in every column.

A folder with two files for each column (``columns.py``); ``store.json``, a ``StoreSummary``; and a manifest. Where
there are ids of text, it is bound to the tokenizers that made them.

A row is an encoding of a pair, or of whatever else a task learns from. Where pairs have several (BPE-dropout), those of
one pair stand together; and the pairs of one corpus stand together, in the order of the summary.
"""

# N rows in the store

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from transduce.data.columns import Column, ColumnKind, ColumnWriter, Ids, Values, column_files, open_column
from transduce.errors import DataError, quoted, shown
from transduce.files import atomic_folder, migrated, read_json, verify_manifest, write_json, write_manifest
from transduce.text.chunks import chunks

__all__ = ["LeftOut", "Store", "StoreSummary", "open_store", "write_store"]

SUMMARY_FILE = "store.json"
FORMAT = 3
N_ROWS_AT_A_TIME = 8192  # at most: so many are in memory at a time

Row = Mapping[str, Values]  # what it has in each column
Count = Annotated[int, Field(ge=0, le=1 << 48)]  # more ids than that are on no disk
Positive = Annotated[int, Field(ge=1, le=1 << 48)]
COLUMN_PATTERN = "^[a-z][a-z0-9_]{0,63}$"  # files are called by it
ColumnName = Annotated[str, Field(pattern=COLUMN_PATTERN)]


class StoreSummary(BaseModel):
    """What is in a store and what was left out: ``n_read = n_pairs + n_empty + n_too_long``.

    Here a pair is what a task learns from at a time, be it of two columns, of one or of three.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    columns: Annotated[dict[ColumnName, Annotated[ColumnKind, Field(discriminator="kind")]], Field(min_length=1)]
    n_values_of: dict[str, Positive]  # ids or vectors of all rows, by column
    tokenizer_fingerprint: str | None  # None where no tokenizer had a part in it
    max_length: Positive | None  # all rows of ids are shorter, so that an end symbol fits, too; None: of any length
    n_read: Positive  # pairs that came in
    n_pairs: Positive  # pairs that were kept
    n_pairs_of: dict[str, Count]  # those of each corpus, in the order of the store
    n_encodings: Positive  # rows of each pair
    n_empty: Count  # pairs left out because there was nothing in a column
    n_too_long: Count  # pairs left out because of max_length

    @property
    def n_rows(self) -> int:
        """How many rows the store has."""
        return self.n_pairs * self.n_encodings

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if self.columns.keys() != self.n_values_of.keys():
            raise ValueError("n_values_of should have the names of columns")
        if sum(self.n_pairs_of.values()) != self.n_pairs:
            raise ValueError("n_pairs_of should add up to n_pairs")
        if self.n_read != self.n_pairs + self.n_empty + self.n_too_long:
            raise ValueError("n_read should be n_pairs + n_empty + n_too_long")
        return self


@dataclass(slots=True)
class LeftOut:
    """What did not become rows, counted by whoever makes them."""

    n_empty: int = 0
    n_too_long: int = 0


def write_store(
    folder: Path,
    rows_of: Mapping[str, Iterable[Row]],
    columns: Mapping[str, ColumnKind],
    *,
    tokenizer_fingerprint: str | None = None,
    max_length: int | None = None,
    n_encodings: int = 1,
    left_out: LeftOut | None = None,
) -> StoreSummary:
    """Write the rows of each corpus into a new store at ``folder``.

    The rows are read as a stream; memory does not grow with their number. ``left_out`` is looked at when all have come.
    The folder appears whole or not at all.

    Raises DataError if no row comes, if one has not every column, or in one of them nothing or what cannot be there, or
    if ``folder`` is there already and not empty.

    >>> import tempfile
    >>> from transduce.data import Ids, Vectors
    >>> folder = Path(tempfile.mkdtemp()) / "store"
    >>> spoken = [{"sound": [[0.1, 0.2], [0.3, 0.4]], "words": [7, 8, 9]}]
    >>> summary = write_store(folder, {"spoken": spoken}, {"sound": Vectors(width=2), "words": Ids(vocab_size=10)})
    >>> open_store(folder).columns["words"].row(0).tolist()
    [7, 8, 9]
    """
    odd = [name for name in columns if not re.fullmatch(COLUMN_PATTERN, name)]
    if odd or not columns:
        got = quoted(odd[0]) if odd else "none"
        raise DataError(f"{folder}: columns should have names of small letters, digits and _, got {got}")
    names = columns.keys()
    widths = [(name, prod(kind.value_shape)) for name, kind in columns.items()]

    def n_numbers(row: Row) -> int:
        if row.keys() != names:
            raise DataError(f"a row has the columns {', '.join(row)}, the store {', '.join(names)}; give every row all")
        return sum([len(row[name]) * width for name, width in widths])

    left_out, n_pairs_of = left_out or LeftOut(), dict.fromkeys(rows_of, 0)
    with atomic_folder(folder) as temporary:
        with ExitStack() as stack:
            writers = [ColumnWriter(temporary, name, kind, max_length, stack) for name, kind in columns.items()]
            for corpus, rows in rows_of.items():
                n_rows = 0
                for chunk in chunks(rows, N_ROWS_AT_A_TIME, n_numbers):
                    for writer in writers:
                        writer.append([row[writer.name] for row in chunk])
                    n_rows += len(chunk)
                n_pairs_of[corpus], rest = divmod(n_rows, n_encodings)
                if rest:
                    raise DataError(f"{corpus} has {n_rows:,} rows, no multiple of n_encodings = {n_encodings:,}")
        n_pairs = sum(n_pairs_of.values())
        n_read = n_pairs + left_out.n_empty + left_out.n_too_long
        if not n_pairs:
            raise DataError(
                f"nothing can be stored: of {n_read:,} that came, {left_out.n_empty:,} are empty and "
                f"{left_out.n_too_long:,} longer than max_length = {max_length}; give other text or raise max_length"
            )
        summary = StoreSummary(
            columns=dict(columns),
            n_values_of={writer.name: writer.n_values for writer in writers},
            tokenizer_fingerprint=tokenizer_fingerprint,
            max_length=max_length,
            n_read=n_read,
            n_pairs=n_pairs,
            n_pairs_of=n_pairs_of,
            n_encodings=n_encodings,
            n_empty=left_out.n_empty,
            n_too_long=left_out.n_too_long,
        )
        write_json(temporary / SUMMARY_FILE, {"format": FORMAT, **summary.model_dump()})
        write_manifest(temporary)
    return summary


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """A store open for reading."""

    folder: Path
    summary: StoreSummary
    columns: Mapping[str, Column]

    def __len__(self) -> int:
        """How many rows there are."""
        return self.summary.n_rows


def open_store(
    folder: Path, columns: Mapping[str, ColumnKind] | None = None, *, tokenizer_fingerprint: str | None = None
) -> Store:
    """Check every file of the store at ``folder`` and open it for reading.

    ``columns``: those to read, as they should be; all that there are where they are left out.
    Raises DataError if a file is missing or corrupt, or if the store has not these columns or is of other tokenizers.
    """
    verify_manifest(folder, error=DataError, required=[SUMMARY_FILE], only=[SUMMARY_FILE])
    summary = _read_summary(folder / SUMMARY_FILE)
    files = (path.name for name, kind in summary.columns.items() for path in column_files(folder, name, kind))
    verify_manifest(folder, error=DataError, required=[SUMMARY_FILE, *files])
    if tokenizer_fingerprint is not None and summary.tokenizer_fingerprint != tokenizer_fingerprint:
        made_with = (summary.tokenizer_fingerprint or "none")[:12]
        raise DataError(
            f"{folder} was made with tokenizer {shown(made_with)}, this one is {tokenizer_fingerprint[:12]}; "
            "prepare the data again"
        )
    opened = {}
    for name, wanted in (columns or summary.columns).items():
        found = summary.columns.get(name)
        kind = _agreed(found, wanted)
        if kind is None:
            raise DataError(f"{folder}: column {name} should be {wanted!r}, got {found!r}; prepare the data again")
        n_rows, n_values = summary.n_rows, summary.n_values_of[name]
        opened[name] = open_column(folder, name, kind, n_rows=n_rows, n_values=n_values, max_length=summary.max_length)
    return Store(folder, summary, opened)


def _agreed(found: ColumnKind | None, wanted: ColumnKind) -> ColumnKind | None:
    """What is known of a column from both; None if they are not the same."""
    if isinstance(found, Ids) and isinstance(wanted, Ids) and None in (found.vocab_size, wanted.vocab_size):
        return Ids(vocab_size=found.vocab_size or wanted.vocab_size)
    return found if found == wanted else None


def _read_summary(path: Path) -> StoreSummary:
    values = read_json(path)
    if "format" not in values and "format_version" in values:  # what format 2 called it
        values["format"] = values.pop("format_version")
    try:
        return StoreSummary.model_validate(migrated(values, [_with_named_columns], where=path, first=2))
    except ValidationError as error:
        problem = error.errors()[0]
        where, got = ".".join(map(str, problem["loc"])), quoted(problem["input"])
        reason = shown(problem["msg"].removeprefix("Value error, "))
        what = f"{shown(where)}: {reason}, got {got}" if where else reason
    except ValueError as error:
        what = str(error)
    raise DataError(f"{path} is not the summary of a store: {what}; prepare the data again")


def _with_named_columns(values: dict[str, Any]) -> dict[str, Any]:
    """Of format 2, which had two columns and counted their end symbols, too."""
    for name in ("n_pairs", "n_encodings", "n_src_tokens", "n_tgt_tokens"):
        if type(values.get(name)) is not int:
            raise ValueError(f"{name} should be a whole number, got {quoted(values.get(name))}")
    n_rows = values["n_pairs"] * values["n_encodings"]
    return {name: value for name, value in values.items() if name not in ("n_src_tokens", "n_tgt_tokens")} | {
        "columns": {side: {"kind": "ids", "vocab_size": None} for side in ("src", "tgt")},
        "n_values_of": {side: values[f"n_{side}_tokens"] - n_rows for side in ("src", "tgt")},
    }
