"""Files of translations: read as pairs, and used as a memory without building one first."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from transduce.errors import DataError
from transduce.memories.building import NoPairsError, write_memory
from transduce.memories.memory import Memory
from transduce.memories.schema import Pair, Row, neighbour_of

__all__ = ["find_memory", "open_memory", "pairs_of_file"]

SQLITE = b"SQLite format 3\0"


def open_memory(path: Path, *, src_language: str, tgt_language: str) -> Memory:
    """Open a memory; of another file of translations, make one that lasts as long as the object.

    Raises DataError if the file has no pair of these languages, or cannot be read.
    """
    memory = find_memory(path, src_language=src_language, tgt_language=tgt_language)
    if memory is None:
        raise DataError(f"{path} has no translation from {src_language} to {tgt_language}")
    return memory


def find_memory(path: Path, *, src_language: str, tgt_language: str) -> Memory | None:
    """Open a memory as ``open_memory`` does; None if a file that must be read has no such pair."""
    if path.suffix == ".tm" or not path.is_file() or _is_database(path):
        return Memory(path)
    pairs = pairs_of_file(path, src_language, tgt_language)
    folder = mkdtemp(prefix="transduce-memory-")
    built = Path(folder, "built.tm")
    try:
        write_memory(built, [pairs], src_language=src_language, tgt_language=tgt_language)
        memory = Memory(built)
    except BaseException as error:
        rmtree(folder, ignore_errors=True)
        if isinstance(error, NoPairsError):
            return None
        raise
    weakref.finalize(memory, rmtree, folder, ignore_errors=True)
    return memory


def pairs_of_file(path: Path, src: str, tgt: str) -> Iterable[Pair | Row]:
    """Return the pairs of a memory, or of a file of translations, for ``write_memory``.

    Raises DataError for a memory of other languages, and a line of a table without a TAB.
    """
    from transduce.documents import pairs_of

    if path.suffix == ".tm" or (path.is_file() and _is_database(path)):
        memory = Memory(path)
        if memory.languages != (src, tgt):
            raise DataError(
                f"{path} is a memory from {memory.languages[0]} to {memory.languages[1]}, not {src} to {tgt}"
            )
        return memory.rows()
    if {".tsv", ".txt"} & set(path.suffixes):
        return _pairs_of_lines(path)
    return (
        (each.src, each.tgt, neighbour_of(each.before), neighbour_of(each.after))
        if each.before or each.after
        else (each.src, each.tgt)
        for each in pairs_of(path, src, tgt, are_all_kept=True)
    )


def _pairs_of_lines(path: Path) -> Iterator[tuple[str, str]]:
    from transduce.files import read_lines

    for number, line in enumerate(read_lines(path), start=1):
        source, tab, rest = line.partition("\t")
        if line and not tab:
            raise DataError(f"{path}:{number} has no TAB between source and target; write source TAB target")
        yield source, rest.partition("\t")[0]


def _is_database(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(SQLITE)) == SQLITE
