"""The corpus ``program-texts``: messages of programs and games, English with German and French.

    .deb files --read--> catalogues of gettext --read messages--> pairs of lines --split by program--> train, dev, test

What a program says, and what a game tells, by their translators: 88 packages of Debian 12, with many messages for their
size. Another release lacks some of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from transduce.corpora.package_text import DocumentPair, PackageText
from transduce.corpora.program_messages import message_pairs
from transduce.errors import DataError
from transduce.patterns import compiled_on_use

__all__ = ["PACKAGES", "PROGRAM_TEXTS"]

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

_CATALOGUE = compiled_on_use(r"usr/.*/(?P<language>[a-z]+)/LC_MESSAGES/(?P<program>[^/]+)\.mo")
_VERSION = compiled_on_use(r"-?\d+(?:\.\d+)*$")  # of a program, at the end of its name


def _is_wanted(path: str, languages: Collection[str]) -> bool:
    found = _CATALOGUE.fullmatch(path)
    return found is not None and found["language"] in languages


def _pairs(catalogues: Mapping[str, bytes], language: str) -> Iterator[DocumentPair]:
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


PROGRAM_TEXTS = PackageText(
    "program-texts",
    "Messages of programs and games, split by program",
    PACKAGES,
    _is_wanted,
    _pairs,
    held_out_per_1000=15,
)
