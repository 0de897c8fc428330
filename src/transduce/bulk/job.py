"""What is to be done with a collection: ``bulk.json`` in the output folder, the same for every process that helps."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from transduce.config import Wanted
from transduce.config.decoding import NO_CHANGES, DecodingOptions, LoadingOptions
from transduce.errors import CheckpointError, ConfigError, DataError, shown
from transduce.files import MANIFEST_NAME, migrated, read_json, sha256_of_file, write_json

__all__ = [
    "CLAIMS", "DONE", "JOB_FILE", "RESULT_ENDING", "Shard", "TranslationJob", "digest_of_folder", "find_shards",
    "name_beside", "open_job",
]  # fmt: skip

JOB_FILE = "bulk.json"
DONE, CLAIMS = "done", "claims"  # folders of the output
RESULT_ENDING = ".json"  # of the files in ``done``, after the name of the shard
FORMAT = 1
CHUNK_LINES = 2000  # of a shard that are translated together
LISTS = ("terms", "avoid", "memory")  # files of ``LoadingOptions`` that decide what is written
THREADS = 1  # of a worker on files: with another number, sums may be rounded differently


@dataclass(frozen=True, slots=True)
class Shard:
    """A file of the collection."""

    name: str  # its path below the folder of the collection, and that of its translation below the output
    path: Path


@dataclass(frozen=True, slots=True)
class TranslationJob:
    """What every worker does: the models to load, and how they translate.

    Paths may differ between machines, the content of the folders may not.
    """

    loading: LoadingOptions
    decoding: DecodingOptions = NO_CHANGES
    prefix: str = ""
    split: bool = True
    format: str = "text"  # of the shards; in another one they are documents, with "auto" by their names or contents
    wanted: Wanted = "empty"  # of documents with translations
    is_trusted: bool = False  # of documents with translations: new ones are not marked as unsure
    is_scored: bool = False
    is_linked: bool = False
    chunk_lines: int = CHUNK_LINES

    def as_json(self) -> dict[str, Any]:
        """Return what decides the bytes of the translations; no paths."""
        loading, changes = self.loading, dict(self.decoding.changes)
        if changes.get("kind") != "sampling":
            changes.pop("seed", None)  # nothing is drawn
        return {
            "models": [digest_of_folder(folder) for folder in loading.folders],
            "shortlist": None if loading.shortlist is None else digest_of_folder(loading.shortlist),
            "precision": loading.precision, "beam": changes.pop("beam_size", None),
            "alpha": changes.pop("alpha", None), "prefix": self.prefix, "split": self.split,
            "threads_per_worker": THREADS, "chunk_lines": self.chunk_lines,
            **({} if loading.engine == "auto" else {"engine": loading.engine}),
            **({} if self.format == "text" else {"format_of_shards": self.format}),
            **({} if self.wanted == "empty" else {"wanted": self.wanted}),
            **({"trust": True} if self.is_trusted else {}),
            **({"terms_hard": True} if loading.are_terms_required else {}),
            **{name: sha256_of_file(path) for name in LISTS if (path := getattr(loading, name)) is not None}, **changes,
        }  # fmt: skip

    def as_message(self) -> bytes:
        """Return a description for workers on this machine or others."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        values |= {"loading": asdict(self.loading), "decoding": self.decoding.changes}
        return json.dumps(values, default=str).encode()

    @classmethod
    def from_message(cls, message: bytes) -> Self:
        """Return the job that ``as_message`` described."""
        values = json.loads(message)
        loading, decoding = LoadingOptions.from_json(values["loading"]), DecodingOptions(**values["decoding"])
        return cls(**values | {"loading": loading, "decoding": decoding})


def digest_of_folder(folder: Path) -> str:
    """Return a hash of the files of a model folder or shortlist, as its manifest lists them."""
    files = read_json(folder / MANIFEST_NAME, error=CheckpointError, may_be_link=True).get("files")
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


def find_shards(pattern: str, out: Path) -> list[Shard]:
    """Return the files of a folder and its subfolders, or those that match a pattern, in order.

    A file is named by its path below the folder, or below the part of the pattern without wildcards. Folders, hidden
    files of a folder and files in the output folder are none of them.

    Raises ConfigError if there is none, or one cannot be a shard.
    """
    is_folder = Path(pattern).is_dir()
    root = Path(pattern) if is_folder else _root_of(pattern)
    found = _files_below(root) if is_folder else map(Path, glob.glob(pattern, recursive=True))
    matches = [path for path in sorted(found) if _is_file(path)]
    if not matches and is_folder:
        raise ConfigError(f"--in {pattern} is a folder without files; name another, or a pattern of files")
    if not matches:
        raise ConfigError(f"--in {pattern} matches no file; put the pattern in quotes, as in --in 'shards/*.gz'")
    paths = [path for path in matches if out.resolve() not in path.resolve().parents] if out.exists() else matches
    if not paths or any(path.parent.resolve() == out.resolve() for path in paths):
        raise ConfigError(f"--out {out} holds the shards themselves; name another folder")
    longest = _longest_name(out)
    shards = [Shard(path.relative_to(root).as_posix(), path) for path in paths]
    for name, path in ((shard.name, shard.path) for shard in shards):
        first, _, _ = name.partition("/")
        if first in (JOB_FILE, MANIFEST_NAME, DONE, CLAIMS) or path.name.startswith("."):
            raise ConfigError(f"{path} has the name of another file of the output; rename it")
        if ".." in name.split("/"):
            raise ConfigError(f"--in {pattern} has '..' after a wildcard; begin it at the folder that is meant")
        if any("\ud800" <= character <= "\udfff" for character in name):  # as Python reads other bytes
            raise ConfigError(f"the name of {shown(name)} is not UTF-8; rename it")
        if (n_bytes := len(os.fsencode(name_beside(name)))) > longest:
            raise ConfigError(
                f"the name of {path} has {n_bytes:,} bytes, at most {longest} can be translated to {out}; rename it"
            )
    return shards


def name_beside(name: str) -> str:
    """Return a name for what is known of a shard, in one folder for all: its own, with a hash if it is in a subfolder.

    >>> name_beside("a.html"), name_beside("guide/a.html")
    ('a.html', '3ff1547ffb488fd6-a.html')
    """
    if "/" not in name:
        return name
    return f"{hashlib.sha256(name.encode(errors='surrogateescape')).hexdigest()[:16]}-{name.rpartition('/')[2]}"


def _root_of(pattern: str) -> Path:
    """Return the folder above the first wildcard of a pattern.

    >>> _root_of("text/*/part-?.gz").as_posix(), _root_of("*.gz").as_posix()
    ('text', '.')
    """
    parts = Path(pattern).parts
    fixed = next((n for n, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    return Path(*parts[:fixed])


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder and its subfolders; not hidden ones, and not through links to folders."""
    for parent, subfolders, names in os.walk(folder, onerror=_raise_unreadable):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        yield from (Path(parent, name) for name in names if not name.startswith("."))


def _raise_unreadable(error: OSError) -> None:
    raise ConfigError(f"{error.filename} cannot be read: {error.strerror or error}") from error


def _is_file(path: Path) -> bool:
    """Return whether a path is a file, or a link to one; False for a folder.

    Raises ConfigError for what matches and cannot be read as a shard.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        what = "a link to nothing" if path.is_symlink() else error.strerror or str(error)
        raise ConfigError(f"{path} cannot be translated: {what}; remove it, or change the pattern") from error
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ConfigError(f"{path} is a pipe, a socket or a device, not a file; remove it, or change the pattern")
    return stat.S_ISREG(mode)


def _longest_name(out: Path) -> int:
    """Return the bytes of the longest name of a shard: ``done`` has one that is longer by an ending."""
    where = next((each for each in (out, *out.absolute().parents) if each.exists()), Path("/"))
    try:
        most = os.pathconf(where, "PC_NAME_MAX")
    except (OSError, ValueError, AttributeError):  # another system
        most = 255
    return most - len(RESULT_ENDING)


def open_job(job: TranslationJob, shards: Sequence[Shard], out: Path) -> None:
    """Write ``bulk.json``, or compare with that of an earlier start or of another machine.

    Shards that were not translated yet may have changed, gone or come. Raises ConfigError if the folder was begun with
    other models, settings or shards, DataError if it holds other files.
    """
    expected = {**job.as_json(), "shards": {shard.name: shard.path.stat().st_size for shard in shards}}
    path = out / JOB_FILE
    if path.exists():
        found = migrated(read_json(path, error=ConfigError), (), first=FORMAT, where=path, error=ConfigError)
        names = dict.fromkeys([*expected, *(found.keys() - {"format"})])
        different = [name for name in names if found.get(name) != expected.get(name)]
        if different == ["shards"] and _translated(found["shards"], out).items() <= expected["shards"].items():
            write_json(path, {"format": FORMAT, **expected})
        elif different:
            raise ConfigError(
                f"{path} was begun with other {', '.join(different)}; use the same, or another folder for --out"
            )
        return
    if out.exists() and any(out.iterdir()):
        raise DataError(f"{out} is not empty and has no {JOB_FILE}; name a new folder for --out")
    out.mkdir(parents=True, exist_ok=True)
    write_json(path, {"format": FORMAT, **expected})


def _translated(shards: Mapping[str, int], out: Path) -> dict[str, int]:
    """Return the shards that have translations, with their sizes."""
    known = {name: out / DONE / f"{name_beside(name)}{RESULT_ENDING}" for name in shards}
    return {name: size for name, size in shards.items() if known[name].exists()}
