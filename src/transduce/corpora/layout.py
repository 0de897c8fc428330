"""The layout of corpora on disk: data folders, and the file names in them.

A data folder contains one folder per corpus, with the aligned files of its texts: ``multi30k/train.en`` and
``multi30k/train.de``, or ``mine/train.en-de.en`` if each language pair has texts of its own. Files may be plain,
``.gz`` or ``.xz``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from transduce.config import split_direction
from transduce.corpora.corpus import Corpus, Text
from transduce.errors import ConfigError

__all__ = [
    "COMPRESSIONS", "DATA_VARIABLE", "available_directions", "cache_folder", "data_folders", "existing_file",
    "find_text", "has_training_text", "listed", "stems",
]  # fmt: skip

DATA_VARIABLE = "TRANSDUCE_DATA"
COMPRESSIONS = ("", ".gz", ".xz")


def cache_folder() -> Path:
    """Return the folder of downloaded corpora: ``transduce`` in the user's cache folder.

    Raises ConfigError for a user without a home folder.
    """
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "transduce"
    except RuntimeError as error:
        raise ConfigError(
            "this user has no home folder, and so no cache folder for corpora; set HOME or XDG_CACHE_HOME, or name a"
            " folder of corpora"
        ) from error


def data_folders(given: Path | None = None, of_recipe: str | None = None) -> tuple[Path, ...]:
    """Return the folders that are searched for a corpus, in order.

    They are ``given``, that of the recipe, ``TRANSDUCE_DATA``, and the cache folder. Raises ConfigError if one of the
    first three is set but not a folder; the cache folder need not exist, and a user without a home folder has none.
    """
    variable = os.environ.get(DATA_VARIABLE)
    named = {
        "--data": given,
        "data.folder": Path(of_recipe) if of_recipe else None,
        DATA_VARIABLE: Path(variable) if variable else None,
    }
    for origin, folder in named.items():
        if folder is not None and not folder.is_dir():
            raise ConfigError(f"{origin} is {folder}, which is not a folder; expected a folder of corpora")
    folders = [folder for folder in named.values() if folder is not None]
    with suppress(ConfigError):
        folders.append(cache_folder())
    return tuple(folders)


def listed(folders: Iterable[Path]) -> str:
    """Return folders that were searched, for a message."""
    return ", ".join(map(str, folders)) or "no folder: set HOME, or name one with --data"


def find_text(text: Text, src_language: str, tgt_language: str, folders: Sequence[Path]) -> tuple[Path, Path] | None:
    """Return the two files of a text from the first of the ``folders`` that has both, else None."""
    if not text.is_in(src_language, tgt_language):
        return None
    for folder in folders:
        for stem in stems(text, src_language, tgt_language):
            src, tgt = (existing_file(folder / text.folder, f"{stem}.{side}") for side in (src_language, tgt_language))
            if src and tgt:
                return src, tgt
    return None


def has_training_text(corpus: Corpus, src_language: str, tgt_language: str, folders: Sequence[Path]) -> bool:
    """Return whether all training texts of a corpus in a language pair exist in the ``folders``."""
    texts = [text for text in corpus.train if text.is_in(src_language, tgt_language)]
    return bool(texts) and all(find_text(text, src_language, tgt_language, folders) for text in texts)


def available_directions(corpus: Corpus, folders: Sequence[Path]) -> list[str]:
    """Return the directions of a corpus whose training text exists in the ``folders``, such as "en-de"."""
    pairs = [split_direction(direction) for direction in corpus.directions]
    return [f"{src}-{tgt}" for src, tgt in pairs if has_training_text(corpus, src, tgt, folders)]


def stems(text: Text, src_language: str, tgt_language: str) -> Iterator[str]:
    """Yield the possible file stems of a text: with the language pair in either order, or without."""
    yield f"{text.stem}.{src_language}-{tgt_language}"
    yield f"{text.stem}.{tgt_language}-{src_language}"
    yield text.stem


def existing_file(folder: Path, name: str) -> Path | None:
    """Return the file of this name, plain or compressed, or None."""
    paths = (folder / f"{name}{compression}" for compression in COMPRESSIONS)
    return next((path for path in paths if path.is_file()), None)
