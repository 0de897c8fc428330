"""The corpus ``libreoffice-help``: help pages of LibreOffice, English with German and French.

    .deb files --unpack--> HTML pages --match page and id--> pairs of paragraphs --split by page--> train, dev, test

Real prose by technical writers and translators, under a free licence (MPL-2.0), in three Debian packages of 8 MB.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from transduce.corpora.corpus import Builder, Log
from transduce.corpora.debian_packages import read_control_field, unpack_package
from transduce.corpora.splitting import is_translation, readme, split_by_document, write_direction
from transduce.errors import DataError
from transduce.files import atomic_folder, read_lines, write_text

__all__ = ["BUILDER", "PACKAGES", "aligned_paragraphs", "write_libreoffice_help"]

PACKAGES: Mapping[str, str] = {"en": "libreoffice-help-en-us", "de": "libreoffice-help-de", "fr": "libreoffice-help-fr"}

MIN_ENGLISH_WORDS = 3

# For dev, and as many for test; about 1,000 and 900 pairs remain without the lines that are also in train.
HELD_OUT_PAGES_PER_1000 = 45


def aligned_paragraphs(english: Path, other: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (page, English text, other text) of each paragraph and heading in both folders of pages, in page order.

    A page is identified by its path below the folder, a paragraph by its ``id`` and its index among the paragraphs of
    the page with that id. Tags are removed, entities resolved, and whitespace becomes single spaces. If the text
    depends on the operating system or program, the variant for "any other" is used, or else the first one.

    Skipped because they are not prose, or not translations:

        code and syntax samples, and the table of file filters, recognised by their ``class``
        English of fewer than three words: labels of buttons and menus
        sides that are equal except for punctuation and case: names, code, and untranslated text
        a side with more digits and signs than letters: formulas and their values
        a side over 2.5 times as long as the other (at least 20 characters): a very free or misaligned translation
        links that were broken when the help was built: "[... not found]"

    Raises DataError if a page is not UTF-8.
    """
    for page in sorted(path.relative_to(english).as_posix() for path in english.rglob("*.html")):
        if not (other / page).is_file():
            continue
        translations = _paragraphs(other / page)
        for key, text in _paragraphs(english / page).items():
            translation = translations.get(key, "")
            if _is_prose(text, translation):
                yield page, text, translation


def write_libreoffice_help(
    folder: Path, packages: Mapping[str, Path], *, log: Callable[[str], None] = lambda line: None
) -> dict[str, dict[str, int]]:
    """Write ``{train,dev,test}.en-de.{en,de}`` and ``.en-fr.{en,fr}`` into a new ``folder``; return the sizes.

    ``packages`` has the .deb file of each language: ``en`` and at least one other. The sizes are keyed by direction,
    then by split. ``log`` gets a line before each step.

    A hash of its path assigns a page to one split, the same in each direction. Each split is deduplicated. English text
    on pages of several splits is kept in the first of train, dev and test only: train keeps the ubiquitous phrases, and
    dev and test measure new text.

    Raises DataError if ``en`` or all others are missing, if a package cannot be read or is the wrong one, or if
    ``folder`` exists and is not empty.
    """
    others = [language for language in PACKAGES if language != "en" and language in packages]
    if "en" not in packages or not others:
        raise DataError(f"packages of en and of de or fr are needed, got {', '.join(packages) or 'none'}")
    with atomic_folder(folder) as temporary, tempfile.TemporaryDirectory() as unpacked:
        versions, pages = {}, {}
        for language in ("en", *others):
            log(f"unpacking {packages[language].name}")
            versions[language] = _checked_version(packages[language], language)
            pages[language] = _unpack_pages(packages[language], Path(unpacked) / language)
        sizes = {}
        for language in others:
            log(f"reading the pages of en-{language}")
            paragraphs = aligned_paragraphs(pages["en"], pages[language])
            splits = split_by_document(paragraphs, held_out_per_1000=HELD_OUT_PAGES_PER_1000)
            sizes[f"en-{language}"] = write_direction(temporary, language, splits)
        write_text(temporary / "README.md", _readme(versions, sizes))
    return sizes


def _checked_version(deb: Path, language: str) -> str:
    """Return the version of a package. Raises DataError if it is not the package of the language."""
    name = read_control_field(deb, "Package")
    if name != PACKAGES[language]:
        raise DataError(f"{deb} is the package {name}; for {language}, {PACKAGES[language]} is needed")
    return read_control_field(deb, "Version")


def _unpack_pages(deb: Path, folder: Path) -> Path:
    """Unpack a package and return the folder of its pages."""
    unpack_package(deb, folder)
    found = sorted(folder.glob("usr/share/libreoffice/help/*/text"))
    if len(found) != 1:
        raise DataError(f"{deb} has {len(found)} folders usr/share/libreoffice/help/*/text; one is needed")
    return found[0]


def _readme(versions: Mapping[str, str], sizes: Mapping[str, Mapping[str, int]]) -> str:
    return readme(
        "libreoffice-help",
        "Paragraphs of the help pages of LibreOffice, aligned by their ids; line N of one file of a pair is the\n"
        "translation of line N of the other. Split by page: no English line of dev or test is in train.",
        sizes,
        [f"- {PACKAGES[language]} {version}" for language, version in versions.items()],
        "Copyright: the LibreOffice contributors. Licence: Mozilla Public License 2.0,\n"
        "<https://www.mozilla.org/MPL/2.0/>; the source of the text is at <https://www.libreoffice.org>.",
    )


def _is_prose(english: str, other: str) -> bool:
    """Whether a pair passes the filters of ``aligned_paragraphs``."""
    return len(english.split()) >= MIN_ENGLISH_WORDS and is_translation(english, other) and "not found]" not in english


def _paragraphs(page: Path) -> dict[tuple[str, int], str]:
    """Return the texts of the paragraphs with an id, by (id, index among the paragraphs with this id)."""
    reader = _PageReader()
    reader.feed("\n".join(read_lines(page)))
    reader.close()
    counts: Counter[str] = Counter()
    paragraphs = {}
    for name, text in reader.paragraphs:
        paragraphs[name, counts[name]] = text
        counts[name] += 1
    return paragraphs


_PARAGRAPH_TAGS = frozenset("p h h1 h2 h3 h4 h5 h6".split())
_CLASSES_WITHOUT_PROSE = frozenset("code codeintable smathcode example table_font_small".split())


@dataclass(slots=True)
class _Span:
    """An open element: the parts of its text, or, for a switch, its variants by system or program ("": any other)."""

    variant: str | None = None  # the system or program that this span is a variant for; None if it is not one
    parts: list[str] = field(default_factory=list)
    variants: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        if self.variants:
            return self.variants.get("", next(iter(self.variants.values())))
        return "".join(self.parts)


class _PageReader(HTMLParser):
    """Parser that collects the paragraphs of a page in order, as (id, text).

    Variants for systems and programs are siblings, all hidden until a script in the page shows one:

        <span class="switchinline"><span hidden class="MAC">Command</span><span hidden>Ctrl</span></span>
    """

    def __init__(self) -> None:
        super().__init__()
        self.paragraphs: list[tuple[str, str]] = []
        self._name: str | None = None  # the id of the open paragraph
        self._spans: list[_Span] = []  # the paragraph itself, then the open spans in it

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a paragraph or a span; a line break becomes a space."""
        attributes = dict(attrs)
        classes = attributes.get("class") or ""
        if tag in _PARAGRAPH_TAGS:
            self._name = None if _CLASSES_WITHOUT_PROSE.intersection(classes.split()) else attributes.get("id")
            self._spans = [_Span()]
        elif self._name is None:
            return
        elif tag == "span":
            self._spans.append(_Span(variant=classes if "hidden" in attributes else None))
        elif tag == "br":
            self._spans[-1].parts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        """Close a paragraph, or append the text of a span to its parent."""
        if self._name is None:
            return
        if tag in _PARAGRAPH_TAGS:
            self.paragraphs.append((self._name, " ".join(self._spans[0].text().split())))
            self._name = None
        elif tag == "span" and len(self._spans) > 1:
            span = self._spans.pop()
            if span.variant is None:
                self._spans[-1].parts.append(span.text())
            else:
                self._spans[-1].variants[span.variant] = span.text()

    def handle_data(self, data: str) -> None:
        """Append text to the innermost open span."""
        if self._name is not None:
            self._spans[-1].parts.append(data)


def _write(folder: Path, packages: Mapping[str, Path], others: Sequence[str], log: Log) -> None:
    write_libreoffice_help(folder, {language: packages[PACKAGES[language]] for language in ("en", *others)}, log=log)


BUILDER = Builder({name: [language] for language, name in PACKAGES.items()}, _write)
