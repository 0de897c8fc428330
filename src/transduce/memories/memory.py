"""A memory that is asked for texts: what was translated just so, and what is alike."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from threading import Lock

from transduce.errors import DataError, MissingFileError
from transduce.imports import numpy as np
from transduce.memories.abstraction import Abstraction, abstract, adapted
from transduce.memories.schema import APPLICATION_ID, FORMAT, NOTHING, Row, hash_of, neighbour_of, unpacked, word_hashes
from transduce.memories.similarity import similarity
from transduce.text import normalise

__all__ = ["MIN_SIMILARITY", "Match", "Memory"]

MIN_SIMILARITY = 0.75
ALMOST = 0.99  # the similarity of a text with the same words whose translation is not certain
MAX_EQUAL = 1000  # pairs of one pattern that are looked at
MAX_ALIKE = 100  # pairs whose words are compared
MAX_WORDS = 1000  # of a text for which similar ones are searched
SPARE_WORDS = 2  # that are looked up besides those of which a similar text has one


@dataclass(frozen=True, slots=True)
class Match:
    """A pair of a memory. If it is exact, the numbers and placeholders of the target are those of the text."""

    source: str
    target: str
    similarity: float  # 1: exact
    is_in_context: bool = False  # the text before and the text after are those of the memory, too


class Memory:
    """A translation memory. Threads may share one."""

    def __init__(self, path: Path) -> None:
        """Open a file of ``transduce memory build``. Raises DataError if it is none."""
        self.path, self._lock = path, Lock()
        if not path.is_file():
            raise MissingFileError(path, where="transduce memory build makes a memory")
        self._database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        self.languages: tuple[str, str] = self._checked()

    def _checked(self) -> tuple[str, str]:
        with self._reading():
            if self._number("PRAGMA application_id") != APPLICATION_ID:
                raise self._foreign()
            if (version := self._number("PRAGMA user_version")) != FORMAT:
                raise DataError(f"{self.path} has format {version}, known is {FORMAT}; build it again")
            src, tgt = self._database.execute("SELECT src, tgt FROM languages").fetchone()
            return src, tgt

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Let one thread at a time read, and name the file in errors."""
        try:
            with self._lock:
                yield
        except sqlite3.Error as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
                raise self._foreign() from None
            raise DataError(f"{self.path} cannot be read: {error}; build it again: transduce memory build") from None

    def _foreign(self) -> DataError:
        return DataError(f"{self.path} is no file of transduce memory build; make one of it: transduce memory build")

    def _number(self, query: str) -> int:
        return int(self._database.execute(query).fetchone()[0])

    def __len__(self) -> int:
        """Return the number of its pairs."""
        with self._reading():
            return self._number("SELECT count(*) FROM pairs")

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield all pairs, in the order in which they were read."""
        with self._reading():
            return iter(self._database.execute("SELECT source, target FROM pairs ORDER BY id").fetchall())

    def rows(self) -> Iterator[Row]:
        """Yield all pairs with the hashes of their neighbours, as often as they were read."""
        with self._reading():
            rows = self._database.execute("SELECT n, source, target, before, after FROM pairs ORDER BY id").fetchall()
        return chain.from_iterable(repeat(tuple(row), n) for n, *row in rows)

    def match(self, text: str, before: str = "", after: str = "") -> Match | None:
        """Return the translation of a text that the memory has, also with other numbers and placeholders; or None.

        ``before`` and ``after``: its neighbours. A pair with the same neighbours comes first, then one with the same
        numbers; of others, the translation that was read most often, or last.
        """
        with self._reading():
            wanted = abstract(text, self.languages)
            neighbours = [neighbour_of(each) for each in (before, after)]
            found = self._database.execute(
                "SELECT source, target, before, after, n FROM pairs WHERE key = ? ORDER BY id DESC LIMIT ?",
                (hash_of(wanted.key), MAX_EQUAL),
            )
            best: dict[tuple[int, bool, bool], dict[str, tuple[int, str]]] = {}
            for source, target, *context, n in found:
                adapted_to = self._adapted(source, target, wanted)
                if adapted_to is None:
                    continue
                n_alike = sum(a == b for a, b in zip(context, neighbours, strict=True) if b != NOTHING)
                of_rank = best.setdefault((n_alike, normalise(source) == wanted.text, context == neighbours), {})
                of_rank[adapted_to] = (of_rank.get(adapted_to, (0, ""))[0] + n, source)
            if not best:
                return None
            rank = max(best)
            target, (_, source) = max(best[rank].items(), key=lambda each: each[1][0])
            is_known = any(each != NOTHING for each in neighbours)
            in_context = is_known and rank[0] == sum(each != NOTHING for each in neighbours)
            return Match(source, target, 1.0, is_in_context=in_context)

    def _adapted(self, source: str, target: str, wanted: Abstraction) -> str | None:
        known = abstract(source, self.languages)
        return adapted(known, target, wanted, self.languages) if known.key == wanted.key else None

    def fuzzy(self, text: str, *, n: int = 5, least: float = MIN_SIMILARITY) -> list[Match]:
        """Return up to ``n`` pairs whose sources are alike, the most similar first; exact ones included.

        Similarity is 1 less the share of words that must be changed; numbers are equal to numbers.
        """
        with self._reading():
            wanted = abstract(text, self.languages)
            words = word_hashes(wanted.key)
            ids = self._candidates(words, least)
            found = self._database.execute(
                f"SELECT source, target, key, words FROM pairs WHERE id IN ({_marks(ids)})", ids
            )
            alike = [(similarity(words, unpacked(of_source)), *pair) for *pair, of_source in found]
            alike = sorted((each for each in alike if each[0] >= least), key=lambda each: -each[0])[:n]
            matches, key = list[Match](), hash_of(wanted.key)
            for share, source, target, of_source in alike:
                exact = self._adapted(source, target, wanted) if of_source == key else None
                matches.append(Match(source, exact or target, 1.0 if exact else min(share, ALMOST)))
            return sorted(matches, key=lambda each: -each.similarity)

    def _candidates(self, words: list[int], least: float) -> list[int]:
        """Return the ids of the pairs that share the most words with a text, and enough to be similar.

        Of n words, at most n (1 - least) / least are changed, so of so many words and one more, a similar text has one.
        The rarest are looked up.
        """
        distinct = [*set(words)][: MAX_WORDS + 1]
        n_changed = int(len(words) * (1 - least) / least)
        sizes = self._database.execute(
            f"SELECT word, length(pairs) FROM words WHERE word IN ({_marks(distinct)})", distinct
        ).fetchall()
        n_needed = n_changed + 1 + SPARE_WORDS - (len(distinct) - len(sizes))  # unknown words are the rarest
        rarest = [word for word, _ in sorted(sizes, key=lambda each: each[1])[: max(0, n_needed)]]
        n_shared = min(n_changed + 1 + SPARE_WORDS, len(distinct)) - n_changed
        if len(rarest) < n_shared or n_shared < 1 or len(distinct) > MAX_WORDS:
            return []
        blobs = self._database.execute(f"SELECT pairs FROM words WHERE word IN ({_marks(rarest)})", rarest)
        ids, counts = np.unique(np.concatenate([np.frombuffer(blob, "<u4") for (blob,) in blobs]), return_counts=True)
        ids, counts = ids[counts >= n_shared], counts[counts >= n_shared]
        chosen: list[int] = ids[np.argsort(-counts, kind="stable")[:MAX_ALIKE]].tolist()
        return chosen


def _marks(values: list[int]) -> str:
    return ",".join("?" * len(values))
