"""The corpus ``manuals``: handbooks, help and manual pages of programs and Debian, English with German and French.

    .deb files --read--> pages in two languages --align sections--> pairs --split by page--> train, dev, test

Prose of technical writers by their translators: Mallard, DocBook, HTML and roff of Debian 12's packages. Pages have
the same path, but for the language. A title and what follows are a section; sections with the same kinds of blocks, in
the same order, are translations of each other, and so are their blocks.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from html.entities import html5
from itertools import chain

from transduce.corpora.package_text import DocumentPair, PackageText
from transduce.corpora.roff import UNKNOWN, Block, roff_sections
from transduce.corpora.source import Pair
from transduce.corpora.splitting import is_translation
from transduce.errors import DataError
from transduce.files import READ_ERRORS
from transduce.patterns import compiled_on_use
from transduce.text import needs_translation, split_sentences
from transduce.text.markup import MarkupRules, divide, html_rules

__all__ = ["MANUALS", "PACKAGES"]

_OF_BOTH = """\
accerciser anjuta-common apache2-doc apt baobab bibletime-data bijiben brasero-common burner-common cheese-common
coreutils cups-client debconf-doc debhelper debian-handbook debian-history devscripts dia-common dpkg dpkg-dev easytag
eog epiphany-browser-data evince-common evolution-common file-roller five-or-more font-manager-common frogr-data
gbrainy geary gedit-common genius-common glabels-data gnome-boxes gnome-calculator gnome-chess gnome-clocks
gnome-devel-docs gnome-dictionary gnome-mahjongg gnome-mines gnome-music gnome-sudoku gnome-system-monitor
gnome-terminal-data gnome-user-docs gnote gosa-help-en gthumb-data gtranslator iagno installation-guide-amd64
kdoctools5 kio kio-extras-data konqueror kturtle kupfer live-manual-html login man-db manpages manpages-dev
mate-calc-common modem-manager-gui-help mount mplayer-doc net-tools ocrfeeder orca parlatype partitionmanager passwd
pitivi po4a procps seahorse shotwell-common simple-scan solfege-doc sylpheed-doc tellico-doc totem-common util-linux
vinagre weechat-doc xz-utils zenity-common""".split()
_OF_GERMAN = """\
debmake-doc endeavour-common grub-common kate5-data kbd khelpcenter kmail kmymoney-common krusader meld mtools
pulseeffects sgt-puzzles systemd umbrello-data""".split()
_OF_FRENCH = "aptitude-doc-en aptitude-doc-fr e2fsprogs glibc-doc harden-doc nfs-common".split()
_BY_LANGUAGE = "debian-reference gimp-help".split()  # with a package for each, and one for English
_TRANSLATED = (*_BY_LANGUAGE, "gosa-help", "manpages")

PACKAGES: Mapping[str, Sequence[str]] = {
    **{name: ["de", "fr"] for name in (*_OF_BOTH, *(f"{each}-en" for each in _BY_LANGUAGE))},
    **{name: ["de"] for name in (*_OF_GERMAN, "manpages-de-dev", *(f"{each}-de" for each in _TRANSLATED))},
    **{name: ["fr"] for name in (*_OF_FRENCH, "manpages-fr-dev", *(f"{each}-fr" for each in _TRANSLATED))},
}

MAX_CHARACTERS = 1000  # on a side
MAX_ENTITY = 200  # characters; longer are notices, and what is made to fill the memory
MAX_BYTES = 1 << 22  # of a page of ``man``

# A page, one of ``man``, and the definitions of entities that those of KDE use: names of programs and keys.
_PAGE = compiled_on_use(
    r"(?P<before>usr/share/(?:.*?[/.])?)(?P<language>C|(?:en|de|fr)(?:[-_](?:US|DE|FR))?)"
    r"(?P<after>[/.](?:.*\.)?(?:docbook|page|x?html))"
)
_MANUAL_PAGE = compiled_on_use(r"usr/share/man/(?:(?P<language>de|fr)/)?(?P<page>man\d/[^/]+\.gz)")
_ENTITIES = compiled_on_use(r"usr/share/kf5/kdoctools/customization/(?P<language>entities|en|de|fr)/\w+\.entities")
_ENTITY = compiled_on_use(r"""<!ENTITY\s+([\w.-]+)\s+(?:"([^"]*)"|'([^']*)')\s*>""")
_REFERENCE = compiled_on_use(r"&([A-Za-z_][\w.-]*);")
_XML_ENTITIES = frozenset("amp lt gt quot apos".split())
_TAG = compiled_on_use(r"<([A-Za-z][\w:.-]*)")
_TITLES = frozenset("title h1 h2 h3 h4 h5 h6".split())

_HTML = MarkupRules("html", frozenset(("pre", "script", "style")), html_rules().splitting)
_XML = MarkupRules(
    "xml",
    ignored=frozenset(
        "articleinfo authorgroup bookinfo copyright credit indexterm keywordset legalnotice license mal:credit "
        "othercredit programlisting revision screen synopsis".split()
    ),
    splitting=frozenset(
        "abstract answer appendix article blockquote book caption chapter desc entry example figure formalpara "
        "glossary glossdef glossentry glossterm imageobject info informaltable item itemizedlist links list listitem "
        "media mediaobject note orderedlist p page para part phrase preface procedure qandaentry qandaset question "
        "refentry refsect1 refsect2 refname refpurpose row screeninfo screenshot sect1 sect2 sect3 sect4 section "
        "simpara simplesect steps step subtitle table tbody td term terms textobject tgroup th thead title titleabbrev "
        "tr tree variablelist varlistentry".split()
    ),
)


def _is_wanted(path: str, languages: Collection[str]) -> bool:
    entities = _ENTITIES.fullmatch(path)
    language = entities["language"] if entities else _place(path)[1]
    return language in ("en", "entities", *languages)


def _place(path: str) -> tuple[str, str]:
    """Return the path of a page without its language, and the language; "" for other files."""
    if (found := _PAGE.fullmatch(path)) is not None:
        language = "en" if found["language"] == "C" else found["language"][:2]
        return f"{found['before']}*{found['after']}", language
    if (found := _MANUAL_PAGE.fullmatch(path)) is not None:
        return found["page"], found["language"] or "en"
    return "", ""


def _pairs(files: Mapping[str, bytes], language: str) -> Iterator[DocumentPair]:
    """Yield (page, English sentence, other sentence) of the pages that are there in both languages."""
    pages: dict[str, dict[str, str]] = {}  # the path by language, by that of the page without it
    for path in sorted(files):
        page, its_language = _place(path)
        pages.setdefault(page, {}).setdefault(its_language, path)
    entities = {each: _entities(files, each) for each in ("en", language)}
    for page, paths in pages.items():
        if not {"en", language} <= paths.keys():
            continue
        ours, theirs = (_sections(paths[each], files[paths[each]], entities[each]) for each in ("en", language))
        for english, other in filter(_is_usable, _aligned(ours, theirs)):
            yield from ((page, *pair) for pair in _by_sentence(english, other, language) if _is_usable(pair))


def _entities(files: Mapping[str, bytes], language: str) -> dict[str, str]:
    """Return what the entities of a language stand for, by name."""
    texts = (
        _text(files[path])
        for folder in ("entities", language)
        for path in sorted(files)
        if (found := _ENTITIES.fullmatch(path)) and found["language"] == folder
    )
    return dict(chain.from_iterable(map(_declared, texts)))


def _declared(text: str) -> Iterator[tuple[str, str]]:
    return ((name, double or single) for name, double, single in _ENTITY.findall(text))


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _sections(path: str, data: bytes, entities: Mapping[str, str]) -> list[list[Block]]:
    """Return the texts of a page, by section."""
    if _MANUAL_PAGE.fullmatch(path):
        return roff_sections(_text(_uncompressed(path, data)))
    markup = _text(data)
    if path.endswith("html"):
        return _sections_of_markup(markup, _HTML)
    return _sections_of_markup(_resolved(markup, {**entities, **dict(_declared(markup))}), _XML)


def _uncompressed(path: str, data: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            return stream.read(MAX_BYTES)
    except READ_ERRORS as error:
        raise DataError(f"{path} of a package cannot be read: {error}; fetch the package again") from error


def _sections_of_markup(markup: str, rules: MarkupRules) -> list[list[Block]]:
    sections, element = [list[Block]()], ""
    for part in divide(markup, rules):
        if isinstance(part, str):
            element = next(reversed(_TAG.findall(part)), element).lower()
        elif any(map(str.isalpha, part.text)):
            if element in _TITLES:
                sections.append([])
            sections[-1].append((element, " ".join(part.text.split())))
    return sections


def _resolved(markup: str, entities: Mapping[str, str]) -> str:
    """Return XML with no entities but those of XML itself; an unknown or a long one is ``UNKNOWN``.

    >>> _resolved("&me; &amp; &eacute; &cat;", {"me": "the &dog;", "dog": "<b>dog</b>"})
    'the <b>dog</b> &amp; é \ufffd'
    """

    def replaced(text: str, known: Mapping[str, str]) -> str:
        def value(reference: re.Match[str]) -> str:
            name = reference[1]
            if name in _XML_ENTITIES:
                return reference[0]
            found = known.get(name) or html5.get(f"{name};", UNKNOWN)
            return found if len(found) <= MAX_ENTITY else UNKNOWN

        return _REFERENCE.sub(value, text)

    return replaced(markup, {name: replaced(text, entities) for name, text in entities.items()})


def _aligned(ours: Sequence[Sequence[Block]], theirs: Sequence[Sequence[Block]]) -> Iterator[Pair]:
    """Yield the texts of blocks with their translations.

    >>> dogs, cats = [("title", "Dogs"), ("p", "They sleep.")], [("title", "Cats"), ("p", "They eat."), ("p", "Fish.")]
    >>> hunde = [("title", "Hunde"), ("p", "Sie schlafen.")]
    >>> list(_aligned([dogs, cats], [hunde]))
    [('Dogs', 'Hunde'), ('They sleep.', 'Sie schlafen.')]
    """
    kinds, its_kinds = ([tuple(element for element, _ in section) for section in each] for each in (ours, theirs))
    for first, its_first, n in SequenceMatcher(None, kinds, its_kinds, autojunk=False).get_matching_blocks():
        for section, its in zip(ours[first : first + n], theirs[its_first : its_first + n], strict=True):
            yield from ((text, translation) for (_, text), (_, translation) in zip(section, its, strict=True))


def _by_sentence(english: str, other: str, language: str) -> list[Pair]:
    """Return a pair of paragraphs as pairs of sentences; as it is if their numbers differ."""
    ours, theirs = split_sentences(english, "en"), split_sentences(other, language)
    if len(ours) != len(theirs):
        return [(english, other)]
    return [(one.text, its.text) for one, its in zip(ours, theirs, strict=True)]


def _is_usable(pair: Pair) -> bool:
    english, other = pair
    return (
        max(map(len, pair)) <= MAX_CHARACTERS
        and is_translation(english, other)
        and sorted(re.findall(r"\d+", english)) == sorted(re.findall(r"\d+", other))
        and not any(UNKNOWN in side for side in pair)
        and needs_translation(english)
    )


MANUALS = PackageText(
    "manuals", "Handbooks, help and manual pages, split by page", PACKAGES, _is_wanted, _pairs, held_out_per_1000=20
)
