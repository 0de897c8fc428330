"""Help pages in two languages become pairs of paragraphs, and packages of pages a corpus."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from debs import build_deb
from said import naming
from transduce.corpora.libreoffice_help import LIBREOFFICE_HELP
from transduce.errors import DataError

PAGE = """\
<!DOCTYPE html>
<html lang="en" dir="ltr">
<head><title>A title that is not taken</title><script type="text/javascript" src="help.js" defer></script></head>
<body>
<header id="TopLeftHeader"><a class="logo" href="x.html"><p dir="auto">The name of the help</p></a></header>
<div id="DisplayArea">
{body}
</div>
<div id="DEBUG" class="debug"><h3 class="bug">What the makers want to know</h3><p>The title is not taken</p></div>
</body>
</html>
"""


def paragraph(name: str, text: str, *, kind: str = "paragraph", tag: str = "p") -> str:
    return f'<{tag} id="{name}" class="{kind}" dir="auto">{text}</{tag}>\n'


FOLDERS = {"en": "en-US", "de": "de", "fr": "fr"}


def path_of(language: str, page: str) -> str:
    return f"usr/share/libreoffice/help/{FOLDERS[language]}/text/{page}.html"


def pairs_of(english: str, other: str) -> list[tuple[str, str]]:
    """Return the pairs of one page with these bodies."""
    pages = {
        path_of(language, "guide/page"): PAGE.format(body=body).encode()
        for language, body in (("de", other), ("en", english))
    }
    pages[path_of("en", "guide/other")] = pages[path_of("en", "guide/page")]
    assert all(LIBREOFFICE_HELP.is_wanted(path, ["de"]) for path in pages)
    found = list(LIBREOFFICE_HELP.pairs(pages, "de"))
    assert {page for page, _, _ in found} <= {"guide/page.html"}
    return [(en, de) for _, en, de in found]


def test_paragraphs_and_headings_with_the_same_id_are_pairs() -> None:
    english = (
        paragraph("hd_id1", "Feeding the three dogs", tag="h2")
        + '<ol><li itemprop="step">'
        + paragraph("par_id2", "Give each dog a bone.", kind="listitem")
        + "</li></ol>"
        + paragraph("par_id3", "Only English has this one.")
        + "<p>One without an id is left out.</p>"
    )
    german = paragraph("par_id2", "Jeder Hund bekommt einen Knochen.") + paragraph(
        "hd_id1", "Drei Hunde füttern", tag="h2"
    )
    assert pairs_of(english, german) == [
        ("Feeding the three dogs", "Drei Hunde füttern"),
        ("Give each dog a bone.", "Jeder Hund bekommt einen Knochen."),
    ]


def test_tags_entities_and_whitespace() -> None:
    english = paragraph(
        "par_id1",
        'Choose\n  <a target="_top" href="b.html"><span class="emph">Cats &amp;&nbsp;Dogs</span></a>,<br>then '
        'click <img src="dog.svg" alt="Dog icon"> the &lt;dog&gt;.',
    )
    german = paragraph("par_id1", "W&auml;hlen Sie <b>Katzen</b> und Hunde, dann den &#60;Hund&#62; bitte.")
    assert pairs_of(english, german) == [
        ("Choose Cats & Dogs, then click the <dog>.", "Wählen Sie Katzen und Hunde, dann den <Hund> bitte.")
    ]


def test_the_variant_for_any_other_system_is_taken_or_else_the_first() -> None:
    def switch(**variants: str) -> str:
        classes = {name: f' class="{name}"' for name in variants} | {"default": ""}
        spans = (f'<span hidden="true" id="x"{classes[name]}>{text}</span>\n' for name, text in variants.items())
        return f'<span id="swlnsys1" class="switchinline">{"".join(spans)}</span>'

    key = switch(MAC="Command", default="<b>Ctrl</b>")
    english = paragraph("par_id1", f"Hold {key}+D and pull.") + paragraph(
        "par_id2", f"Feed the {switch(WRITER='dog', CALC='cat')} at noon{switch(WIN='', UNIX=' or later')}."
    )
    german = paragraph("par_id1", "Strg+D halten und ziehen.") + paragraph(
        "par_id2", f"Mittags {switch(WRITER=f'mit {key}+H den Hund', CALC='die Katze')} füttern."
    )
    assert pairs_of(english, german) == [
        ("Hold Ctrl+D and pull.", "Strg+D halten und ziehen."),
        ("Feed the dog at noon.", "Mittags mit Ctrl+H den Hund füttern."),
    ]


def test_an_id_that_a_page_has_twice_is_aligned_in_order() -> None:
    english = paragraph("par_id1", "The dog sleeps here.") + paragraph("par_id1", "The cat sleeps there.")
    german = paragraph("par_id1", "Hier schläft der Hund.") + paragraph("par_id1", "Da schläft die Katze.")
    assert pairs_of(english, german) == [
        ("The dog sleeps here.", "Hier schläft der Hund."),
        ("The cat sleeps there.", "Da schläft die Katze."),
    ]


@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("Feed dog", "Den Hund bitte füttern"),
        ("Dog - the BARK", "dog – The Bark."),
        ("=DOG(1,2;3) returns 12.5", "=HUND(1,2;3) ergibt 12,5"),
        ("The dog sleeps in 12.", "123 4567 89012 34567 Hund"),
        ("The dog sleeps.", "Der Hund schläft, und zwar seit heute morgen, denn die Nacht war lang."),
        ("The dog that was here gave its bone to the cat that was there.", "Wuff, sagt er."),
        ("[text/dogs.xhp#bone not found] for the dog", "[text/dogs.xhp#bone not found] für den Hund"),
        ("The dog sleeps.", ""),
        ('<img src="dog.svg" alt="The dog sleeps">', "Der Hund schläft."),
    ],
    ids=["two words", "same", "formula", "formula there", "longer", "shorter", "broken link", "empty", "picture"],
)
def test_what_is_no_prose_or_no_translation_is_left_out(english: str, german: str) -> None:
    kept = ("The dog sleeps.", "Der Hund schläft.")
    bodies = [
        paragraph("par_id1", text) + paragraph("par_id2", keep)
        for text, keep in zip((english, german), kept, strict=True)
    ]
    assert pairs_of(*bodies) == [kept]


@pytest.mark.parametrize("kind", ["code", "codeintable", "smathcode", "example", "table_font_small paragraphintable"])
def test_code_is_left_out(kind: str) -> None:
    english = paragraph("par_id1", "Dim dog As a Bone", kind=kind) + paragraph("par_id2", "The dog sleeps.")
    german = paragraph("par_id1", "Dim Hund Als ein Knochen", kind=kind) + paragraph("par_id2", "Der Hund schläft.")
    assert pairs_of(english, german) == [("The dog sleeps.", "Der Hund schläft.")]


def test_a_page_that_is_not_utf8() -> None:
    pages = {path_of("en", "page"): b"<p>", path_of("de", "page"): b"<p>\nH\xfcndchen</p>"}
    with pytest.raises(DataError, match=naming(path_of("de", "page"), "UTF-8")):
        list(LIBREOFFICE_HELP.pairs(pages, "de"))


@pytest.mark.parametrize("path", [path_of("fr", "page"), "usr/share/libreoffice/help/de/page.html", "text/a.html"])
def test_other_files_are_not_read(path: str) -> None:
    assert not LIBREOFFICE_HELP.is_wanted(path, ["de"])


# The corpus: pages with a unique line, one that all of them share, and one that occurs twice.

N_PAGES = 60
WORDS = {
    "en": ("The dog of page {n} sleeps.", "Click on the dog.", "Twice on page {n}, dog."),
    "de": ("Der Hund von Seite {n} schläft.", "Klicken Sie auf den Hund.", "Zweimal auf Seite {n}, Hund."),
    "fr": ("Le chien de la page {n} dort.", "Cliquez sur le chien.", "Deux fois à la page {n}, chien."),
}
PACKAGES = {"en": "libreoffice-help-en-us", "de": "libreoffice-help-de", "fr": "libreoffice-help-fr"}

Packages = Mapping[str, Path]
Reader = Callable[[str], list[str]]


def build_package(root: Path, language: str) -> Path:
    own, shared, twice = WORDS[language]
    files: dict[str, bytes] = {}
    for n in range(N_PAGES):
        name = "Rex" + "".join("abcdefghij"[int(digit)] for digit in str(n))
        lines = (own.format(n=name), shared, *2 * [twice.format(n=name)])
        body = "".join(paragraph(f"par_id{place}", line) for place, line in enumerate(lines))
        files[path_of(language, f"dogs/{n}")] = PAGE.format(body=body).encode()
    return build_deb(root / f"{language}.deb", PACKAGES[language], f"4:7-{language}", files)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    root = tmp_path_factory.mktemp("packages")
    return {language: build_package(root, language) for language in PACKAGES}


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    """The lines of a file of the corpus."""
    return lambda name: (tmp_path / "corpus" / name).read_text(encoding="utf-8").split("\n")[:-1]


def write(folder: Path, packages: Packages, others: Sequence[str] = ("de", "fr")) -> dict[str, dict[str, int]]:
    used = {PACKAGES[language]: packages[language] for language in ("en", *others)}
    return LIBREOFFICE_HELP.write(folder, used, others)


def names(line: str) -> list[str]:
    return re.findall(r"Rex\w+", line)


def test_the_corpus_on_the_disk(packages: Packages, tmp_path: Path, read: Reader) -> None:
    sizes = write(tmp_path / "corpus", packages)

    # 57, 1 and 2 pages, a fixed assignment: two pairs of each page, and one that all of them share
    expected = {"train": 115, "dev": 2, "test": 4}
    assert sizes == {"en-de": expected, "en-fr": expected}
    files = {
        f"{split}.en-{other}.{side}"
        for split in ("train", "dev", "test")
        for other in ("de", "fr")
        for side in ("en", other)
    }
    assert {path.name for path in (tmp_path / "corpus").iterdir()} == files | {"README.md"}
    for split, n_pairs in sizes["en-fr"].items():
        english, french = read(f"{split}.en-fr.en"), read(f"{split}.en-fr.fr")
        assert read(f"{split}.en-de.en") == english  # the same pages
        assert len(english) == len(french) == n_pairs
        assert [names(line) for line in english] == [names(line) for line in french]


def test_no_english_line_of_dev_or_test_is_in_train(packages: Packages, tmp_path: Path, read: Reader) -> None:
    write(tmp_path / "corpus", packages)
    train, dev, test = (read(f"{split}.en-de.en") for split in ("train", "dev", "test"))
    assert "Click on the dog." in train
    assert not set(train) & {*dev, *test}
    assert not set(dev) & set(test)
    assert len(dev) == 2 * sum("sleeps" in line for line in dev)  # pages are not divided between splits


def test_written_twice_is_the_same(packages: Packages, tmp_path: Path) -> None:
    for name in ("once", "again"):
        write(tmp_path / name, packages)
    once, again = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("once", "again"))
    assert once == again


def test_the_readme_names_licence_and_versions(packages: Packages, tmp_path: Path) -> None:
    sizes = write(tmp_path / "corpus", packages)
    readme = (tmp_path / "corpus" / "README.md").read_text(encoding="utf-8")
    assert "Mozilla Public License 2.0" in readme
    assert "- libreoffice-help-en-us 4:7-en: see its copyright file\n- libreoffice-help-de 4:7-de: " in readme
    train, dev, test = sizes["en-fr"].values()
    assert f"| en-fr | {train} | {dev} | {test} |" in readme


def test_two_packages_make_one_direction(packages: Packages, tmp_path: Path) -> None:
    both = write(tmp_path / "both", packages)
    assert write(tmp_path / "corpus", packages, ["de"]) == {"en-de": both["en-de"]}
    assert not list((tmp_path / "corpus").glob("*fr*"))
    for name in ("train.en-de.de", "test.en-de.en"):
        assert (tmp_path / "corpus" / name).read_bytes() == (tmp_path / "both" / name).read_bytes()


def test_a_folder_with_something_in_it_is_left_alone(packages: Packages, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("a text of my own")
    with pytest.raises(DataError, match=naming(tmp_path)):
        write(tmp_path, packages)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
