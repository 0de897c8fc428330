"""The glossaries of clients: terms for some of their requests, kept in a folder or until the server ends.

A glossary does not change: a new one takes its place. So a request that waits has the terms of its time.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from transduce.errors import DataError
from transduce.files import read_json, write_json
from transduce.serving.glossary_entries import as_tsv
from transduce.serving.http import ApiError
from transduce.terms import Term, Terms

__all__ = ["MAX_GLOSSARY_BYTES", "Dictionary", "Glossary", "GlossaryStore", "Pair"]

MAX_GLOSSARY_BYTES = 10 << 20  # of a request with entries, and of the entries of a glossary
MAX_CLIENT_BYTES = 64 << 20  # of the entries of all glossaries of a client
MAX_CLIENT_GLOSSARIES = 1000
MAX_READ_ENTRIES = 200_000  # of the terms that are ready for requests; those of the last request always are
FORMAT = 1  # of the files

Pair = tuple[str, str]  # source and target language, without regions


@dataclass(frozen=True, eq=False)
class Dictionary:
    """The entries of one pair of languages."""

    entries: Mapping[str, str]

    @cached_property
    def n_bytes(self) -> int:
        """The size of the entries as a table."""
        return len(as_tsv(self.entries).encode())


@dataclass(frozen=True, eq=False)
class Glossary:
    """A named glossary of a client, with a dictionary for each pair of languages."""

    owner: str  # the name of the client
    name: str
    dictionaries: Mapping[Pair, Dictionary]
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    created: str = field(
        default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )

    @property
    def n_bytes(self) -> int:
        """The size of all entries."""
        return sum(each.n_bytes for each in self.dictionaries.values())

    def dictionary(self, pair: Pair) -> Dictionary:
        """Return the dictionary of a pair of languages. Raises ApiError if there is none."""
        if pair not in self.dictionaries:
            languages = f"{pair[0].upper()} to {pair[1].upper()}"
            raise ApiError(404, f"Glossary not found: it has no dictionary from {languages}")
        return self.dictionaries[pair]

    def as_json(self) -> dict[str, Any]:
        """Return the glossary for a file."""
        dictionaries = [
            {"source": source, "target": target, "entries": dict(each.entries)}
            for (source, target), each in self.dictionaries.items()
        ]
        return {
            "format": FORMAT, "owner": self.owner, "name": self.name, "id": self.id, "created": self.created,
            "dictionaries": dictionaries,
        }  # fmt: skip


class GlossaryStore:
    """The glossaries of a server. Its methods may wait for a disk; threads may share it."""

    def __init__(self, folder: Path | None = None) -> None:
        """``folder`` keeps them over a restart. Raises DataError for a file in it that is no glossary, or damaged."""
        self._folder, self._lock, self._reading = folder, threading.Lock(), threading.Lock()
        self._glossaries = dict[str, Glossary]()  # by id
        self._terms: OrderedDict[tuple[Dictionary, ...], Terms] = OrderedDict()  # the last used come last
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise DataError(f"{folder} cannot keep glossaries: {error.strerror}; name another folder") from error
            read = sorted(map(_read, folder.glob("*.json")), key=lambda each: each.created)
            self._glossaries = {each.id: each for each in read}

    def all_of(self, owner: str) -> list[Glossary]:
        """Return the glossaries of a client, the oldest first."""
        with self._lock:
            return [each for each in self._glossaries.values() if each.owner == owner]

    def find(self, owner: str, id: str) -> Glossary:
        """Return a glossary of a client. Raises ApiError if it has none with this id."""
        with self._lock:
            return self._found(owner, id)

    def add(self, owner: str, name: str, dictionaries: Mapping[Pair, Mapping[str, str]]) -> Glossary:
        """Keep a new glossary. Raises ApiError if the client has too many, or too large ones."""
        glossary = Glossary(owner, name, {pair: Dictionary(each) for pair, each in dictionaries.items()})
        with self._lock:
            n = sum(each.owner == owner for each in self._glossaries.values())
            if n >= MAX_CLIENT_GLOSSARIES:
                raise ApiError(456, f"Quota exceeded: there are {n:,} glossaries; delete one")
            self._put(glossary)
        return glossary

    def change(
        self,
        owner: str,
        id: str,
        *,
        name: str = "",
        merged: Mapping[Pair, Mapping[str, str]] | None = None,
        replaced: Mapping[Pair, Mapping[str, str]] | None = None,
    ) -> Glossary:
        """Change a glossary: its name, and dictionaries that are ``merged`` into those it has, or ``replaced``.

        Raises ApiError as ``find`` and ``add``.
        """
        with self._lock:
            old = self._found(owner, id)
            dictionaries = dict(old.dictionaries)
            for pair, entries in (merged or {}).items():
                known = dictionaries[pair].entries if pair in dictionaries else {}
                dictionaries[pair] = Dictionary({**known, **entries})
            for pair, entries in (replaced or {}).items():
                dictionaries[pair] = Dictionary(entries)
            changed = replace(old, name=name or old.name, dictionaries=dictionaries)
            self._put(changed)
            return changed

    def remove(self, owner: str, id: str, pair: Pair | None = None) -> None:
        """Remove a glossary, or its dictionary of a pair of languages. Raises ApiError if there is none."""
        with self._lock:
            old = self._found(owner, id)
            if pair is not None:
                old.dictionary(pair)
                self._put(replace(old, dictionaries={k: each for k, each in old.dictionaries.items() if k != pair}))
                return
            if self._folder is not None:
                try:
                    self._path(id).unlink(missing_ok=True)
                except OSError as error:
                    raise ApiError(503, f"The glossary cannot be removed: {error.strerror}") from error
            del self._glossaries[id]

    def terms(self, owner: str, ids: Sequence[str], pair: Pair) -> Terms:
        """Return the terms of glossaries for a pair of languages; of equal sources, the first glossary's counts.

        They are read once, until a glossary changes. Raises ApiError for a glossary that does not exist, or has no
        dictionary for the pair.
        """
        with self._lock:
            key = tuple(self._found(owner, id).dictionary(pair) for id in ids)
        if (known := self._known_terms(key)) is not None:
            return known
        with self._reading:  # one at a time: a large one takes seconds
            if (known := self._known_terms(key)) is not None:
                return known
            terms = Terms(tuple(Term(*each) for dictionary in key for each in dictionary.entries.items()))
            terms.found(terms.terms[0].source)  # makes its index, here rather than where models wait for it
            with self._lock:
                self._terms[key] = terms
                while len(self._terms) > 1 and sum(len(each.terms) for each in self._terms.values()) > MAX_READ_ENTRIES:
                    self._terms.popitem(last=False)
            return terms

    def _known_terms(self, key: tuple[Dictionary, ...]) -> Terms | None:
        with self._lock:
            if key in self._terms:
                self._terms.move_to_end(key)
            return self._terms.get(key)

    def _found(self, owner: str, id: str) -> Glossary:
        glossary = self._glossaries.get(id)
        if glossary is None or glossary.owner != owner:
            raise ApiError(404, "Glossary not found: there is none with this id")
        return glossary

    def _put(self, glossary: Glossary) -> None:
        """Keep a glossary in the place of the one with its id, if there is one, whole or not at all."""
        n_others = sum(
            each.n_bytes
            for each in self._glossaries.values()
            if each.owner == glossary.owner and each.id != glossary.id
        )
        if glossary.n_bytes > MAX_GLOSSARY_BYTES:
            raise ApiError(413, f"The entries of the glossary exceed {MAX_GLOSSARY_BYTES:,} bytes")
        if n_others + glossary.n_bytes > MAX_CLIENT_BYTES:
            raise ApiError(456, f"Quota exceeded: all glossaries together exceed {MAX_CLIENT_BYTES:,} bytes")
        if self._folder is not None:
            try:
                write_json(self._path(glossary.id), glossary.as_json())
            except (OSError, DataError) as error:
                reason = getattr(error, "strerror", None) or "the disk is full or read-only"
                raise ApiError(503, f"The glossary cannot be kept: {reason}") from error
        self._glossaries[glossary.id] = glossary

    def _path(self, id: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{id}.json"


def _read(path: Path) -> Glossary:
    """Read the file of a glossary. Raises DataError."""
    values = read_json(path)
    try:
        if values["format"] != FORMAT or values["id"] != path.stem:
            raise ValueError
        dictionaries = {
            (each["source"], each["target"]): Dictionary({str(key): str(to) for key, to in each["entries"].items()})
            for each in values["dictionaries"]
        }
        owner, name, id, created = (str(values[key]) for key in ("owner", "name", "id", "created"))
        return Glossary(owner, name, dictionaries, id, created)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise DataError(f"{path} is no glossary of format {FORMAT}; move it away") from None
