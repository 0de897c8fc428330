"""The corpus ``program-texts``: messages of programs and games, English with German and French.

    .deb files --read--> catalogues of gettext --read messages--> pairs of lines --split by program--> train, dev, test

What a program says, and what a game tells, by their translators: 88 packages of Debian 12, with many messages for their
size. Another release lacks some of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from transduce.corpora.corpus import Builder, Log
from transduce.corpora.debian_packages import read_control_field, read_files
from transduce.corpora.leakage import normalised_line
from transduce.corpora.program_messages import message_pairs
from transduce.corpora.splitting import readme, split_by_document, write_direction
from transduce.errors import DataError
from transduce.files import atomic_folder, write_text
from transduce.patterns import compiled_on_use

__all__ = ["BUILDER", "PACKAGES", "write_program_texts"]

_OF_BOTH = """\
apt aptitude-common ardour-data audacity-data bash binutils-common cataclysm-dda-data cinnamon-l10n claws-mail-i18n
coreutils digikam-data dpkg e2fsprogs-l10n evolution-common evolution-data-server-common filezilla-common fish-common
fontforge-common freeciv-data gawk gbrainy gcc-12-locales gedit-common gettext gimp-data git gnome-commander-data
gnome-disk-utility gnome-shell-common gnome-software-common gnome-terminal-data gnucash-common gnumeric-common
gnupg-l10n gramps hexchat-common k3b-i18n kdevelop-l10n kdiff3 kgoldrunner kile-l10n konsole krita-l10n
ktexteditor-data ktorrent-data libc-l10n libexiv2-27 libglib2.0-data libgphoto2-l10n libgtk-3-common libvirt-l10n
liferea-data login mailutils-common make mkvtoolnix mutt nano nautilus-data network-manager phpmyadmin picard
plasma-nm poedit-common postgresql-client-15 remmina-common shotwell-common siril-common subversion sudo
system-config-printer-common tar tellico-data thunar-data transmission-gtk ufoai-misc util-linux-locales virtinst
vlc-l10n weechat-core wesnoth-1.16-did wesnoth-1.16-nr wget xfce4-settings xournalpp zim""".split()

PACKAGES: Mapping[str, Sequence[str]] = {
    **{name: ["de", "fr"] for name in _OF_BOTH},
    "libreoffice-l10n-de": ["de"],
    "libreoffice-l10n-fr": ["fr"],
}

MIN_HELD_OUT_WORDS = 3  # in English; shorter lines of dev and test would say little
HELD_OUT_PROGRAMS_PER_1000 = 15  # for dev, and as many for test

_CATALOGUE = compiled_on_use(r"usr/.*/(?P<language>[a-z]+)/LC_MESSAGES/(?P<program>[^/]+)\.mo")
_VERSION = compiled_on_use(r"-?\d+(?:\.\d+)*$")  # of a program, at the end of its name
# The paragraph of a machine-readable copyright file that tells the licence of most files.
_LICENCE = compiled_on_use(r"(?m)^Files:\s*\*\s*\n(?:.+\n)*?License:[ \t]*(?P<licence>\S.*)")


def write_program_texts(
    folder: Path, packages: Mapping[str, Path], languages: Sequence[str], log: Log = lambda line: None
) -> dict[str, dict[str, int]]:
    """Write ``{train,dev,test}.en-de.{en,de}`` and so on into a new ``folder``; return the sizes.

    ``packages`` has .deb files by name, ``languages`` those beside English. The sizes are keyed by direction, then by
    split. ``log`` gets a line before each step.

    The split follows from the name of the program, the same in each direction. Each split is deduplicated; no English
    line of dev or test is in train, not even with other case, punctuation or digits.

    Raises DataError if a package cannot be read, or if ``folder`` exists and is not empty.
    """
    catalogues, licences = dict[str, bytes](), list[str]()
    for name, deb in packages.items():
        log(f"reading {deb.name}")
        found, licence = _contents(name, deb, languages)
        catalogues |= found
        licences.append(f"- {name} {read_control_field(deb, 'Version')}: {licence}")
    with atomic_folder(folder) as temporary:
        sizes = {}
        for language in languages:
            log(f"reading the messages of en-{language}")
            lines = _lines(catalogues, language)
            splits = split_by_document(
                lines, held_out_per_1000=HELD_OUT_PROGRAMS_PER_1000, same=lambda line: normalised_line(line.casefold())
            )
            for held_out in ("dev", "test"):
                splits[held_out] = [pair for pair in splits[held_out] if len(pair[0].split()) >= MIN_HELD_OUT_WORDS]
            sizes[f"en-{language}"] = write_direction(temporary, language, splits)
        write_text(temporary / "README.md", _readme(sizes, licences))
    return sizes


def _contents(name: str, deb: Path, languages: Sequence[str]) -> tuple[dict[str, bytes], str]:
    """Return the catalogues of a package by path, and the licence that it names."""
    copyright_file = f"usr/share/doc/{name}/copyright"

    def is_wanted(path: str) -> bool:
        found = _CATALOGUE.fullmatch(path)
        return path == copyright_file if found is None else found["language"] in languages

    contents = read_files(deb, is_wanted)
    licence = _LICENCE.search(contents.pop(copyright_file, b"").decode("utf-8", "replace"))
    return contents, licence["licence"].strip() if licence else "see its copyright file"


def _lines(catalogues: Mapping[str, bytes], language: str) -> Iterator[tuple[str, str, str]]:
    """Yield (program, English line, other line) of the catalogues in a language."""
    for path, catalogue in sorted(catalogues.items()):
        found = _CATALOGUE.fullmatch(path)
        assert found is not None
        if found["language"] != language:
            continue
        program = f"program_texts/{_VERSION.sub('', found['program'])}"
        try:
            for english, other in message_pairs(catalogue, language):
                yield program, english, other
        except DataError as error:
            raise DataError(f"{path} of a package: {error}; fetch the package again") from error


def _readme(sizes: Mapping[str, Mapping[str, int]], licences: Sequence[str]) -> str:
    return readme(
        "program-texts",
        "Messages of programs and games; line N of one file of a pair is the translation of line N of the other.\n"
        "Split by program: no English line of dev or test is in train, not even with other case, punctuation or\n"
        "digits.",
        sizes,
        licences,
        "A text has the licence of its program: here the one that the copyright file of the package gives for most\n"
        "files. That file is usr/share/doc/PACKAGE/copyright in the package.",
    )


BUILDER = Builder(PACKAGES, write_program_texts, needs_all=False)
