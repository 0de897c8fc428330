"""Resumable, verified downloads over HTTP.

A download in progress is ``NAME.part`` beside its destination. ``NAME.part.json`` holds the server's version of the
file (ETag or date), so that a later attempt requests the rest of the same version and restarts if the file has changed.
"""

from __future__ import annotations

import hashlib
import http.client
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

from transduce import __version__
from transduce.errors import DataError, shown
from transduce.files import read_json, sha256_of_file, write_json

__all__ = ["ChecksumLedger", "Progress", "checksum_of_file", "download"]

Progress = Callable[[int, int | None], None]  # (bytes so far, total bytes or None if unknown)

CHUNK_BYTES = 1 << 18
PAUSES_S = (1.0, 4.0, 15.0)  # before the second, third and fourth attempt
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
    """Download the http(s) ``address`` to ``path`` and return the SHA-256 of the file.

    ``checksum`` is ``"md5:..."``, ``"sha256:..."`` or None. A file that exists at ``path`` is verified and not
    downloaded again. After transient errors (server error, timeout, broken connection) the download is retried, with
    ``pauses_s`` between attempts; an attempt that makes progress resets the count.

    Raises DataError if the file cannot be downloaded or has another checksum.
    """
    if urlsplit(address).scheme not in ("http", "https"):
        raise DataError(f"{address} cannot be downloaded: expected an http or https address")
    if path.is_file():
        actual = _mismatch(path, checksum)
        if actual:
            raise DataError(f"{path} has {actual}, expected {checksum}; remove it to download it again")
        return sha256_of_file(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _Part(path.with_name(f"{path.name}.part"), path.with_name(f"{path.name}.part.json"))
    _fetch(address, part, progress=progress, timeout_s=timeout_s, pauses_s=pauses_s)
    actual = _mismatch(part.path, checksum)
    if actual:
        part.discard()
        raise DataError(
            f"{address} has {actual}, expected {checksum}; the download was discarded; try again, or copy the right"
            " file to a folder and use --from FOLDER"
        )
    sha256 = sha256_of_file(part.path)
    part.path.replace(path)
    part.discard()
    return sha256


def checksum_of_file(path: Path, algorithm: str) -> str:
    """Return ``"md5:..."``, ``"sha256:..."`` or the checksum of another algorithm of ``hashlib``."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, lambda: hashlib.new(algorithm, usedforsecurity=False))
    return f"{algorithm}:{digest.hexdigest()}"


def _mismatch(path: Path, checksum: str | None) -> str | None:
    """Return the checksum of a file if it differs from the expected one, else None."""
    if checksum is None:
        return None
    actual = checksum_of_file(path, checksum.partition(":")[0])
    return None if actual == checksum else actual


@dataclass(frozen=True, slots=True)
class ChecksumLedger:
    """JSON file of checksums for files without a published one: recorded at the first complete read, then checked."""

    path: Path

    def compare(self, address: str, path: Path, sha256: str) -> None:
        """Check a file against the recorded checksum, if there is one. Raises DataError if they differ."""
        entry = self._entries().get(address)
        if entry is None:
            return
        recorded = entry.get("sha256") if isinstance(entry, dict) else entry
        if recorded != sha256:
            raise DataError(
                f"{path} has sha256:{sha256}, at its first use it was sha256:{shown(recorded)}; remove the file, or, if"
                f" it is right, its entry in {self.path}, and try again"
            )

    def record(self, address: str, path: Path, sha256: str) -> None:
        """Record the checksum and the size of a verified file."""
        write_json(self.path, self._entries() | {address: {"sha256": sha256, "bytes": path.stat().st_size}})

    def _entries(self) -> dict[str, Any]:
        return read_json(self.path) if self.path.is_file() else {}


@dataclass(frozen=True, slots=True)
class _Part:
    """Partial download: the bytes so far, and a JSON note with the server's version of the file."""

    path: Path
    note: Path

    def size(self) -> int:
        return self.path.stat().st_size if self.path.is_file() else 0

    def version(self, address: str) -> str | None:
        """Server's version of the partial file; None if it cannot be resumed."""
        if not self.size() or not self.note.is_file():
            return None
        try:
            note = read_json(self.note)
        except DataError:  # a damaged note: the version is unknown
            return None
        version = note.get("version")
        return version if note.get("address") == address and isinstance(version, str) else None

    def begin(self, address: str, version: str | None) -> None:
        """Start empty. The note is written last, so that it never describes older bytes."""
        self.path.write_bytes(b"")
        write_json(self.note, {"address": address, "version": version})

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)


class _TransientError(Exception):
    """Error that may not recur at the next attempt."""


class _ConnectionFailedError(Exception):
    """No connection. Retried only if the server has answered before; otherwise there is probably no network."""


def _fetch(address: str, part: _Part, *, progress: Progress, timeout_s: float, pauses_s: Sequence[float]) -> None:
    """Complete ``part``, retrying after transient errors."""
    n_failures, max_bytes, has_answered = 0, part.size(), False
    while True:
        try:
            _try_once(address, part, progress=progress, timeout_s=timeout_s)
            return
        except _ConnectionFailedError as error:
            if not has_answered:
                raise _download_error(address, str(error), "is there a network? if not,") from error
            fault: Exception = error
        except _TransientError as error:
            has_answered = True
            fault = error
        # Progress is a new maximum; otherwise a server that restarts and breaks off each time would be retried forever.
        n_failures = 0 if part.size() > max_bytes else n_failures
        max_bytes = max(max_bytes, part.size())
        if n_failures == len(pauses_s):
            raise _download_error(address, f"{fault}, {n_failures + 1} times", "try again later, or") from fault
        time.sleep(pauses_s[n_failures])
        n_failures += 1


def _try_once(address: str, part: _Part, *, progress: Progress, timeout_s: float) -> None:
    """Request the rest of ``part`` and append it.

    Raises _TransientError or _ConnectionFailedError if a retry may help, else DataError.
    """
    version = part.version(address)
    n_bytes = part.size() if version else 0
    headers = {"User-Agent": f"transduce/{__version__}"}
    if version:
        headers |= {"Range": f"bytes={n_bytes}-", "If-Range": version}
    try:
        response = urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=timeout_s)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == RANGE_NOT_SATISFIABLE and version:
                _, n_total = _content_range(error.headers)
                if n_total == n_bytes:
                    return  # the partial file was complete already
                part.discard()  # the partial file belongs to another version
                raise _TransientError(f"{error.code} {error.reason}") from error
            if error.code in TRANSIENT_STATUSES:
                raise _TransientError(f"{error.code} {error.reason}") from error
            raise _download_error(address, f"{error.code} {error.reason}", "check the address, or") from error
    except urllib.error.URLError as error:
        raise _ConnectionFailedError(_reason(error.reason)) from error
    except (OSError, http.client.HTTPException) as error:
        raise _TransientError(_reason(error)) from error
    with closing(response):
        _receive(response, address, part, progress=progress)


def _receive(response: Any, address: str, part: _Part, *, progress: Progress) -> None:
    """Write a response to ``part``: append a partial one, restart with a full one."""
    start, n_total = 0, None
    if response.status == http.client.PARTIAL_CONTENT:
        start, n_total = _content_range(response.headers)
        if start != part.size():
            part.discard()
            raise _TransientError("the server sent another range than the one requested")
    else:  # first attempt, changed file, or a server without range requests
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
    """Yield the response in chunks. Network errors become _TransientError here, so that disk errors stay apart."""
    try:
        while chunk := response.read1(CHUNK_BYTES):
            yield chunk
    except (OSError, http.client.HTTPException) as error:
        raise _TransientError(_reason(error)) from error


def _content_range(headers: Any) -> tuple[int, int | None]:
    """Return (first byte, total size) of ``bytes 100-199/200``, ``bytes 100-199/*`` or ``bytes */200``."""
    match = re.fullmatch(r"bytes (?:(\d{1,18})-\d{1,18}|\*)/(\d{1,18}|\*)", headers["Content-Range"] or "")
    if match is None:
        return -1, None
    start, n_total = match.groups()
    return int(start) if start else -1, None if n_total == "*" else int(n_total)


def _version(headers: Any) -> str | None:
    """Return a strong ETag or the date, as required for range requests; a weak ETag does not identify the bytes."""
    etag, date = headers["ETag"], headers["Last-Modified"]
    return str(etag) if etag and not etag.startswith("W/") else date


def _reason(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def _download_error(address: str, got: str, advice: str) -> DataError:
    return DataError(f"{address} cannot be downloaded: {got}; {advice} copy the file to a folder and use --from FOLDER")
