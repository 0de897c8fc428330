"""Translated documents, kept in temporary files until they are fetched.

They are bounded in number, size and age: the oldest makes room.
"""

from __future__ import annotations

import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from transduce.serving.http import ApiError

__all__ = ["DocumentStore", "KeptDocument"]

MAX_KEPT, MAX_KEPT_BYTES, MAX_AGE_S = 200, 1 << 30, 3600.0
BLOCK_BYTES = 256 << 10  # that are read together
MAX_AT_ONCE = 8  # documents that are read and translated; of further ones, clients are told to wait


class KeptDocument:
    """A translated document in a file without a name, so that nothing of it is left when the server ends, however."""

    def __init__(self, data: bytes, name: str, since: float) -> None:
        self.name, self.n_bytes, self.since = name, len(data), since
        self._lock, self._file = threading.Lock(), tempfile.TemporaryFile()  # noqa: SIM115 - closed at the end
        self._file.write(data)
        self._file.flush()

    def __del__(self) -> None:
        """Close the file when nobody reads it any more: it may have made room for others meanwhile."""
        if hasattr(self, "_file"):
            self._file.close()

    def blocks(self) -> Iterator[bytes]:
        """Yield the content."""
        for start in range(0, self.n_bytes, BLOCK_BYTES):
            with self._lock:
                self._file.seek(start)
                block = self._file.read(BLOCK_BYTES)
            yield block


class DocumentStore:
    """The translated documents of a server. ``clock`` is that of their age, in seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept = dict[str, KeptDocument]()  # by key, the oldest first
        self._clock, self._lock, self._n_working = clock, threading.Lock(), 0

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count a document that is read and translated within the block. Raises ApiError if there are too many."""
        if self._n_working >= MAX_AT_ONCE:
            raise ApiError(429, "Too many documents are translated at once", retry_after_s=10)
        self._n_working += 1
        try:
            yield
        finally:
            self._n_working -= 1

    def keep(self, data: bytes, name: str) -> str:
        """Keep a document; return the key that nobody can guess. Raises ApiError if there is no space for it."""
        key = secrets.token_hex(16)
        try:
            kept = KeptDocument(data, name, self._clock())
        except OSError as error:
            raise ApiError(503, f"The document cannot be kept: {error.strerror}", retry_after_s=60) from error
        with self._lock:
            self._kept[key] = kept
            self._make_room()
        return key

    def find(self, key: str) -> KeptDocument | None:
        """Return the document of a key; None if there is none, or not any more."""
        with self._lock:
            self._make_room()
            return self._kept.get(key)

    def close(self) -> None:
        """Remove all."""
        with self._lock:
            self._kept.clear()

    def _make_room(self) -> None:
        n_bytes, oldest = sum(each.n_bytes for each in self._kept.values()), self._clock() - MAX_AGE_S
        for key, each in list(self._kept.items()):
            if len(self._kept) <= MAX_KEPT and n_bytes <= MAX_KEPT_BYTES and each.since >= oldest:
                return
            n_bytes -= each.n_bytes
            del self._kept[key]
