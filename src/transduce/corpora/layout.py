"""Where the files of a corpus lie: data folders, and the names in them.

A data folder holds a folder for each corpus, and that the aligned files of its texts: ``multi30k/train.en`` beside
``multi30k/train.de``, or ``mine/train.en-de.en`` where texts differ from pair to pair of languages. Each file may be
plain, ``.gz`` or ``.xz``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from transduce.corpora.catalogue import Corpus, Text
from transduce.errors import ConfigError

__all__ = [
    "COMPRESSIONS",
    "DATA_VARIABLE",
    "available_directions",
    "cache_folder",
    "data_folders",
    "existing_file",
    "find_text",
    "has_training_text",
    "stems",
]  # fmt: skip

DATA_VARIABLE = "TRANSDUCE_DATA"
COMPRESSIONS = ("", ".gz", ".xz")


def cache_folder() -> Path:
    """Where downloaded corpora are kept: ``transduce`` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "transduce"


def data_folders(given: Path | None = None) -> tuple[Path, ...]:
    """Where to look for a corpus, in this order: the folder given, ``TRANSDUCE_DATA``, the cache folder.

    Raises ConfigError if one of the first two is named and is no folder; the last may not be there yet.
    """
    variable = os.environ.get(DATA_VARIABLE)
    named = {"--data": given, DATA_VARIABLE: Path(variable) if variable else None}
    for origin, folder in named.items():
        if folder is not None and not folder.is_dir():
            raise ConfigError(f"{origin} names {folder}, which is not a folder; it should hold corpora")
    return (*(folder for folder in named.values() if folder is not None), cache_folder())


def find_text(text: Text, src_language: str, tgt_language: str, folders: Sequence[Path]) -> tuple[Path, Path] | None:
    """The two files of a text, in the first of the ``folders`` that has both; None where none has."""
    if not text.is_in(src_language, tgt_language):
        return None
    for folder in folders:
        for stem in stems(text, src_language, tgt_language):
            src, tgt = (existing_file(folder / text.folder, f"{stem}.{side}") for side in (src_language, tgt_language))
            if src and tgt:
                return src, tgt
    return None


def has_training_text(corpus: Corpus, src_language: str, tgt_language: str, folders: Sequence[Path]) -> bool:
    """Whether all the text that a corpus has for training in two languages is there."""
    texts = [text for text in corpus.train if text.is_in(src_language, tgt_language)]
    return bool(texts) and all(find_text(text, src_language, tgt_language, folders) for text in texts)


def available_directions(corpus: Corpus, folders: Sequence[Path]) -> list[str]:
    """Those of a corpus' pairs of languages that can be trained on."""
    pairs = [direction.split("-") for direction in corpus.directions]
    return [f"{src}-{tgt}" for src, tgt in pairs if has_training_text(corpus, src, tgt, folders)]


def stems(text: Text, src_language: str, tgt_language: str) -> Iterator[str]:
    """The names a text may have: by pair of languages in either order, or the same for all."""
    yield f"{text.stem}.{src_language}-{tgt_language}"
    yield f"{text.stem}.{tgt_language}-{src_language}"
    yield text.stem


def existing_file(folder: Path, name: str) -> Path | None:
    """A file of that name, plain or compressed; None where there is none."""
    paths = (folder / f"{name}{compression}" for compression in COMPRESSIONS)
    return next((path for path in paths if path.is_file()), None)
