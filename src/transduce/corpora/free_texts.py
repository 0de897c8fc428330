"""Free texts that are not downloaded: they are read from a local copy, as the folders of their names.

Sizes are training pairs of English with German and with French.
"""

from __future__ import annotations

from transduce.config import SPLITS
from transduce.corpora.corpus import Corpus, Text

__all__ = ["FREE_TEXTS"]


def _from_copy(name: str, n_german: int, n_french: int, licence: str, source: str) -> Corpus:
    """Return a corpus that is read as a folder of one's own is: dev and test may be missing."""
    sizes = {"de": n_german, "fr": n_french}
    size = ", ".join(f"en-{language} {n:,}" for language, n in sizes.items() if n) + " pairs"
    languages = ("en", *(language for language, n in sizes.items() if n))
    train, dev, test = ((Text(name, split),) for split in SPLITS)
    return Corpus(name, languages, size, licence, source, train=train, dev=dev, test=test)


_OF_PROGRAMS = "each program's own free licence"

FREE_TEXTS = (
    _from_copy("debian_ddtp", 41_497, 57_382, "that of each package", "descriptions of Debian 12's packages"),
    _from_copy("debian_docs", 8_902, 7_829, "GPL-2, GPL-2+, see each", "Debian Reference, FAQ, Developer's Reference"),
    _from_copy("debian_handbook", 5_388, 4_032, "GPL-2+ or CC BY-SA 3.0", "The Debian Administrator's Handbook"),
    _from_copy("debian_manuals", 5_812, 6_708, "GPL-2+, BSD-2-Clause", "installation guide, dpkg, debconf, aptitude"),
    _from_copy("debian_website", 24_202, 54_906, "Expat, GPL-2+ or OPL 1.0", "github.com/l/debian-webwml, 2018"),
    _from_copy("django_docs", 0, 30_185, "BSD-3-Clause", "github.com/django/django-docs-translations, 5.1"),
    _from_copy("freeciv", 8_381, 10_468, "GPL-2+", "messages and help of Freeciv 3.0; Debian source"),
    _from_copy("game_texts", 35_528, 21_019, _OF_PROGRAMS, "Widelands, Naev, Warzone 2100 and others; Debian 12"),
    _from_copy("gimp_help", 6_145, 7_029, "GFDL", "manual of GIMP; Debian's gimp-help-{en,de,fr}"),
    _from_copy("git_docs", 594, 8_829, "GPL-2", "github.com/jnavila/git-manpages-l10n"),
    _from_copy("gnome_apps_help", 9_640, 10_038, "GFDL or CC BY-SA 3.0", "help of some 60 programs of GNOME and MATE"),
    _from_copy("gnome_user_docs", 2_758, 2_594, "CC BY-SA 3.0", "github.com/GNOME/gnome-user-docs"),
    _from_copy("handbooks", 1_313, 2_800, "GFDL, GPL-2+, GPL-3+", "LilyPond, KiCad, Debian Live and others; Debian 12"),
    _from_copy("kde_docs", 18_647, 9_719, "mostly GFDL", "handbooks of some 80 programs of KDE; Debian 12"),
    _from_copy("manpages", 27_309, 33_840, "GPL-3+, and each page's own", "Debian's manpages-{de,fr} 4.18"),
    _from_copy("mozilla_web", 3_730, 3_925, "MPL-2.0, CC BY-SA 3.0", "github.com/mozilla-l10n/www-l10n, legal-docs"),
    _from_copy("php_manual", 24_674, 58_873, "CC BY 3.0", "github.com/php/doc-{en,de,fr}"),
    _from_copy("python_docs", 0, 27_355, "CC0, PSF", "github.com/python/python-docs-fr, 3.13"),
    _from_copy("rust_book", 4_940, 2_892, "MIT or Apache-2.0", "github.com/rust-lang/book and its translations"),
    _from_copy("tatoeba_anki", 161_655, 154_766, "CC BY 2.0", "short sentences; Tatoeba, export of May 2018"),
    _from_copy("ui_apps", 188_365, 197_031, _OF_PROGRAMS, "interfaces of some 190 programs; Debian 12"),
    _from_copy("wesnoth", 18_577, 19_895, "GPL-2+, CC BY-SA 4.0", "stories and help of Battle for Wesnoth 1.16"),
    _from_copy("wpilib_docs", 0, 13_262, "CC BY 4.0", "github.com/wpilibsuite/frc-docs-translations"),
)
