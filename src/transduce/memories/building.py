"""Writing a memory from pairs."""

from __future__ import annotations

import sqlite3
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path

from transduce.errors import DataError
from transduce.files import remove_leftovers
from transduce.files.writing import replacement
from transduce.memories.abstraction import abstract
from transduce.memories.schema import NOTHING, SCHEMA, Pair, Row, hash_of, neighbour_of, packed, word_hashes
from transduce.patterns import compiled_on_use
from transduce.text import normalise
from transduce.text.normalise import composed, without_surrogates

__all__ = ["NoPairsError", "write_memory"]

_SPACE, _CONTROLS = compiled_on_use("[^\\S\u00a0\u2007\u202f\u3000]+"), compiled_on_use("[\0-\x08\x0e-\x1b\x7f\ufeff]")


class NoPairsError(DataError):
    """The texts of a memory have no pair."""


def write_memory(path: Path, texts: Iterable[Iterable[Pair | Row]], *, src_language: str, tgt_language: str) -> int:
    """Write a memory of pairs, in the order of the texts that they are from; return their number, equal ones once.

    The neighbours of a pair, which a row has itself, are its context: of translations of a source between the same
    neighbours, the last is kept. Pairs without a word in the source or the target are left out. Raises
    NoPairsError if none is left, and DataError if the disk is full; a file that was there then stays as it was.
    """
    languages = (src_language, tgt_language)
    if path.parent.is_dir():
        remove_leftovers(path)  # each as large as the memory
    with (
        replacement(path) as stream,
        _errors_named(path),
        closing(sqlite3.connect(stream.name, isolation_level=None)) as database,
    ):
        database.execute("PRAGMA journal_mode = OFF")
        database.execute("PRAGMA synchronous = OFF")
        for statement in SCHEMA:
            database.execute(statement)
        database.execute("BEGIN")
        database.execute("INSERT INTO languages VALUES (?, ?)", languages)
        n_pairs = _write_pairs(database, chain.from_iterable(map(_in_context, texts)), languages)
        if not n_pairs:
            raise NoPairsError(f"there is no translation from {src_language} to {tgt_language}; {path} is not written")
        database.execute("CREATE INDEX by_key ON pairs (key)")
        database.execute("COMMIT")
    return n_pairs


@contextmanager
def _errors_named(path: Path) -> Iterator[None]:
    """Name the file in errors of the database, such as a full disk."""
    try:
        yield
    except sqlite3.Error as error:
        raise DataError(f"{path} cannot be written: {error}") from None


def _in_context(pairs: Iterable[Pair | Row]) -> Iterator[Row]:
    """Yield each pair of a text, on one line each, with the hashes of the sources before and after."""
    before: int = NOTHING
    waiting: tuple[str, str, list[int]] | None = None
    for source, target, *own in chain(pairs, [("", "")]):
        source, target = _on_one_line(source), _on_one_line(target)
        if waiting is not None:
            near = waiting[2] or (before, neighbour_of(source))
            yield *waiting[:2], *near
            before = neighbour_of(waiting[0])
        has_words = any(map(str.isalpha, normalise(source))) and normalise(target) != ""
        waiting = (source, target, own) if has_words else None


def _on_one_line(text: str) -> str:
    """Return a text in NFC whose spaces are single, except those that do not break lines, and without controls."""
    return _SPACE.sub(" ", _CONTROLS.sub("", composed(without_surrogates(text)))).strip()


def _write_pairs(database: sqlite3.Connection, rows: Iterable[Row], languages: tuple[str, str]) -> int:
    """Write pairs, and which words they have."""
    numbers, counts = dict[int, int](), Counter[int]()
    latest, replaced = dict[int, int](), set[int]()  # by source and neighbours
    ids_of: dict[int, array[int]] = defaultdict(lambda: array("I"))
    for row in rows:
        number = numbers.setdefault(hash(row), len(numbers) + 1)
        counts[number] += 1
        place = hash((normalise(row[0]), *row[2:]))
        replaced.add(latest.get(place, number))
        replaced.discard(number)
        latest[place] = number
        if counts[number] > 1:
            continue
        key = abstract(row[0], languages).key
        words = word_hashes(key)
        for word in set(words):
            ids_of[word].append(number)
        database.execute(
            "INSERT INTO pairs (id, key, source, target, before, after, words) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (number, hash_of(key), *row, packed(words)),
        )
    database.executemany("UPDATE pairs SET n = ? WHERE id = ?", ((n, each) for each, n in counts.items() if n > 1))
    database.executemany("INSERT INTO words VALUES (?, ?)", ((word, packed(ids_of[word])) for word in sorted(ids_of)))
    database.executemany("DELETE FROM pairs WHERE id = ?", ((each,) for each in replaced))
    return len(numbers) - len(replaced)
