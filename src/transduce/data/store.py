"""The store: a table on disk whose named columns hold a sequence of ids or vectors in each row.

A folder with two files for each column (``columns.py``), ``store.json`` (a ``StoreSummary``) and a manifest. A store of
token ids records the fingerprint of its tokenizers.

A row is one encoding of a training example ("pair"). The encodings of a pair (several with BPE-dropout) are adjacent,
and so are the pairs of a corpus, in the order of the summary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Annotated, Any, Self, TypedDict, Unpack

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from transduce.data.columns import Column, ColumnKind, ColumnWriter, Ids, Ragged, Values, column_files, open_column
from transduce.errors import DataError, quoted, shown
from transduce.files import atomic_folder, migrated, read_json, verify_manifest, write_json, write_manifest
from transduce.text.chunks import chunks

__all__ = ["Block", "LeftOut", "Store", "StoreSummary", "open_store", "read_summary", "write_blocks", "write_store"]

SUMMARY_FILE = "store.json"
FORMAT = 4
MAX_ROWS_IN_MEMORY = 8192

Row = Mapping[str, Values]  # values by column
Block = Mapping[str, Sequence[Values] | Ragged]  # several rows, by column
Count = Annotated[int, Field(ge=0, le=1 << 48)]  # far more than any disk holds
Positive = Annotated[int, Field(ge=1, le=1 << 48)]
COLUMN_PATTERN = "^[a-z][a-z0-9_]{0,63}$"  # part of file names
ColumnName = Annotated[str, Field(pattern=COLUMN_PATTERN)]


class StoreSummary(BaseModel):
    """Counts of a store and of the pairs left out of it: ``n_read = n_examples + n_empty + n_too_long``.

    An example is one pair of texts, one document, one image with its text.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    columns: Annotated[dict[ColumnName, Annotated[ColumnKind, Field(discriminator="kind")]], Field(min_length=1)]
    n_values_of: dict[str, Positive]  # ids or vectors of all rows, by column
    tokenizer_fingerprint: str | None  # None: not made by a tokenizer
    max_length: Positive | None  # exclusive bound on rows of ids, so that EOS fits; None: no bound
    n_read: Positive  # input pairs
    n_examples: Positive  # stored pairs
    n_examples_of: dict[str, Count]  # stored pairs of each corpus, in store order
    n_encodings: Positive  # rows of each pair
    n_empty: Count  # pairs left out for an empty column
    n_too_long: Count  # pairs left out because of max_length

    @property
    def n_rows(self) -> int:
        """Number of rows in the store."""
        return self.n_examples * self.n_encodings

    @model_validator(mode="after")
    def _check_sums(self) -> Self:
        if self.columns.keys() != self.n_values_of.keys():
            raise ValueError("n_values_of should have the names of columns")
        if sum(self.n_examples_of.values()) != self.n_examples:
            raise ValueError("n_examples_of should add up to n_examples")
        if self.n_read != self.n_examples + self.n_empty + self.n_too_long:
            raise ValueError("n_read should be n_examples + n_empty + n_too_long")
        return self


@dataclass(slots=True)
class LeftOut:
    """Counts of pairs left out, updated by the iterables that yield the rows."""

    n_empty: int = 0
    n_too_long: int = 0


class StoreOptions(TypedDict, total=False):
    """What a store says of its rows, see ``StoreSummary``, and what was left out of it."""

    tokenizer_fingerprint: str | None
    max_length: int | None
    n_encodings: int
    left_out: LeftOut  # which the iterables of rows may update; it is read after the last one


def write_store(
    folder: Path,
    rows_of: Mapping[str, Iterable[Row]],
    columns: Mapping[str, ColumnKind],
    **options: Unpack[StoreOptions],
) -> StoreSummary:
    """Write the rows of each corpus into a new store at ``folder``, atomically.

    Rows are streamed in constant memory.

    Raises DataError if there is no row, if a row lacks a column or has an empty or invalid value, or if ``folder``
    exists and is not empty.

    >>> import tempfile
    >>> from transduce.data import Ids, Vectors
    >>> folder = Path(tempfile.mkdtemp()) / "store"
    >>> spoken = [{"sound": [[0.1, 0.2], [0.3, 0.4]], "words": [7, 8, 9]}]
    >>> summary = write_store(folder, {"spoken": spoken}, {"sound": Vectors(width=2), "words": Ids(vocab_size=10)})
    >>> open_store(folder).columns["words"].row(0).tolist()
    [7, 8, 9]
    """
    invalid = [name for name in columns if not re.fullmatch(COLUMN_PATTERN, name)]
    if invalid or not columns:
        got = quoted(invalid[0]) if invalid else "none"
        raise DataError(f"{folder}: column names should be of lower-case letters, digits and _, got {got}")
    names = columns.keys()
    widths = [(name, prod(kind.value_shape)) for name, kind in columns.items()]

    def n_numbers(row: Row) -> int:
        if row.keys() != names:
            raise DataError(f"a row has the columns {', '.join(row)}, the store {', '.join(names)}; rows need all")
        return sum([len(row[name]) * width for name, width in widths])

    def blocks(rows: Iterable[Row]) -> Iterator[Block]:
        for chunk in chunks(rows, MAX_ROWS_IN_MEMORY, n_numbers):
            yield {name: [row[name] for row in chunk] for name in names}

    return write_blocks(folder, {corpus: blocks(rows) for corpus, rows in rows_of.items()}, columns, **options)


def write_blocks(
    folder: Path,
    blocks_of: Mapping[str, Iterable[Block]],
    columns: Mapping[str, ColumnKind],
    *,
    tokenizer_fingerprint: str | None = None,
    max_length: int | None = None,
    n_encodings: int = 1,
    left_out: LeftOut | None = None,
) -> StoreSummary:
    """Like ``write_store``, for rows that come several at a time; each block has the same number in every column."""
    left_out, n_examples_of = left_out or LeftOut(), dict.fromkeys(blocks_of, 0)
    with atomic_folder(folder) as temporary:
        with ExitStack() as stack:
            writers = [ColumnWriter(temporary, name, kind, max_length, stack) for name, kind in columns.items()]
            for corpus, blocks in blocks_of.items():
                n_rows = 0
                for block in blocks:
                    for writer in writers:
                        writer.append(block[writer.name])
                    n_rows += len(block[writers[0].name])
                n_examples_of[corpus], rest = divmod(n_rows, n_encodings)
                if rest:
                    raise DataError(f"{corpus} has {n_rows:,} rows, not a multiple of n_encodings = {n_encodings:,}")
        n_examples = sum(n_examples_of.values())
        n_read = n_examples + left_out.n_empty + left_out.n_too_long
        if not n_examples:
            raise DataError(
                f"no pair is left to store: of {n_read:,} read, {left_out.n_empty:,} are empty and "
                f"{left_out.n_too_long:,} longer than max_length = {max_length}; use other text or raise max_length"
            )
        summary = StoreSummary(
            columns=dict(columns),
            n_values_of={writer.name: writer.n_values for writer in writers},
            tokenizer_fingerprint=tokenizer_fingerprint,
            max_length=max_length,
            n_read=n_read,
            n_examples=n_examples,
            n_examples_of=n_examples_of,
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
        """Number of rows."""
        return self.summary.n_rows


def open_store(
    folder: Path, columns: Mapping[str, ColumnKind] | None = None, *, tokenizer_fingerprint: str | None = None
) -> Store:
    """Check every file of the store at ``folder`` and open it for reading.

    ``columns``: the columns to open and their expected kinds; all columns by default.
    Raises DataError if a file is missing or corrupt, if a column is missing or of another kind, or if the store was
    made by other tokenizers.
    """
    summary = read_summary(folder)
    files = (path.name for name, kind in summary.columns.items() for path in column_files(folder, name, kind))
    verify_manifest(folder, error=DataError, required=[SUMMARY_FILE, *files])
    if tokenizer_fingerprint is not None and summary.tokenizer_fingerprint != tokenizer_fingerprint:
        made_with = (summary.tokenizer_fingerprint or "none")[:12]
        raise DataError(
            f"{folder} was made with tokenizer {shown(made_with)}, this one is {tokenizer_fingerprint[:12]}; "
            "prepare the data again"
        )
    opened = {}
    for name, expected in (columns or summary.columns).items():
        actual = summary.columns.get(name)
        kind = _merge_kinds(actual, expected)
        if kind is None:
            raise DataError(f"{folder}: column {name} should be {expected!r}, got {actual!r}; prepare the data again")
        n_rows, n_values = summary.n_rows, summary.n_values_of[name]
        opened[name] = open_column(folder, name, kind, n_rows=n_rows, n_values=n_values, max_length=summary.max_length)
    return Store(folder, summary, opened)


def _merge_kinds(actual: ColumnKind | None, expected: ColumnKind) -> ColumnKind | None:
    """Merge two kinds that agree up to an unknown vocabulary size; None if they differ."""
    if isinstance(actual, Ids) and isinstance(expected, Ids) and None in (actual.vocab_size, expected.vocab_size):
        return Ids(vocab_size=actual.vocab_size or expected.vocab_size)
    return actual if actual == expected else None


def read_summary(folder: Path) -> StoreSummary:
    """Return the summary of the store at ``folder`` alone. Raises DataError if it is missing or corrupt."""
    verify_manifest(folder, error=DataError, required=[SUMMARY_FILE], only=[SUMMARY_FILE])
    path = folder / SUMMARY_FILE
    values = read_json(path)
    if "format" not in values and "format_version" in values:  # the key's name in format 2
        values["format"] = values.pop("format_version")
    try:
        return StoreSummary.model_validate(migrated(values, [_with_named_columns, _with_examples], where=path, first=2))
    except ValidationError as error:
        problem = error.errors()[0]
        where, got = ".".join(map(str, problem["loc"])), quoted(problem["input"])
        reason = shown(problem["msg"].removeprefix("Value error, "))
        what = f"{shown(where)}: {reason}, got {got}" if where else reason
    except ValueError as error:
        what = str(error)
    raise DataError(f"{path} is not a valid store summary: {what}; prepare the data again")


def _with_named_columns(values: dict[str, Any]) -> dict[str, Any]:
    """Migrate from format 2, which had two unnamed columns and included EOS in token counts."""
    for name in ("n_pairs", "n_encodings", "n_src_tokens", "n_tgt_tokens"):
        if type(values.get(name)) is not int:
            raise ValueError(f"{name} should be an integer, got {quoted(values.get(name))}")
    n_rows = values["n_pairs"] * values["n_encodings"]
    return {name: value for name, value in values.items() if name not in ("n_src_tokens", "n_tgt_tokens")} | {
        "columns": {side: {"kind": "ids", "vocab_size": None} for side in ("src", "tgt")},
        "n_values_of": {side: values[f"n_{side}_tokens"] - n_rows for side in ("src", "tgt")},
    }


def _with_examples(values: dict[str, Any]) -> dict[str, Any]:
    """Migrate from format 3, which called all examples pairs."""
    return {name.replace("n_pairs", "n_examples"): value for name, value in values.items()}
