"""Downloads that can be interrupted: a file comes whole and verified, or what came so far is kept for the next try.

While a file comes it lies beside its place as ``NAME.part``, and ``NAME.part.json`` holds what the server called that
version of it, so that a later try asks for the rest of the same file and begins anew if the file has changed.
"""

from __future__ import annotations

import hashlib
import http.client
import importlib.metadata
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from transduce.errors import DataError, shown
from transduce.files import read_json, sha256_of_file, write_json

__all__ = ["ChecksumLedger", "Progress", "checksum_of_file", "download"]

Progress = Callable[[int, int | None], None]  # (bytes so far, bytes in all, None if the server does not say)

CHUNK_BYTES = 1 << 18
PAUSES_S = (1.0, 4.0, 15.0)  # before the second, third and fourth try
TRANSIENT_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
RANGE_NOT_SATISFIABLE = 416


def download(
    address: str,
    path: Path,
    *,
    checksum: str | None,
    progress: Progress = lambda n_bytes, n_total: None,
    timeout_s: float = 60.0,
    pauses_s: Sequence[float] = PAUSES_S,
) -> str:
    """Bring the file at an http(s) ``address`` to ``path`` and return its SHA-256.

    ``checksum`` is ``"md5:..."``, ``"sha256:..."`` or None. A file that is at ``path`` already is verified and not
    fetched again. Faults that pass (a server error, a timeout, a connection that breaks off) are met with a new try
    after each of the ``pauses_s``, counted from the last try that brought something.

    Raises DataError, in one line, if the file cannot be had or is not the expected one.
    """
    if urlsplit(address).scheme not in ("http", "https"):
        raise DataError(f"{address} cannot be downloaded: only http and https addresses can")
    if path.is_file():
        found = _mismatch(path, checksum)
        if found:
            raise DataError(f"{path} has {found}, expected {checksum}; remove it and it is downloaded again")
        return sha256_of_file(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _Part(path.with_name(f"{path.name}.part"), path.with_name(f"{path.name}.part.json"))
    _fetch(address, part, progress=progress, timeout_s=timeout_s, pauses_s=pauses_s)
    found = _mismatch(part.path, checksum)
    if found:
        part.discard()
        raise DataError(
            f"{address} came with {found}, expected {checksum}, and was thrown away; try again, or copy the right file"
            " to a folder and use --from FOLDER"
        )
    sha256 = sha256_of_file(part.path)
    part.path.replace(path)
    part.discard()
    return sha256


def checksum_of_file(path: Path, algorithm: str) -> str:
    """``"md5:..."`` or ``"sha256:..."``, or whatever else ``hashlib`` knows."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, lambda: hashlib.new(algorithm, usedforsecurity=False))
    return f"{algorithm}:{digest.hexdigest()}"


def _mismatch(path: Path, checksum: str | None) -> str | None:
    """The checksum that a file has where it should have another."""
    if checksum is None:
        return None
    found = checksum_of_file(path, checksum.partition(":")[0])
    return None if found == checksum else found


@dataclass(frozen=True, slots=True)
class ChecksumLedger:
    """Checksums of files for which none was published: recorded when one was first read to its end, compared later."""

    path: Path

    def compare(self, address: str, path: Path, sha256: str) -> None:
        """Check the file at ``path`` against what is recorded, if anything is.

        Raises DataError if they differ.
        """
        entry = self._entries().get(address)
        if entry is None:
            return
        recorded = entry.get("sha256") if isinstance(entry, dict) else entry
        if recorded != sha256:
            raise DataError(
                f"{path} has sha256:{sha256}, at its first use it was sha256:{shown(recorded)}; remove it, or if the"
                f" new one is right its entry in {self.path}, and try again"
            )

    def record(self, address: str, path: Path, sha256: str) -> None:
        """Keep the checksum and the size of a file that has turned out to be good."""
        write_json(self.path, self._entries() | {address: {"sha256": sha256, "bytes": path.stat().st_size}})

    def _entries(self) -> dict[str, Any]:
        return read_json(self.path) if self.path.is_file() else {}


@dataclass(frozen=True, slots=True)
class _Part:
    """What came so far, and a note of which version of the file it is a part of."""

    path: Path
    note: Path

    def size(self) -> int:
        return self.path.stat().st_size if self.path.is_file() else 0

    def version(self, address: str) -> str | None:
        """What the server called this version; None if it cannot be gone on with."""
        if not self.size() or not self.note.is_file():
            return None
        try:
            note = read_json(self.note)
        except DataError:  # nobody knows of which version it is a part
            return None
        version = note.get("version")
        return version if note.get("address") == address and isinstance(version, str) else None

    def begin(self, address: str, version: str | None) -> None:
        """Empty it. The note comes last: what it says must never be said of older bytes."""
        self.path.write_bytes(b"")
        write_json(self.note, {"address": address, "version": version})

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)


class _TransientError(Exception):
    """A fault that may be gone at the next try."""


class _ConnectionFailedError(Exception):
    """No connection. With no network at all nothing is won by waiting; when the server has answered before, it is."""


def _fetch(address: str, part: _Part, *, progress: Progress, timeout_s: float, pauses_s: Sequence[float]) -> None:
    """Fill ``part``, in as many tries as are worth it."""
    n_failures, most_bytes, has_answered = 0, part.size(), False
    while True:
        try:
            _try_once(address, part, progress=progress, timeout_s=timeout_s)
            return
        except _ConnectionFailedError as error:
            if not has_answered:
                raise _gone_wrong(address, str(error), "no network here?") from error
            fault: Exception = error
        except _TransientError as error:
            has_answered = True
            fault = error
        # More than ever before: a server that always begins anew and always breaks off is not tried for ever.
        n_failures = 0 if part.size() > most_bytes else n_failures
        most_bytes = max(most_bytes, part.size())
        if n_failures == len(pauses_s):
            raise _gone_wrong(address, f"{fault}, {n_failures + 1} times", "try again later:") from fault
        time.sleep(pauses_s[n_failures])
        n_failures += 1


def _try_once(address: str, part: _Part, *, progress: Progress, timeout_s: float) -> None:
    """Ask for what is missing of ``part`` and write it as it comes.

    Raises _TransientError or _ConnectionFailedError if it did not come whole, DataError if it never will.
    """
    version = part.version(address)
    n_bytes = part.size() if version else 0
    headers = {"User-Agent": f"transduce/{importlib.metadata.version('transduce')}"}
    if version:
        headers |= {"Range": f"bytes={n_bytes}-", "If-Range": version}
    try:
        response = urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=timeout_s)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == RANGE_NOT_SATISFIABLE and version:
                _, n_total = _content_range(error.headers)
                if n_total == n_bytes:
                    return  # all of it had come
                part.discard()  # it is of another file
                raise _TransientError(f"{error.code} {error.reason}") from error
            if error.code in TRANSIENT_STATUSES:
                raise _TransientError(f"{error.code} {error.reason}") from error
            raise _gone_wrong(address, f"{error.code} {error.reason}", "look whether it has moved, or") from error
    except urllib.error.URLError as error:
        raise _ConnectionFailedError(_reason(error.reason)) from error
    except (OSError, http.client.HTTPException) as error:
        raise _TransientError(_reason(error)) from error
    with closing(response):
        _receive(response, address, part, progress=progress)


def _receive(response: Any, address: str, part: _Part, *, progress: Progress) -> None:
    """Write the answer of a server to ``part``, after what is there already or instead of it."""
    start, n_total = 0, None
    if response.status == http.client.PARTIAL_CONTENT:
        start, n_total = _content_range(response.headers)
        if start != part.size():
            part.discard()
            raise _TransientError("the server sent another range than the one it was asked for")
    else:  # the file has changed, or the server knows no ranges, or this is the first try
        part.begin(address, _version(response.headers))
        n_total = response.length
    n_bytes = start
    with part.path.open("ab") as stream:
        progress(n_bytes, n_total)
        for chunk in _chunks(response):
            stream.write(chunk)
            n_bytes += len(chunk)
            progress(n_bytes, n_total)
        stream.flush()
        os.fsync(stream.fileno())
    if n_total is not None and n_bytes < n_total:
        raise _TransientError(f"the connection broke off at {n_bytes:,} of {n_total:,} bytes")


def _chunks(response: Any) -> Iterator[bytes]:
    """What comes, as it comes. Faults of the network become _TransientError here, apart from those of the disk."""
    try:
        while chunk := response.read1(CHUNK_BYTES):
            yield chunk
    except (OSError, http.client.HTTPException) as error:
        raise _TransientError(_reason(error)) from error


def _content_range(headers: Any) -> tuple[int, int | None]:
    """First byte and size of the whole, from ``bytes 100-199/200``, ``bytes 100-199/*`` or ``bytes */200``."""
    match = re.fullmatch(r"bytes (?:(\d{1,18})-\d{1,18}|\*)/(\d{1,18}|\*)", headers["Content-Range"] or "")
    if match is None:
        return -1, None
    start, n_total = match.groups()
    return int(start) if start else -1, None if n_total == "*" else int(n_total)


def _version(headers: Any) -> str | None:
    """What names a version of a file byte by byte, so that a part of it can be gone on with: no weak ETag does."""
    etag, date = headers["ETag"], headers["Last-Modified"]
    return str(etag) if etag and not etag.startswith("W/") else date


def _reason(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def _gone_wrong(address: str, got: str, advice: str) -> DataError:
    return DataError(f"{address} cannot be downloaded: {got}; {advice} copy the file to a folder and use --from FOLDER")
