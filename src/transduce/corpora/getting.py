"""Fetch corpora of the catalogue into a data folder: by download, from Debian packages, or from a local copy.

    missing texts --download, Debian packages or copy--> files in the layout --count--> pairs of each text

Existing files are not changed, and every file is written atomically, so an interrupted or failed call can be repeated;
no empty folder is left of it.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from transduce.config import canonical_direction, split_direction
from transduce.corpora.corpus import Builder, Corpus, Log, RemoteFile, Text
from transduce.corpora.debian_packages import fetch_packages, log_left_out
from transduce.corpora.download import ChecksumLedger, Progress, checksum_of_file, download
from transduce.corpora.layout import existing_file, find_text, stems
from transduce.corpora.parallel_files import read_aligned_files
from transduce.corpora.unpacking import check_compressed, copy_whole, unpack, unpack_columns
from transduce.errors import ConfigError, DataError
from transduce.files import READ_ERRORS, created_folder, open_binary, sha256_of_file

__all__ = ["get_corpus"]

DOWNLOADS = "downloads"  # in a data folder: archives, packages and the checksum ledger
CHUNK_BYTES = 1 << 20
N_NAMES_SHOWN = 3  # of packages in an error message


def get_corpus(
    corpus: Corpus,
    folder: Path,
    *,
    direction: str | None = None,
    from_folder: Path | None = None,
    progress: Callable[[str], Progress] = lambda name: lambda n_bytes, n_total: None,
    log: Log = lambda line: None,
) -> dict[str, int]:
    """Fetch the texts of a corpus into the data folder ``folder``; return the number of pairs of each text.

    ``direction``, such as ``"en-de"``, selects one language pair; by default, the corpus' first language is paired with
    each other one. The result is keyed by file name without language: ``"train"``, or ``"newstest2015.en-de"`` if
    texts differ between directions. With ``from_folder`` nothing is downloaded: archives or texts are copied from
    there, and missing ones are logged. ``progress(name)`` returns the progress callback of a download.

    Raises ConfigError if the corpus lacks the direction; DataError if a file is unavailable, has the wrong checksum or
    is not aligned with its other side, or if none of the corpus' training texts is present in the end.
    """
    if from_folder is not None and not from_folder.is_dir():
        raise DataError(f"{from_folder} is not a folder; --from needs one with a copy of {corpus.name}")
    requested = _requested_texts(corpus, direction)
    with created_folder(folder):
        try:
            return _get_texts(corpus, requested, folder, from_folder=from_folder, progress=progress, log=log)
        except BaseException:
            for name in {DOWNLOADS, *(text.text.folder for text in requested)}:
                _remove_if_empty(folder / name)
            raise


def _get_texts(
    corpus: Corpus,
    requested: list[_PairText],
    folder: Path,
    *,
    from_folder: Path | None,
    progress: Callable[[str], Progress],
    log: Log,
) -> dict[str, int]:
    """Fetch the texts that are not there yet; return the number of pairs of each."""
    count_lines = cache(_count_lines)  # so that a file that is in two language pairs is read once
    missing = [text for text in requested if text.files_in(folder) is None]
    if missing and from_folder is not None:
        _copy_missing(corpus, missing, from_folder, folder, count_lines=count_lines, log=log)
    elif missing and corpus.made_from:
        builder = corpus.made_from()
        names = builder.needed(_languages_of(missing))
        packages = fetch_packages(names, folder / DOWNLOADS, needs_all=builder.needs_all, log=log)
        _make_from_packages(builder, packages, missing, folder, log=log)
    elif missing and corpus.remote:
        _download_missing(corpus, missing, folder, progress=progress, log=log)
    elif missing:
        raise DataError(
            f"{corpus.name} cannot be downloaded ({corpus.source}); use --from FOLDER with {missing[0].expected_name}"
        )
    counts, missing = _count_found(requested, folder, count_lines=count_lines)
    if not counts:
        raise _nothing_found(corpus, requested, from_folder or folder)
    training = [text for text in requested if text.text in corpus.train]
    if training and set(training) <= set(missing):
        raise _no_training_text(corpus, training, from_folder or folder, folder, counts)
    for text in missing:
        log(f"missing: {text}")
    return counts


def _remove_if_empty(folder: Path) -> None:
    """Remove a folder, and those in it, as far as they hold no file."""
    for each, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            os.rmdir(each)


@dataclass(frozen=True, slots=True)
class _PairText:
    """A text in one language pair."""

    text: Text
    src: str
    tgt: str

    def files_in(self, folder: Path) -> tuple[Path, Path] | None:
        """Return its two files in a data folder, None if either is missing."""
        return find_text(self.text, self.src, self.tgt, (folder,))

    def copy_in(self, folder: Path) -> tuple[Path, Path] | None:
        """Return its two files in a local copy: in the text's folder, at the top level, or among the downloads."""
        texts = (replace(self.text, folder=name) for name in (self.text.folder, "", DOWNLOADS))
        found = (find_text(text, self.src, self.tgt, (folder,)) for text in texts)
        return next((files for files in found if files), None)

    def has_file(self, name: str) -> bool:
        """Whether ``name``, relative to a data folder, is a possible name of one of its files."""
        names = (f"{self.text.folder}/{stem}" for stem in stems(self.text, self.src, self.tgt))
        return any(name in (f"{each}.{self.src}", f"{each}.{self.tgt}") for each in names)

    @property
    def expected_name(self) -> str:
        """Possible names of its first file, for messages."""
        return f"{self.text.folder}/{self.text.stem}.{self.src} or {self.text.stem}.{self.src}-{self.tgt}.{self.src}"

    def __str__(self) -> str:
        return f"{self.text.stem} {self.src}-{self.tgt}"


def _requested_texts(corpus: Corpus, direction: str | None) -> list[_PairText]:
    """Return every text of a corpus in each requested language pair."""
    if direction is None:
        first, *others = corpus.languages or ("",)
        pairs = [(first, other) for other in others]
    else:
        src, tgt = split_direction(known) if (known := canonical_direction(direction)) else ("", "")
        pairs = [(src, tgt)] if src != tgt and {src, tgt} <= set(corpus.languages or (src, tgt)) else []
    texts = (*corpus.train, *corpus.dev, *corpus.test, *corpus.further)
    requested = [_PairText(text, src, tgt) for text in texts for src, tgt in pairs if text.is_in(src, tgt)]
    if not requested:
        known = (
            f"one of {', '.join(corpus.directions)} or its reverse"
            if corpus.languages
            else "two languages, such as en-de"
        )
        raise ConfigError(f"direction should be {known}, got {direction!r} for {corpus.name}")
    return requested


def _nothing_found(corpus: Corpus, requested: list[_PairText], searched: Path) -> DataError:
    archives = [remote.name for remote in corpus.remote if _is_archive(remote)]
    packages = corpus.made_from().needed(_languages_of(requested))[:N_NAMES_SHOWN] if corpus.made_from else []
    debs = [f"{name}_*.deb" for name in packages]
    names = ", ".join(dict.fromkeys([*archives, *debs, requested[0].expected_name]))
    return DataError(f"{searched} has no file of {corpus.name}; searched for {names} etc., plain, .gz or .xz")


def _no_training_text(
    corpus: Corpus, training: list[_PairText], searched: Path, folder: Path, counts: Mapping[str, int]
) -> DataError:
    found = ", ".join(f"{name} {n_pairs:,}" for name, n_pairs in counts.items())
    return DataError(
        f"{searched} has no training text of {corpus.name}: there is no {', '.join(map(str, training))};"
        f" other texts are in {folder}: {found}"
    )


# Downloads


def _download_missing(
    corpus: Corpus, missing: Iterable[_PairText], folder: Path, *, progress: Callable[[str], Progress], log: Log
) -> None:
    """Download the texts and archives that have files of missing texts, and unpack the archives."""
    ledger = _ledger(folder)
    for remote in corpus.remote:
        needed = _needed_members(remote, missing, folder)
        if not needed:
            continue
        is_archive = _is_archive(remote)
        path = folder / (_archive_path(remote) if is_archive else next(iter(needed)))
        sha256 = download(remote.address, path, checksum=remote.checksum, progress=progress(remote.name))
        if remote.checksum is None:
            ledger.compare(remote.address, path, sha256)
        if is_archive:
            log(f"unpacking {path} ({path.stat().st_size / 1e6:,.1f} MB), which is not deleted")
            _unpack(path, needed, folder)
        else:
            check_compressed(path)
        if remote.checksum is None:  # recorded only after the file was read completely
            ledger.record(remote.address, path, sha256)


def _unpack(archive: Path, needed: Mapping[str, str], folder: Path) -> None:
    (unpack_columns if archive.suffix == ".zip" else unpack)(archive, needed, folder)


def _needed_members(remote: RemoteFile, missing: Iterable[_PairText], folder: Path) -> dict[str, str]:
    """Return the members of missing texts that do not exist in ``folder``, neither plain nor compressed."""
    return {
        name: member
        for name, member in remote.members.items()
        if any(text.has_file(_plain_name(name)) for text in missing) and not _exists(folder, name)
    }


def _exists(folder: Path, name: str) -> bool:
    return existing_file(folder, _plain_name(name)) is not None


def _plain_name(name: str) -> str:
    """Return a name without ``.gz`` or ``.xz``."""
    return re.sub(r"\.(gz|xz)$", "", name)


def _is_archive(remote: RemoteFile) -> bool:
    return "" not in remote.members.values()


def _archive_path(remote: RemoteFile) -> str:
    """Return the archive's path in a data folder: its whole address, since several archives are called test.tgz."""
    address = urlsplit(remote.address)
    return f"{DOWNLOADS}/{address.hostname}{address.path}"


def _ledger(folder: Path) -> ChecksumLedger:
    return ChecksumLedger(folder / DOWNLOADS / "checksums.json")


# Debian packages


def _languages_of(texts: Iterable[_PairText]) -> list[str]:
    """Return the languages of some texts, English first: all others are aligned with it."""
    return ["en", *dict.fromkeys(each for text in texts for each in (text.src, text.tgt) if each != "en")]


def _make_from_packages(
    builder: Builder, packages: Mapping[str, Path], missing: list[_PairText], folder: Path, *, log: Log
) -> None:
    """Make the texts in a temporary folder, then move those that do not exist yet."""
    target = folder / missing[0].text.folder
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        output = Path(temporary) / target.name
        builder.write(output, packages, _languages_of(missing)[1:], log)
        for path in sorted(output.iterdir()):
            if not _exists(target, path.name):
                path.replace(target / path.name)


# Local copies


def _copy_missing(
    corpus: Corpus,
    missing: list[_PairText],
    from_folder: Path,
    folder: Path,
    *,
    count_lines: Callable[[Path], int],
    log: Log,
) -> None:
    """Copy missing texts from ``from_folder``: from archives or packages first, then the files themselves."""
    for remote in filter(_is_archive, corpus.remote):
        needed = _needed_members(remote, missing, folder)
        archive = _copied_archive(remote, corpus, from_folder) if needed else None
        if archive:
            _unpack_copy(archive, remote, needed, folder, log=log)
    if corpus.made_from:
        builder = corpus.made_from()
        packages = _copied_packages(builder, _languages_of(missing), from_folder, log=log)
        if packages:
            _make_from_packages(builder, packages, missing, folder, log=log)
    for text in missing:
        copies = None if text.files_in(folder) else text.copy_in(from_folder)
        if copies:
            _count_pairs(*copies, count_lines=count_lines)  # refuse misaligned files before copying
            for copy in copies:
                if not _exists(folder / text.text.folder, copy.name):
                    with copy.open("rb") as content:
                        copy_whole(content, folder / text.text.folder / copy.name)


def _unpack_copy(archive: Path, remote: RemoteFile, needed: Mapping[str, str], folder: Path, *, log: Log) -> None:
    """Unpack the copy of an archive; without a published checksum it must match the ledger."""
    ledger = _ledger(folder)
    sha256 = sha256_of_file(archive) if remote.checksum is None else None
    if sha256 is not None:
        ledger.compare(remote.address, archive, sha256)
    log(f"unpacking {archive}")
    _unpack(archive, needed, folder)
    if sha256 is not None:
        ledger.record(remote.address, archive, sha256)


def _copied_archive(remote: RemoteFile, corpus: Corpus, from_folder: Path) -> Path | None:
    """Find the copy of an archive, by its path among the downloads or by its name alone; None if there is none.

    Raises DataError if a file of that name has the checksum of no archive of that name.
    """
    checksums_of_name = {other.checksum for other in corpus.remote if other.name == remote.name}
    path_in_folder = _archive_path(remote)
    names = (path_in_folder, path_in_folder.removeprefix(f"{DOWNLOADS}/"), remote.name, f"{DOWNLOADS}/{remote.name}")
    for name in names:
        path = from_folder / name
        if not path.is_file():
            continue
        if remote.checksum is None:
            return path
        actual = checksum_of_file(path, remote.checksum.partition(":")[0])
        if actual == remote.checksum:
            return path
        if actual not in checksums_of_name:
            raise DataError(f"{path} has {actual}, {remote.address} should have {remote.checksum}; copy it again")
    return None


def _copied_packages(
    builder: Builder, languages: Sequence[str], from_folder: Path, *, log: Log
) -> dict[str, Path] | None:
    """Find the newest file of each package; None if there are none, or too few."""
    names = builder.needed(languages)
    folders = from_folder, from_folder / DOWNLOADS
    found = {name: [path for folder in folders for path in folder.glob(f"{name}_*.deb")] for name in names}
    packages = {name: max(paths, key=_version) for name, paths in found.items() if paths}
    if builder.needs_all and len(packages) < len(names):
        return None
    log_left_out(packages, names, log)
    return packages


def _version(package: Path) -> list[str | int]:
    """Return what sorts version 7.4.7 before 7.4.10."""
    pieces = re.split("([0-9]+)", package.name)
    return [int(piece) if number % 2 else piece for number, piece in enumerate(pieces)]


# Counts


def _count_found(
    requested: Iterable[_PairText], folder: Path, *, count_lines: Callable[[Path], int]
) -> tuple[dict[str, int], list[_PairText]]:
    """Return the number of pairs of each text present, and the missing texts."""
    counts, missing = {}, []
    for text in requested:
        files = text.files_in(folder)
        if files is None:
            missing.append(text)
            continue
        try:
            n_pairs = _count_pairs(*files, count_lines=count_lines)
        except DataError as error:
            raise DataError(f"{error}; remove both sides and get them again") from error
        counts[_plain_name(files[0].name).removesuffix(f".{text.src}")] = n_pairs
    return counts, missing


def _count_pairs(src: Path, tgt: Path, *, count_lines: Callable[[Path], int]) -> int:
    """Count the pairs of two files. Raises DataError with the suspected line if their lengths differ."""
    n_src, n_tgt = count_lines(src), count_lines(tgt)
    if n_src != n_tgt:
        for _ in read_aligned_files(src, tgt, escape_invalid=True):
            pass  # raises DataError with a hint
    return n_src


def _count_lines(path: Path) -> int:
    """Count lines of bytes, without decoding: cleaning handles invalid UTF-8. Raises DataError if unreadable."""
    n_lines, last = 0, b"\n"
    try:
        with open_binary(path) as stream:
            while chunk := stream.read(CHUNK_BYTES):
                n_lines += chunk.count(b"\n")
                last = chunk
    except READ_ERRORS as error:
        raise DataError(f"{path} cannot be read after line {n_lines:,}: {error}") from error
    return n_lines + (not last.endswith(b"\n"))
