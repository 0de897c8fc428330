"""The state of a job on disk: which shards are done, which are claimed, and by whom.

A shard is done when its translation has its name in the output folder; its checksums are in ``done/NAME.json`` before.
A claim, ``claims/NAME``, keeps others from the same work; who holds it touches it again and again. A claim that is not
touched any more is taken over. Two processes that translate the same shard lose time only: it gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transduce.bulk.job import CLAIMS, DONE, JOB_FILE, RESULT_ENDING, Shard, name_beside
from transduce.errors import DataError
from transduce.files import MANIFEST_NAME, is_running, read_json, remove, sha256_of_file, write_json
from transduce.inference.translation.document_translation import REMARKED

__all__ = [
    "Claims", "ShardResult", "done_shards", "is_done", "part_path", "read_result", "record_result", "remove_parts",
    "reports", "write_final_manifest",
]  # fmt: skip

STALE_S = 60.0  # a claim that was not touched for so long belongs to nobody
FORMAT = 1


@dataclass(frozen=True, slots=True)
class ShardResult:
    """A translated shard."""

    name: str
    lines: int
    truncated_lines: int  # longer than what is read of a line, or than the model reads
    input_bytes: int
    input_sha256: str
    output_bytes: int
    output_sha256: str
    invalid_lines: int = 0  # not UTF-8: bytes were replaced; earlier versions did not count them
    first_truncated: int | None = None  # number of the first such line
    first_invalid: int | None = None
    report: Mapping[str, Any] | None = None  # of a document, whose texts are its lines; ``DocumentReport.as_json``

    def as_json(self) -> dict[str, Any]:
        """Return the result for a file; only documents have a report."""
        return {name: value for name, value in asdict(self).items() if name != "report" or value is not None}

    def warnings(self) -> list[str]:
        """Describe what is missing from the translation, a line for each kind."""
        what = "texts" if self.report else "lines"
        kinds = [
            (
                self.truncated_lines,
                self.first_truncated,
                "longer than what can be translated; their ends were cut off",
            ),
            (self.invalid_lines, self.first_invalid, "not UTF-8; the invalid bytes were replaced"),
        ]
        kept = self.report["kept"] if self.report else {}
        kinds += [(kept.get(kind, 0), None, f"kept as they were: {kind}") for kind in REMARKED]
        return [
            f"{self.name}: {n:,} of {self.lines:,} {what} are {said}{f' (first: line {first:,})' if first else ''}"
            for n, first, said in kinds
            if n
        ]


def part_path(out: Path, name: str) -> Path:
    """Return the name of a translation that is being written, by this process alone."""
    return out / f"{_part_prefix(name)}.{socket.gethostname()}.{os.getpid()}.part"


def remove_parts(out: Path, name: str) -> None:
    """Remove the unfinished translations of a shard, which killed workers have left; its claim must be held."""
    for entry in os.scandir(out):
        if entry.name.startswith(_part_prefix(name)) and entry.name.endswith(".part"):
            remove(out / entry.name)


def _part_prefix(name: str) -> str:
    """Return how the name of an unfinished translation begins: short, whatever the name of the shard."""
    return f".{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def record_result(out: Path, result: ShardResult) -> None:
    """Write the checksums of a shard, before it gets its name."""
    (out / DONE).mkdir(exist_ok=True)
    temporary = out / DONE / f".{uuid.uuid4().hex}.tmp"
    write_json(temporary, result.as_json())
    temporary.replace(_result_path(out, result.name))


def done_shards(out: Path, shards: Sequence[Shard], *, known: Collection[str] = ()) -> set[str]:
    """Return the names of the shards that are done; those that are ``known`` to be are not looked at again.

    Raises DataError as ``is_done``.
    """
    present = {entry.name for entry in os.scandir(out)}
    may_be_done = (shard for shard in shards if shard.name in known or shard.name.partition("/")[0] in present)
    return {shard.name for shard in may_be_done if shard.name in known or is_done(out, shard)}


def is_done(out: Path, shard: Shard) -> bool:
    """Return whether a shard has its translation.

    Raises DataError for a translation that the job has not written, or if it or the shard has changed since.
    """
    translation = out / shard.name
    if not os.path.lexists(translation):
        return False
    result = read_result(out, shard.name)
    if _changed(translation, result.output_bytes, result.output_sha256):
        raise DataError(f"{translation} is not what was written there; remove it, and it is translated again")
    if _changed(shard.path, result.input_bytes, result.input_sha256, may_be_link=True):
        raise DataError(
            f"{shard.path} has changed since it was translated; remove {translation}, and it is translated again"
        )
    return True


def _changed(path: Path, n_bytes: int, sha256: str, *, may_be_link: bool = False) -> bool:
    """Return whether the content of a file is another one. Raises DataError if it is no regular file."""
    try:
        return path.stat().st_size != n_bytes or sha256_of_file(path, may_be_link=may_be_link) != sha256
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


def read_result(out: Path, name: str) -> ShardResult:
    """Return what was recorded of a translated shard. Raises DataError if nothing was, or it is damaged."""
    path = _result_path(out, name)
    if not path.exists():
        raise DataError(f"{out / name} was not written by this job; remove it, or name another folder for --out")
    values = read_json(path)
    try:
        return ShardResult(**values)
    except TypeError as error:
        raise DataError(f"{path} is damaged; remove it and {out / name}") from error


def reports(out: Path, shards: Sequence[Shard]) -> list[Mapping[str, Any]]:
    """Return the reports of the documents that are done."""
    results = (read_result(out, each.name) for each in shards if _result_path(out, each.name).exists())
    return [{**each.report, "document": each.name} for each in results if each.report is not None]


def _result_path(out: Path, name: str) -> Path:
    return out / DONE / f"{name_beside(name)}{RESULT_ENDING}"


def write_final_manifest(out: Path, shards: Sequence[Shard]) -> list[ShardResult]:
    """Write ``manifest.json``: the job, and the checksums of all shards. It has no times and no names of machines.

    Then nothing else is left in the folder. Returns the results.
    """
    job: dict[str, Any] = read_json(out / JOB_FILE)
    results = [read_result(out, shard.name) for shard in sorted(shards, key=lambda shard: shard.name)]
    temporary = out / f".{uuid.uuid4().hex}.tmp"
    del job["shards"]
    try:
        write_json(temporary, {**job, "format": FORMAT, "shards": [each.as_json() for each in results]})
        temporary.replace(out / MANIFEST_NAME)
    except FileNotFoundError:  # another process has finished meanwhile, and has tidied up
        if not (out / MANIFEST_NAME).exists():
            raise
    remove(out / CLAIMS)
    for folder in (out, out / DONE):  # killed processes have left them; a slower one finds that all is done
        for path in folder.glob(".*"):
            if path.suffix in (".part", ".tmp"):
                remove(path)
    return results


class Claims:
    """The claims of one process."""

    def __init__(self, out: Path) -> None:
        self._folder = out / CLAIMS
        self._folder.mkdir(exist_ok=True)
        self._owner = json.dumps({"host": socket.gethostname(), "process": os.getpid(), "id": uuid.uuid4().hex})
        self._held = set[str]()

    def take(self, name: str) -> bool:
        """Claim a shard; return whether it worked."""
        path = self._folder / name_beside(name)
        for _ in range(2):
            try:
                descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
            except FileExistsError:
                if not self._is_stale(path):
                    return False
                self._remove_stale(path)
                continue
            except FileNotFoundError:  # the last process removes the folder
                return False
            with os.fdopen(descriptor, "w") as stream:
                stream.write(self._owner)
            self._held.add(name)
            return True
        return False

    def touch(self) -> None:
        """Show that this process lives."""
        for name in list(self._held):
            with suppress(OSError):
                os.utime(self._folder / name_beside(name))

    def give_back(self, name: str) -> None:
        """Drop a claim, unless another process has taken it over."""
        self._held.discard(name)
        path = self._folder / name_beside(name)
        with suppress(OSError):
            if path.read_text() == self._owner:
                path.unlink()

    def give_back_all(self) -> None:
        """Drop all claims."""
        for name in list(self._held):
            self.give_back(name)

    def _is_stale(self, path: Path) -> bool:
        """Return whether a claim's process is gone: known on this machine, by its silence on another."""
        try:
            touched, owner = path.stat().st_mtime, path.read_text()
        except OSError:
            return False  # gone just now: the next look will see
        with suppress(ValueError, KeyError, TypeError):
            values = json.loads(owner)
            is_here = values["host"] == socket.gethostname()
            if is_here and not is_running(int(values["process"])):
                return True
        try:
            return self._now() - touched > STALE_S
        except FileNotFoundError:  # the last process removes the folder
            return False

    def _now(self) -> float:
        """Return the time of the file system, whose clock may be another than that of this machine."""
        probe = self._folder / f".clock.{uuid.uuid4().hex}"
        try:
            probe.touch()
            return probe.stat().st_mtime
        finally:
            probe.unlink(missing_ok=True)

    def _remove_stale(self, path: Path) -> None:
        aside = path.with_name(f".{uuid.uuid4().hex}")
        with suppress(OSError):
            path.rename(aside)  # one of several processes succeeds
            aside.unlink()
