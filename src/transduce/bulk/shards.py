"""The state of a job on disk: which shards are done, which are claimed, and by whom.

A shard is done when its translation has its name in the output folder; its checksums are in ``done/NAME.json`` before.
A claim, ``claims/NAME``, keeps others from the same work; who holds it touches it again and again. A claim that is not
touched any more is taken over. Two processes that translate the same shard lose time only: it gives the same bytes.
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transduce.bulk.job import CLAIMS, DONE, JOB_FILE, Shard
from transduce.errors import DataError
from transduce.files import MANIFEST_NAME, is_running, read_json, write_json

__all__ = ["Claims", "ShardResult", "done_shards", "part_path", "record_result", "write_final_manifest"]

STALE_S = 60.0  # a claim that was not touched for so long belongs to nobody
FORMAT = 1


@dataclass(frozen=True, slots=True)
class ShardResult:
    """A translated shard."""

    name: str
    lines: int
    truncated_lines: int  # longer than the model reads
    input_bytes: int
    input_sha256: str
    output_bytes: int
    output_sha256: str


def part_path(out: Path, name: str) -> Path:
    """Return the name of a translation that is being written, by this process alone."""
    return out / f".{name}.{socket.gethostname()}.{os.getpid()}.part"


def record_result(out: Path, result: ShardResult) -> None:
    """Write the checksums of a shard, before it gets its name."""
    (out / DONE).mkdir(exist_ok=True)
    path = out / DONE / f"{result.name}.json"
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    write_json(temporary, asdict(result))
    temporary.replace(path)


def done_shards(out: Path, shards: Sequence[Shard]) -> set[str]:
    """Return the names of the shards that are done: a listing, and a look at the sizes.

    Raises DataError for a file that the job has not written, or one that has changed.
    """
    present = {entry.name: entry.stat().st_size for entry in os.scandir(out) if entry.is_file(follow_symlinks=False)}
    done = {shard.name for shard in shards if shard.name in present}
    for name in done:
        size = _result(out, name).output_bytes
        if present[name] != size:
            raise DataError(f"{out / name} has {present[name]:,} bytes, it was written with {size:,}; remove it")
    return done


def _result(out: Path, name: str) -> ShardResult:
    path = out / DONE / f"{name}.json"
    if not path.exists():
        raise DataError(f"{out / name} was not written by this job; remove it, or name another folder for --out")
    values = read_json(path)
    try:
        return ShardResult(**values)
    except TypeError as error:
        raise DataError(f"{path} is damaged; remove it and {out / name}") from error


def write_final_manifest(out: Path, shards: Sequence[Shard]) -> None:
    """Write ``manifest.json``: the job, and the checksums of all shards. It has no times and no names of machines."""
    job: dict[str, Any] = read_json(out / JOB_FILE)
    results = [asdict(_result(out, shard.name)) for shard in sorted(shards, key=lambda shard: shard.name)]
    temporary = out / f".{MANIFEST_NAME}.{uuid.uuid4().hex}.tmp"
    del job["shards"]
    write_json(temporary, {**job, "format": FORMAT, "shards": results})
    temporary.replace(out / MANIFEST_NAME)
    for folder in (out / CLAIMS,):
        with suppress(OSError):  # another process may still be in it
            for leftover in folder.iterdir():
                leftover.unlink()
            folder.rmdir()


class Claims:
    """The claims of one process."""

    def __init__(self, out: Path) -> None:
        self._folder = out / CLAIMS
        self._folder.mkdir(exist_ok=True)
        self._owner = json.dumps({"host": socket.gethostname(), "process": os.getpid(), "id": uuid.uuid4().hex})
        self._held = set[str]()

    def take(self, name: str) -> bool:
        """Claim a shard; return whether it worked."""
        path = self._folder / name
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
                os.utime(self._folder / name)

    def give_back(self, name: str) -> None:
        """Drop a claim, unless another process has taken it over."""
        self._held.discard(name)
        path = self._folder / name
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
        return self._now() - touched > STALE_S

    def _now(self) -> float:
        """Return the time of the file system, whose clock may be another than that of this machine."""
        probe = self._folder / f".clock.{uuid.uuid4().hex}"
        try:
            probe.touch()
            return probe.stat().st_mtime
        finally:
            probe.unlink(missing_ok=True)

    def _remove_stale(self, path: Path) -> None:
        aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        with suppress(OSError):
            path.rename(aside)  # one of several processes succeeds
            aside.unlink()
