"""A corpus made from files of Debian packages, English with other languages.

    .deb files --read--> wanted files --find pairs--> pairs by document --split--> train, dev, test

A new one is one file: of which packages which files are read, and the pairs in them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from transduce.corpora.corpus import Builder, Log
from transduce.corpora.debian_packages import read_control_field, read_files
from transduce.corpora.leakage import normalised_line
from transduce.corpora.splitting import readme, split_by_document, write_direction
from transduce.files import atomic_folder, write_text
from transduce.patterns import compiled_on_use

__all__ = ["DocumentPair", "PackageText"]

DocumentPair = tuple[str, str, str]  # document, English text, other text

MIN_HELD_OUT_WORDS = 3  # in English; shorter lines of dev and test would say little

# The paragraph of a machine-readable copyright file that tells the licence of most files.
_LICENCE = compiled_on_use(r"(?m)^Files:\s*\*\s*\n(?:.+\n)*?License:[ \t]*(?P<licence>\S.*)")


@dataclass(frozen=True, slots=True)
class PackageText:
    """What is read from which packages, and how a document of it is assigned to train, dev or test."""

    name: str
    about: str  # for its README.md
    packages: Mapping[str, Collection[str]]  # name -> the languages that it is needed for
    is_wanted: Callable[[str, Collection[str]], bool]  # whether a file is read, by its path, for some languages
    pairs: Callable[[Mapping[str, bytes], str], Iterator[DocumentPair]]  # of the files by path, in a language
    held_out_per_1000: int  # documents for dev, and as many for test
    needs_all: bool = False  # of the packages; else those that this release of Debian lacks are left out

    @property
    def builder(self) -> Builder:
        """How it gets into a data folder."""
        return Builder(self.packages, self.write, self.needs_all)

    def write(
        self, folder: Path, packages: Mapping[str, Path], languages: Sequence[str], log: Log = lambda line: None
    ) -> dict[str, dict[str, int]]:
        """Write ``{train,dev,test}.en-de.{en,de}`` and so on into a new ``folder``; return the sizes.

        ``packages`` has .deb files by name, ``languages`` those beside English. The sizes are keyed by direction, then
        by split. ``log`` gets a line before each step.

        The split follows from the name of the document, the same in each direction. Each split is deduplicated; no
        English line of dev or test is in train, not even with other case, punctuation or digits.

        Raises DataError if a package cannot be read, or if ``folder`` exists and is not empty.
        """
        files, licences = dict[str, bytes](), list[str]()
        for name, deb in packages.items():
            log(f"reading {deb.name}")
            found, licence = self._contents(name, deb, languages)
            files |= found
            licences.append(f"- {name} {read_control_field(deb, 'Version')}: {licence}")
        with atomic_folder(folder) as temporary:
            sizes = {}
            for language in languages:
                log(f"finding the pairs of en-{language}")
                splits = split_by_document(
                    self.pairs(files, language),
                    held_out_per_1000=self.held_out_per_1000,
                    same=lambda line: normalised_line(line.casefold()),
                )
                for held_out in ("dev", "test"):
                    splits[held_out] = [pair for pair in splits[held_out] if len(pair[0].split()) >= MIN_HELD_OUT_WORDS]
                sizes[f"en-{language}"] = write_direction(temporary, language, splits)
            write_text(temporary / "README.md", self._readme(sizes, licences))
        return sizes

    def _contents(self, name: str, deb: Path, languages: Sequence[str]) -> tuple[dict[str, bytes], str]:
        """Return the wanted files of a package by path, and the licence that it names."""
        copyright_file = f"usr/share/doc/{name}/copyright"
        contents = read_files(deb, lambda path: path == copyright_file or self.is_wanted(path, languages))
        licence = _LICENCE.search(contents.pop(copyright_file, b"").decode("utf-8", "replace"))
        return contents, licence["licence"].strip() if licence else "see its copyright file"

    def _readme(self, sizes: Mapping[str, Mapping[str, int]], licences: Sequence[str]) -> str:
        return readme(
            self.name,
            f"{self.about}; line N of one file of a pair is the translation of line N of the\n"
            "other. No English line of dev or test is in train, not even with other case, punctuation or digits.",
            sizes,
            licences,
            "A text has the licence of its package: here the one that the copyright file of the package gives for\n"
            "most files. That file is usr/share/doc/PACKAGE/copyright in the package.",
        )
