"""What the catalogue says of a corpus: its texts, and how they can be had."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from transduce.config import Split

__all__ = ["Builder", "Corpus", "Log", "RemoteFile", "Text"]

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Text:
    """Aligned files ``folder/stem.LANGUAGE``, or ``folder/stem.PAIR.LANGUAGE``, plain or compressed."""

    folder: str
    stem: str
    languages: tuple[str, ...] = ()  # empty if unknown
    pivot: str | None = None  # the language that all others are aligned with; None: each is aligned with each

    def is_in(self, src_language: str, tgt_language: str) -> bool:
        """Whether the text can exist in this language pair."""
        both = {src_language, tgt_language}
        return not self.languages or (both <= set(self.languages) and (self.pivot is None or self.pivot in both))


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file to download, and the texts in it."""

    address: str
    members: Mapping[str, str]  # name in the data folder -> name in the archive, "" if not an archive; NAME:N in a zip
    checksum: str | None = None  # published: "md5:..." or "sha256:..."

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.address.rsplit("/", 1)[1]


@dataclass(frozen=True, slots=True)
class Builder:
    """How the texts of a corpus are made from Debian packages."""

    packages: Mapping[str, Collection[str]]  # name -> the languages that it is needed for
    write: Callable[[Path, Mapping[str, Path], Sequence[str], Log], object]
    """Called with a new folder, the .deb files by package, the languages beside English, and a log."""
    needs_all: bool = True  # else those that the Debian release of this machine lacks are left out

    def needed(self, languages: Collection[str]) -> list[str]:
        """Return the names of the packages for some languages."""
        return [name for name, its_languages in self.packages.items() if not set(languages).isdisjoint(its_languages)]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Catalogue entry: description for ``transduce corpus list``, texts, and files for ``get`` to fetch."""

    name: str
    languages: tuple[str, ...]
    size: str
    licence: str
    source: str
    train: tuple[Text, ...] = ()
    dev: tuple[Text, ...] = ()
    test: tuple[Text, ...] = ()
    further: tuple[Text, ...] = ()  # other test sets
    remote: tuple[RemoteFile, ...] = field(default=(), repr=False)
    made_from: Callable[[], Builder] | None = field(default=None, repr=False)  # imported on use
    is_tokenised: bool = False  # by Moses; training text is detokenised when read

    def texts(self, split: Split) -> tuple[Text, ...]:
        """Texts of a split."""
        return {"train": self.train, "dev": self.dev, "test": self.test}[split]

    @property
    def is_only_copied(self) -> bool:
        """Whether it can only be had from a local copy."""
        return not (self.remote or self.made_from)

    @property
    def how_to_get(self) -> str:
        """How to get it onto this machine, for messages: by download if it can be downloaded here."""
        if self.remote or (self.made_from and shutil.which("apt-get")):
            return f"get it with: transduce corpus get {self.name}"
        return (
            f"it cannot be downloaded here ({self.source}); import a copy with: transduce corpus get {self.name}"
            " --from FOLDER"
        )

    @property
    def directions(self) -> tuple[str, ...]:
        """Language pairs of the training text; empty if the languages are unknown.

        >>> from transduce.corpora.catalogue import CATALOGUE
        >>> CATALOGUE["tatoeba"].directions
        ('en-de', 'en-fr')
        """
        pairs = combinations(self.languages, 2)
        return tuple(f"{a}-{b}" for a, b in pairs if any(text.is_in(a, b) for text in self.train))
