"""The corpus ``libreoffice-help``: the help pages of LibreOffice, English with German and French.

    .deb files --unpack--> pages of HTML --same page, same id--> pairs of paragraphs --by page--> train, dev, test

Real prose by technical writers and translators, under a free licence (MPL-2.0), in three Debian packages of 8 MB.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from transduce.config import Split
from transduce.corpora.debian_packages import read_control_field, unpack_package
from transduce.errors import DataError
from transduce.files import atomic_folder, read_lines, write_lines, write_text

__all__ = ["PACKAGES", "aligned_paragraphs", "write_libreoffice_help"]

PACKAGES: Mapping[str, str] = {"en": "libreoffice-help-en-us", "de": "libreoffice-help-de", "fr": "libreoffice-help-fr"}

MIN_ENGLISH_WORDS = 3
MAX_LENGTH_RATIO = 2.5
RATIO_FLOOR = 20  # characters that a side counts at least: a short heading may have a translation of any length

# Of 1,000 pages, for dev and as many for test. Less what is in train too, about 1,000 and 900 pairs remain of them.
HELD_OUT_PAGES_PER_1000 = 45

Pair = tuple[str, str]


def aligned_paragraphs(english: Path, other: Path) -> Iterator[tuple[str, str, str]]:
    """(page, English text, other text) of each paragraph and heading that both folders of pages have, in page order.

    A page is named by its path below the folder, a paragraph by its ``id`` (and which of that id it is, for those that
    a page has several times). Tags are gone, entities resolved, and all whitespace is single blanks. Where the text
    depends on the system or the program that shows it, the variant for "any other" is taken, or else the first one.

    What is no prose, or no translation, is left out:

        samples of code and syntax, and the table of file filters, as their ``class`` says
        English of fewer than three words: labels of buttons and menus
        sides that are the same but for punctuation and case: names, code, and what nobody has translated
        a side with more digits and signs than letters: formulas and their values
        a side over 2.5 times as long as the other (20 characters at least): a free retelling, or another paragraph
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
    """Write ``{train,dev,test}.en-de.{en,de}`` and ``.en-fr.{en,fr}`` into a new ``folder``; returns how many pairs.

    ``packages`` has the .deb file of each language: ``en`` and at least one other. The result is keyed by direction,
    then by split. ``log`` gets a line before each step.

    A hash of its path puts a page into one split, the same for each direction. A pair stands in its split once. English
    that is on pages of several splits stays in the first of train, dev and test: whichever side gave it up, as many
    different pairs would be left, but here train keeps the phrases that are everywhere, and the test is of new ones.

    Raises DataError if ``en`` or all others are missing, if a package cannot be read or is another one, or if there is
    something in ``folder`` already.
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
            splits = _split(aligned_paragraphs(pages["en"], pages[language]))
            sizes[f"en-{language}"] = {str(split): len(pairs) for split, pairs in splits.items()}
            for split, pairs in splits.items():
                for side, suffix in enumerate(("en", language)):
                    write_lines(temporary / f"{split}.en-{language}.{suffix}", (pair[side] for pair in pairs))
        write_text(temporary / "README.md", _readme(versions, sizes))
    return sizes


def _checked_version(deb: Path, language: str) -> str:
    """The version of a package, when it is the one for the language."""
    name = read_control_field(deb, "Package")
    if name != PACKAGES[language]:
        raise DataError(f"{deb} is the package {name}; for {language}, {PACKAGES[language]} is needed")
    return read_control_field(deb, "Version")


def _unpack_pages(deb: Path, folder: Path) -> Path:
    """The folder with the pages of a package, unpacked."""
    unpack_package(deb, folder)
    found = sorted(folder.glob("usr/share/libreoffice/help/*/text"))
    if len(found) != 1:
        raise DataError(f"{deb} has {len(found)} folders usr/share/libreoffice/help/*/text; one is needed")
    return found[0]


def _split(paragraphs: Iterable[tuple[str, str, str]]) -> dict[Split, list[Pair]]:
    """The pairs of each split: different ones, and no English in two splits."""
    pairs: dict[Split, dict[Pair, None]] = {"train": {}, "dev": {}, "test": {}}  # dicts, as sets that keep their order
    for page, english, other in paragraphs:
        pairs[_split_of_page(page)][english, other] = None
    taken: set[str] = set()
    result: dict[Split, list[Pair]] = {}
    for split, candidates in pairs.items():
        result[split] = [pair for pair in candidates if pair[0] not in taken]
        taken.update(english for english, _ in result[split])
    return result


def _split_of_page(page: str) -> Split:
    """Where a page belongs, the same on every machine and whatever other pages there are."""
    place = int.from_bytes(hashlib.sha256(page.encode()).digest()[:8], "big") % 1000
    if place < HELD_OUT_PAGES_PER_1000:
        return "dev"
    return "test" if place < 2 * HELD_OUT_PAGES_PER_1000 else "train"


def _readme(versions: Mapping[str, str], sizes: Mapping[str, Mapping[str, int]]) -> str:
    rows = [f"| {direction} | {' | '.join(f'{n:,}' for n in row.values())} |" for direction, row in sizes.items()]
    sources = [f"- {PACKAGES[language]} {version}" for language, version in versions.items()]
    return "\n".join(
        [
            "# libreoffice-help",
            "",
            "Paragraphs of the help pages of LibreOffice, aligned by their ids; line N of one file of a pair is the",
            "translation of line N of the other. Split by page: no English line of dev or test is in train.",
            "",
            "| pairs | train | dev | test |",
            "| --- | --- | --- | --- |",
            *rows,
            "",
            "Taken from the Debian packages",
            "",
            *sources,
            "",
            "Copyright: the LibreOffice contributors. Licence: Mozilla Public License 2.0,",
            "<https://www.mozilla.org/MPL/2.0/>; the source of the text is at <https://www.libreoffice.org>.",
            "",
        ]
    )


def _is_prose(english: str, other: str) -> bool:
    """Whether a pair is text and its translation, as ``aligned_paragraphs`` tells it."""
    shorter, longer = sorted((len(english), len(other)))
    return (
        shorter > 0
        and len(english.split()) >= MIN_ENGLISH_WORDS
        and longer <= MAX_LENGTH_RATIO * max(shorter, RATIO_FLOOR)
        and _letters_and_digits(english) != _letters_and_digits(other)
        and _is_mostly_letters(english)
        and _is_mostly_letters(other)
        and "not found]" not in english
    )


def _letters_and_digits(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _is_mostly_letters(text: str) -> bool:
    n_letters, n_blanks = sum(map(str.isalpha, text)), text.count(" ")
    return n_letters >= len(text) - n_blanks - n_letters


def _paragraphs(page: Path) -> dict[tuple[str, int], str]:
    """The text of each paragraph that has an id, by the id and the number of times that the page had it before."""
    reader = _PageReader()
    reader.feed("\n".join(read_lines(page)))
    reader.close()
    times_seen: Counter[str] = Counter()
    paragraphs = {}
    for name, text in reader.paragraphs:
        paragraphs[name, times_seen[name]] = text
        times_seen[name] += 1
    return paragraphs


_PARAGRAPH_TAGS = frozenset("p h h1 h2 h3 h4 h5 h6".split())
_CLASSES_WITHOUT_PROSE = frozenset("code codeintable smathcode example table_font_small".split())


@dataclass(slots=True)
class _Span:
    """An open element with text in it: pieces; or, in a switch, variants by whom they are for ("" is any other)."""

    is_for: str | None = None  # what this span is itself a variant for; None if it is not one
    pieces: list[str] = field(default_factory=list)
    variants: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        if self.variants:
            return self.variants.get("", next(iter(self.variants.values())))
        return "".join(self.pieces)


class _PageReader(HTMLParser):
    """Collects the paragraphs of a page, in order: (id, text).

    Variants for systems and programs stand side by side, all of them hidden until a script in the page shows one:

        <span class="switchinline"><span hidden class="MAC">Command</span><span hidden>Ctrl</span></span>
    """

    def __init__(self) -> None:
        super().__init__()
        self.paragraphs: list[tuple[str, str]] = []
        self._name: str | None = None  # the id of the paragraph that is open
        self._spans: list[_Span] = []  # the paragraph itself, then the spans that are open in it

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a paragraph or a span; a line break is a blank."""
        attributes = dict(attrs)
        classes = attributes.get("class") or ""
        if tag in _PARAGRAPH_TAGS:
            self._name = None if _CLASSES_WITHOUT_PROSE.intersection(classes.split()) else attributes.get("id")
            self._spans = [_Span()]
        elif self._name is None:
            return
        elif tag == "span":
            self._spans.append(_Span(is_for=classes if "hidden" in attributes else None))
        elif tag == "br":
            self._spans[-1].pieces.append(" ")

    def handle_endtag(self, tag: str) -> None:
        """Close a paragraph, or hand the text of a span on to what is around it."""
        if self._name is None:
            return
        if tag in _PARAGRAPH_TAGS:
            self.paragraphs.append((self._name, " ".join(self._spans[0].text().split())))
            self._name = None
        elif tag == "span" and len(self._spans) > 1:
            span = self._spans.pop()
            if span.is_for is None:
                self._spans[-1].pieces.append(span.text())
            else:
                self._spans[-1].variants[span.is_for] = span.text()

    def handle_data(self, data: str) -> None:
        """Text belongs to the innermost open span."""
        if self._name is not None:
            self._spans[-1].pieces.append(data)
