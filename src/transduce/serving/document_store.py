"""Translated documents, kept in a temporary folder until they are fetched.

They are bounded in number, size and age: the oldest makes room.
"""

from __future__ import annotations

import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from transduce.serving.http import ApiError

__all__ = ["DocumentStore", "KeptDocument"]

MAX_KEPT, MAX_KEPT_BYTES, MAX_AGE_S = 200, 1 << 30, 3600.0
MAX_AT_ONCE = 8  # documents that are translated; of further ones, clients are told to wait


@dataclass(frozen=True, slots=True)
class KeptDocument:
    """A translated document in the temporary folder."""

    path: Path
    name: str
    n_bytes: int
    since: float


class DocumentStore:
    """The translated documents of a server. ``clock`` is that of their age, in seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None  # made when the first document comes
        self._kept = dict[str, KeptDocument]()  # by key, the oldest first
        self._clock, self._lock, self._n_working = clock, threading.Lock(), 0

    def require_room(self) -> None:
        """Raise ApiError if too many documents are translated."""
        if self._n_working >= MAX_AT_ONCE:
            raise ApiError(429, "Too many documents are translated at once", retry_after_s=10)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count a document that is translated within the block. Raises ApiError if there are too many."""
        self.require_room()
        self._n_working += 1
        try:
            yield
        finally:
            self._n_working -= 1

    def keep(self, data: bytes, name: str) -> str:
        """Keep a document; return the key that nobody can guess."""
        key = secrets.token_hex(16)
        with self._lock:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="transduce-")
            path = Path(self._folder.name) / key
            path.write_bytes(data)
            self._kept[key] = KeptDocument(path, name, len(data), self._clock())
            self._make_room()
        return key

    def find(self, key: str) -> KeptDocument | None:
        """Return the document of a key; None if there is none, or not any more."""
        with self._lock:
            self._make_room()
            return self._kept.get(key)

    def remove(self, key: str) -> None:
        """Remove a document."""
        with self._lock:
            if (found := self._kept.pop(key, None)) is not None:
                found.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove all."""
        with self._lock:
            self._kept.clear()
            if self._folder is not None:
                self._folder.cleanup()
                self._folder = None

    def _make_room(self) -> None:
        n_bytes, oldest = sum(each.n_bytes for each in self._kept.values()), self._clock() - MAX_AGE_S
        for key, each in list(self._kept.items()):
            if len(self._kept) <= MAX_KEPT and n_bytes <= MAX_KEPT_BYTES and each.since >= oldest:
                return
            n_bytes -= each.n_bytes
            each.path.unlink(missing_ok=True)
            del self._kept[key]
