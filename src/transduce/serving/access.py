"""API keys and limits: who may send how much. Read from a TOML file; without one, everyone may use the server.

[anonymous]                    # requests without a key; leave it out to demand one
characters = 5000              # of a request
texts = 50
requests_per_minute = 60

[[key]]
name = "office"
sha256 = "..."                 # of the key, in hexadecimal; or key = "..."
characters_per_month = 500000
"""

from __future__ import annotations

import hashlib
import math
import sys
import threading
import time
import tomllib
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field

from transduce.config.record import Count, Record, config_from_mapping
from transduce.errors import ConfigError, DataError
from transduce.files import read_json, write_json

__all__ = ["Access", "Client", "Limits", "TooManyRequests", "read_access"]

DEFAULT_CHARACTERS, DEFAULT_TEXTS = 100_000, 1000
DEFAULT_DOCUMENT_BYTES, DOCUMENT_FACTOR = 20 << 20, 10
MAX_CLIENTS = 10_000  # whose rates are remembered
SAVE_INTERVAL_S = 10.0
WRONG_KEYS_PER_MINUTE = 60  # from one address
Hexadecimal = Annotated[str, Field(pattern=r"^[0-9a-fA-F]{64}$")]


class TooManyRequests(Exception):
    """A client has sent more requests than it may in a minute."""

    def __init__(self, limit: int, retry_after_s: int) -> None:
        super().__init__(f"more than {limit:,} a minute; try again in {retry_after_s} s")
        self.retry_after_s = retry_after_s


class Limits(Record):
    """What a client may send."""

    characters: Count = DEFAULT_CHARACTERS  # of all texts of a request
    texts: Count = DEFAULT_TEXTS  # of a request
    requests_per_minute: Count | None = None
    characters_per_month: Count | None = None
    document_bytes: Count = DEFAULT_DOCUMENT_BYTES
    document_characters: Count | None = None  # of its texts; None: DOCUMENT_FACTOR times those of a request

    @property
    def most_document_characters(self) -> int:
        """Characters of the texts of a document."""
        return self.document_characters or DOCUMENT_FACTOR * self.characters


class _Key(Limits):
    name: Annotated[str, Field(min_length=1, max_length=100)]
    key: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    sha256: Hexadecimal | None = None


class _File(Record):
    anonymous: Limits | None = None
    key: list[_Key] = Field(default_factory=list)
    usage_file: str | None = None  # where the characters of this month are kept over a restart


class Client:
    """One key, or everyone without a key."""

    def __init__(self, name: str, limits: Limits, usage: _Usage) -> None:
        self.name, self.limits, self._usage = name, limits, usage

    @property
    def characters_used(self) -> int:
        """The characters of this month."""
        return self._usage.of(self.name)

    def has_quota(self, n_characters: int) -> bool:
        """Return whether so many more characters are within the quota of the month."""
        quota = self.limits.characters_per_month
        return quota is None or self.characters_used + n_characters <= quota

    def use(self, n_characters: int) -> None:
        """Count the characters of a request; a negative number takes back those of one without an answer."""
        self._usage.add(self.name, n_characters)


class Access:
    """The clients of a server. ``clock`` is that of the rates, in seconds."""

    def __init__(self, file: _File | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        file = file or _File(anonymous=Limits())
        self._usage = _Usage(None if file.usage_file is None else Path(file.usage_file))
        self.anonymous = None if file.anonymous is None else Client("", file.anonymous, self._usage)
        self.guest = Client("", Limits(), self._usage)  # whoever fetches what is open to all
        self._clients = {_digest_of(key): Client(key.name, key, self._usage) for key in file.key}
        self.has_keys = bool(self._clients)
        self._rates, self._clock = _Rates(), clock

    def client(self, key: str | None) -> Client | None:
        """Return the client of a key, None for a wrong key or a missing one that is needed."""
        if not key or not self.has_keys:  # clients of DeepL always send one
            return self.anonymous
        return self._clients.get(hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest())

    def count_request(self, client: Client, address: str) -> None:
        """Count a request; requests without a key are counted by address. Raises TooManyRequests."""
        limit = client.limits.requests_per_minute
        if limit is not None:
            wait_s = self._rates.take(client.name or f"@{address}", limit, self._clock())
            if wait_s:
                raise TooManyRequests(limit, wait_s)

    def count_wrong_key(self, address: str) -> None:
        """Count a key that nobody has, so that keys cannot be guessed fast. Raises TooManyRequests."""
        wait_s = self._rates.take(f"!{address}", WRONG_KEYS_PER_MINUTE, self._clock())
        if wait_s:
            raise TooManyRequests(WRONG_KEYS_PER_MINUTE, wait_s)

    def save(self) -> None:
        """Write the characters of this month, if there is a file for them."""
        self._usage.save()


def _digest_of(key: _Key) -> str:
    return key.sha256.lower() if key.sha256 else hashlib.sha256((key.key or "").encode()).hexdigest()


def read_access(path: Path) -> Access:
    """Read a file of keys and limits. Raises ConfigError naming the file."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits, and deep nesting
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    if isinstance(values.get("key"), dict):
        raise ConfigError(f"{path}: [key] is a single table; a key begins with [[key]]")
    file = config_from_mapping(_File, values, where=path, shows_values=False)
    if file.usage_file is not None and not Path(file.usage_file).parent.is_dir():
        raise ConfigError(f"{path}: usage_file is in {Path(file.usage_file).parent}, which is no folder; create it")
    names = [key.name for key in file.key]
    for key in file.key:
        if (key.key is None) == (key.sha256 is None):
            raise ConfigError(f"{path}: the key {key.name!r} needs either key or sha256")
        if names.count(key.name) > 1:
            raise ConfigError(f"{path}: two keys have the name {key.name!r}; names of keys differ")
    if len(set(map(_digest_of, file.key))) < len(file.key):
        raise ConfigError(f"{path} has the same key twice; give each client its own")
    if file.anonymous is None and not file.key:
        raise ConfigError(f"{path} lets nobody in; add a [[key]], or [anonymous] for requests without one")
    return Access(file)


class _Rates:
    """Token buckets: a client may send its requests of a minute at once, then as many as come back with time."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # requests left, and when
        self._lock = threading.Lock()

    def take(self, name: str, limit: int, now: float) -> int:
        """Take a request; return 0, or after how many seconds there is one."""
        with self._lock:
            left, then = self._buckets.pop(name, (float(limit), now))
            left = min(float(limit), left + (now - then) * limit / 60)
            wait_s = 0 if left >= 1 else max(1, math.ceil((1 - left) * 60 / limit))
            self._buckets[name] = (left - (wait_s == 0), now)
            while len(self._buckets) > MAX_CLIENTS:
                self._buckets.popitem(last=False)
            return wait_s


class _Usage:
    """The characters of the clients in this calendar month (UTC), kept in a file if there is one."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._lock = path, threading.Lock()
        self._timer: threading.Timer | None = None  # runs until the next save, from the first count after the last one
        self._month, self._counts = _month(), dict[str, int]()
        self._is_failing = False
        if path is not None and path.exists():
            values = read_json(path, error=ConfigError)
            counts = values.get("characters")
            if not isinstance(counts, dict) or not all(type(n) is int and n >= 0 for n in counts.values()):
                raise ConfigError(
                    f"{path} has no table of characters, each a number from 0; remove the file to count anew"
                )
            if values.get("month") == self._month:
                self._counts = counts

    def of(self, name: str) -> int:
        """Return the characters of a client."""
        with self._lock:
            self._turn_month()
            return self._counts.get(name, 0)

    def add(self, name: str, n_characters: int) -> None:
        """Count characters of a client."""
        with self._lock:
            self._turn_month()
            self._counts[name] = max(0, self._counts.get(name, 0) + n_characters)
            if self._path is not None and self._timer is None:
                self._timer = threading.Timer(SAVE_INTERVAL_S, self.save)
                self._timer.daemon = True
                self._timer.start()

    def save(self) -> None:
        """Write the file; a full disk is no reason to refuse work, but is said once."""
        if self._path is None:
            return
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            try:
                write_json(self._path, {"month": self._month, "characters": self._counts})
            except (OSError, DataError) as error:
                if not self._is_failing:
                    reason = getattr(error, "strerror", None) or error
                    print(
                        f"warning: usage_file {self._path} cannot be written: {reason}; the characters of this month "
                        "are counted in memory, and lost if the server ends before it can be",
                        file=sys.stderr, flush=True,
                    )  # fmt: skip
                self._is_failing = True
            else:
                self._is_failing = False

    def _turn_month(self) -> None:
        if self._month != _month():
            self._month, self._counts = _month(), {}


def _month() -> str:
    return datetime.now(UTC).strftime("%Y-%m")
