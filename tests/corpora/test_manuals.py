"""Pages of manuals in two languages become pairs of sentences, and packages of them a corpus."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path

import pytest

from debs import build_deb
from said import naming
from transduce.corpora.catalogue import CATALOGUE
from transduce.corpora.getting import get_corpus
from transduce.corpora.manuals import MANUALS, PACKAGES
from transduce.corpora.roff import roff_sections
from transduce.errors import DataError

MALLARD = """\
<page xmlns="http://projectmallard.org/1.0/" id="{id}">
  <info>{credit}<desc>{desc}</desc></info>
  <title>{title}</title>
  <p>{first} <gui>{gui}</gui>{end}</p>
  <screen>dog --sleep</screen>
</page>
"""
ENGLISH_PAGE = MALLARD.format(
    id="x", credit="", desc="How dogs sleep.", title="Dogs", first="A dog sleeps. Press", gui="Wake", end=" twice."
)
GERMAN_PAGE = MALLARD.format(
    id="x",
    credit="<mal:credit><mal:name>Anna Beispiel</mal:name></mal:credit>",
    desc="Wie Hunde schlafen.",
    title="Hunde",
    first="Ein Hund schläft. Drücken Sie zweimal",
    gui="Wecken",
    end=".",
)
PAGE_PAIRS = [
    ("How dogs sleep.", "Wie Hunde schlafen."),
    ("Dogs", "Hunde"),
    ("A dog sleeps.", "Ein Hund schläft."),
    ("Press Wake twice.", "Drücken Sie zweimal Wecken."),
]

ENTITIES = {
    "entities/general": '<!ENTITY dog "<application>Dog</application>">',
    "en/user": "<!ENTITY Ctrl '<keycap>Ctrl</keycap>'>",
    "de/user": "<!ENTITY Ctrl '<keycap>Strg</keycap>'>",
}


def pairs_of(files: Mapping[str, str | bytes], language: str = "de") -> list[tuple[str, str]]:
    contents = {path: text if isinstance(text, bytes) else text.encode() for path, text in files.items()}
    assert all(MANUALS.is_wanted(path, [language]) for path in contents)
    return [(english, other) for _, english, other in MANUALS.pairs(contents, language)]


def test_a_page_of_mallard() -> None:
    assert pairs_of({"usr/share/help/C/dog/x.page": ENGLISH_PAGE, "usr/share/help/de/dog/x.page": GERMAN_PAGE}) == (
        PAGE_PAIRS
    )


def test_entities_of_docbook() -> None:
    folder = "usr/share/kf5/kdoctools/customization"
    docbook = '<!DOCTYPE book [<!ENTITY me "&dog;">]><book><para>{} &me; &Ctrl;.</para><para>{} &cat;.</para></book>'
    pages = {
        "usr/share/doc/HTML/en/dog/index.docbook": docbook.format("Wake", "See"),
        "usr/share/doc/HTML/de/dog/index.docbook": docbook.format("Weckt", "Siehe"),
    }
    files = {**pages, **{f"{folder}/{name}.entities": text for name, text in ENTITIES.items()}}
    assert pairs_of(files) == [("Wake Dog Ctrl.", "Weckt Dog Strg.")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
def test_html_keeps_the_sections_that_are_alike(encoding: str) -> None:
    english = "<h1>Dogs</h1><p>They sleep.<h2>Cats</h2><p>They eat.<p>So.<h2>Cows</h2><li>They drink <code>tea</code>."
    german = "<h1>Hunde</h1><p>Sie schlafen.<h2>Katzen</h2><p>Sie fressen.<h2>Kühe</h2><li>Sie mögen <code>tea</code>."
    path = "usr/share/doc/dog/html/dog.{}.html"
    assert pairs_of({path.format("en"): english, path.format("de"): german.encode(encoding)}) == [
        ("Dogs", "Hunde"),
        ("They sleep.", "Sie schlafen."),
        ("Cows", "Kühe"),
        ("They drink tea.", "Sie mögen tea."),
    ]


ENGLISH_ROFF = r"""
.\" a comment
.TH DOG 1 2026 "dogs 3"
.SH NAME
dog \- make a dog sleep
.SH OPTIONS
.TP
.BI \-n " HOURS"
Let the dog sleep for so many \fIHOURS\fR.
The cat does not sleep.
.IP \(bu
See
.BR cat (1).
.PP
.nf
dog \-n 3
.fi
"""
GERMAN_ROFF = r"""
.TH HUND 1 2026 "Hunde 3"
.SH BEZEICHNUNG
dog \- l\[u00E4]sst einen Hund schlafen
.SH OPTIONEN
.TP
\fB\-n\fP\ \fISTUNDEN\fP
L\(:asst den Hund so viele \fISTUNDEN\fP lang schlafen. Die Katze schläft nicht.
.IP \(bu
Siehe
.BR cat (1).
.SH \(:UBERSETZUNG
Diese Seite wurde von Anna Beispiel übersetzt.
"""


def test_manual_pages() -> None:
    pages = {"usr/share/man/man1/dog.1.gz": ENGLISH_ROFF, "usr/share/man/de/man1/dog.1.gz": GERMAN_ROFF}
    assert pairs_of({path: gzip.compress(text.encode()) for path, text in pages.items()}) == [
        ("NAME", "BEZEICHNUNG"),
        ("dog - make a dog sleep", "dog - lässt einen Hund schlafen"),
        ("OPTIONS", "OPTIONEN"),
        ("-n HOURS", "-n STUNDEN"),
        ("Let the dog sleep for so many HOURS.", "Lässt den Hund so viele STUNDEN lang schlafen."),
        ("The cat does not sleep.", "Die Katze schläft nicht."),
        ("See cat(1).", "Siehe cat(1)."),
    ]


def test_a_damaged_manual_page_is_named() -> None:
    whole, path = gzip.compress(ENGLISH_ROFF.encode()), "usr/share/man/man1/dog.1.gz"
    with pytest.raises(DataError, match=naming(path)):
        pairs_of({path: whole[:-9], "usr/share/man/de/man1/dog.1.gz": whole})


@pytest.mark.parametrize(
    ("page", "texts"),
    [
        (".SH\nDOGS\nsleep", ["DOGS", "sleep"]),
        ('.SH SEE ALSO\n.SS "Dogs and" cats\n', ["SEE ALSO", "Dogs and cats"]),
        ('.B dog "the dog"\n.br\n.RI ( dog )\n', ["dog the dog", "(dog)"]),
        ("the\n.\n'\\\" said\ndog\n.UR https://dogs.example\nhere\n.UE .\n", ["the dog here."]),
        ("dogs\n.TS\na b\n.TE\n.EX\ncode\n.EE\nsleep", ["dogs sleep"]),
        ("a\\*(xb \\[u110000] \\s-2dog\\s0 \\", ["a\ufffd(xb \ufffd dog"]),
    ],
)
def test_texts_of_a_manual_page(page: str, texts: list[str]) -> None:
    assert [text for section in roff_sections(page) for _, text in section] == texts


@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("The dog sleeps.", "The dog sleeps."),
        ("The dog has 3 cats.", "Der Hund hat 4 Katzen."),
        ("The dog &cat; sleeps.", "Der Hund &cat; schläft."),
        ("A dog.", "Ein Hund, der gestern noch da war, schläft heute nicht mehr, denn die Nacht war lang und kalt."),
    ],
)
def test_what_is_no_translation_is_left_out(english: str, german: str) -> None:
    files = {
        f"usr/share/help/{language}/dog/x.page": f"<page><p>{text}</p></page>"
        for language, text in (("C", english), ("de", german))
    }
    assert pairs_of(files) == []


@pytest.mark.parametrize(
    "path",
    [
        "usr/share/help/es/dog/x.page",
        "usr/share/help/fr/dog/x.page",
        "usr/share/help/de/dog/x.png",
        "usr/share/dog.html",
        "usr/lib/de/x.html",
    ],
)
def test_other_files_are_not_read(path: str) -> None:
    assert not MANUALS.is_wanted(path, ["de"])


def test_the_corpus_from_copies_of_its_packages(tmp_path: Path) -> None:
    files = {
        f"usr/share/help/{folder}/dog/{n}.page": page.replace("og", f"og{'abcdefghij'[n // 10]}{'abcdefghij'[n % 10]}")
        for n in range(100)
        for folder, page in (("C", ENGLISH_PAGE), ("de", GERMAN_PAGE.replace("Hund", "Dog")))
    }
    packages = tmp_path / "packages"
    packages.mkdir()
    build_deb(packages / "eog_43_all.deb", "eog", "43", {path: text.encode() for path, text in files.items()})
    counts = get_corpus(CATALOGUE["manuals"], tmp_path / "data", direction="en-de", from_folder=packages)
    assert counts.keys() >= {"train.en-de"}
    assert sum(counts.values()) > 200
    assert (tmp_path / "data/manuals/README.md").is_file()


def test_the_packages_are_as_many_as_the_catalogue_says() -> None:
    assert f"made from {len(PACKAGES)} Debian packages" in CATALOGUE["manuals"].source
    assert PACKAGES["gimp-help-de"] == ["de"]


def test_entities_that_would_fill_the_memory() -> None:
    laughs = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 50}">' for n in range(9))
    page = f'<!DOCTYPE book [<!ENTITY l0 "{"ha " * 60}">{laughs}]><book><para>{"&l9;" * 9}</para><para>%s</para></book>'
    files = {
        f"usr/share/doc/HTML/{each}/dog/index.docbook": page % text for each, text in (("en", "Dogs"), ("de", "Hunde"))
    }
    assert pairs_of(files) == [("Dogs", "Hunde")]
