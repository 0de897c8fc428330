"""The corpus ``libreoffice-help``: help pages of LibreOffice, English with German and French.

    .deb files --read--> HTML pages --match page and id--> pairs of paragraphs --split by page--> train, dev, test

Real prose by technical writers and translators, under a free licence (MPL-2.0), in three Debian packages of 8 MB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser

from transduce.corpora.package_text import DocumentPair, PackageText
from transduce.corpora.splitting import is_translation
from transduce.errors import DataError
from transduce.patterns import compiled_on_use

__all__ = ["LIBREOFFICE_HELP", "PACKAGES"]

PACKAGES: Mapping[str, Sequence[str]] = {
    "libreoffice-help-en-us": ["de", "fr"],
    "libreoffice-help-de": ["de"],
    "libreoffice-help-fr": ["fr"],
}

MIN_ENGLISH_WORDS = 3

_PAGE = compiled_on_use(r"usr/share/libreoffice/help/(?P<language>en|de|fr)(?:-US)?/text/(?P<page>.+\.html)")


def _is_wanted(path: str, languages: Collection[str]) -> bool:
    found = _PAGE.fullmatch(path)
    return found is not None and found["language"] in ("en", *languages)


def _pairs(files: Mapping[str, bytes], language: str) -> Iterator[DocumentPair]:
    """Yield (page, English text, other text) of each paragraph and heading, in page order.

    A paragraph is identified by the path of its page, by its ``id`` and its index among the paragraphs of the page with
    that id. Tags are removed, entities resolved, and whitespace becomes single spaces. If the text depends on the
    operating system or program, the variant for "any other" is used, or else the first one.

    Skipped because they are not prose, or not translations:

        code and syntax samples, and the table of file filters, recognised by their ``class``
        English of fewer than three words: labels of buttons and menus
        sides that are equal except for punctuation and case: names, code, and untranslated text
        a side with more digits and signs than letters: formulas and their values
        a side over 2.5 times as long as the other (at least 20 characters): a very free or misaligned translation
        links that were broken when the help was built: "[... not found]"

    Raises DataError if a page is not UTF-8.
    """
    paths: dict[str, dict[str, str]] = {"en": {}, language: {}}  # by language and page
    for path in files:
        found = _PAGE.fullmatch(path)
        if found is not None and found["language"] in paths:
            paths[found["language"]][found["page"]] = path
    for page in sorted(paths["en"].keys() & paths[language].keys()):
        english, other = (_paragraphs(files, paths[each][page]) for each in ("en", language))
        for key, text in english.items():
            translation = other.get(key, "")
            if _is_prose(text, translation):
                yield page, text, translation


def _is_prose(english: str, other: str) -> bool:
    return len(english.split()) >= MIN_ENGLISH_WORDS and is_translation(english, other) and "not found]" not in english


def _paragraphs(files: Mapping[str, bytes], path: str) -> dict[tuple[str, int], str]:
    """Return the texts of the paragraphs with an id, by (id, index among the paragraphs with this id)."""
    reader = _PageReader()
    try:
        reader.feed(files[path].decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise DataError(f"{path} of a package is not UTF-8; fetch the package again") from None
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


LIBREOFFICE_HELP = PackageText(
    "libreoffice-help",
    "Paragraphs of the help pages of LibreOffice (Mozilla Public License 2.0), split by page",
    PACKAGES,
    _is_wanted,
    _pairs,
    held_out_per_1000=45,  # about 1,000 and 900 pairs remain without the lines that are also in train
    needs_all=True,
)
