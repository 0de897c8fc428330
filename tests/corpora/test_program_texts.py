"""Catalogues of messages become pairs of lines, and packages of programs a corpus."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import pytest

from debs import build_deb
from said import naming
from transduce.corpora.catalogue import CATALOGUE
from transduce.corpora.getting import get_corpus
from transduce.corpora.leakage import normalised_line
from transduce.corpora.program_messages import message_pairs
from transduce.corpora.program_texts import PACKAGES, PROGRAM_TEXTS
from transduce.errors import DataError
from transduce.text.verbatim import verbatim_strings

Messages = Mapping[str, str]


def mo_file(messages: Messages, *, language: str = "de") -> bytes:
    """Compile messages; ``\\x04`` stands after a context, ``\\x00`` before a plural form."""
    header = f"Language: {language}\nContent-Type: text/plain; charset=UTF-8\n"
    sides = [[text.encode() for text in each] for each in zip(*sorted({"": header, **messages}.items()), strict=True)]
    n, tables, strings = len(sides[0]), b"", b""
    start = 28 + 2 * 8 * n
    for text in (text for side in sides for text in side):
        tables += struct.pack("<2I", len(text), start + len(strings))
        strings += text + b"\0"
    return struct.pack("<7I", 0x950412DE, 0, n, 28, 28 + 8 * n, 0, 0) + tables + strings


def pairs_of(messages: Messages) -> list[tuple[str, str]]:
    return list(message_pairs(mo_file(messages), "de"))


@pytest.mark.parametrize(
    ("message", "translation", "pairs"),
    [
        ("_Open File", "Datei ö_ffnen", [("Open File", "Datei öffnen")]),
        ("menu\x04Quit the game", "Spiel beenden", [("Quit the game", "Spiel beenden")]),
        ("_: a button\nQuit the game", "Spiel beenden", [("Quit the game", "Spiel beenden")]),
        ("?unit:Quit the game", "Spiel beenden", [("Quit the game", "Spiel beenden")]),
        ("female^the fighter", "die Kämpferin", [("the fighter", "die Kämpferin")]),
        ("Menu|Quit the game", "Spiel beenden", [("Quit the game", "Spiel beenden")]),
        ("on|off or so", "an|aus oder so", [("on|off or so", "an|aus oder so")]),
        (
            "%d dog\x00%d dogs sleep",
            "%d Hund\x00%d Hunde schlafen",
            [("%d dog", "%d Hund"), ("%d dogs sleep", "%d Hunde schlafen")],
        ),
        (
            "Options:\n  -a    the cat\n        does not sleep\n  -b    the dog sleeps\n",
            "Optionen:\n  -a    die Katze schläft\n        nicht\n  -b    der Hund schläft\n",
            [
                ("Options:", "Optionen:"),
                ("the cat does not sleep", "die Katze schläft nicht"),
                ("the dog sleeps", "der Hund schläft"),
            ],
        ),
        (
            "The dog sleeps.\nThe cat wakes.",
            "Der Hund schläft, die Katze wacht.",
            [("The dog sleeps. The cat wakes.", "Der Hund schläft, die Katze wacht.")],
        ),
    ],
)
def test_the_lines_of_a_message(message: str, translation: str, pairs: list[tuple[str, str]]) -> None:
    others = {"_View": "_Ansicht", "_Edit": "_Bearbeiten"}  # so that the sign of accelerators is known
    assert [pair for pair in pairs_of({message: translation, **others}) if pair[0] not in ("View", "Edit")] == pairs


@pytest.mark.parametrize(
    ("message", "translation"),
    [
        ("The dog sleeps", "The dog sleeps."),
        ("The dog sleeps in %s", "Der Hund schläft"),
        ("<b>The dog</b> sleeps", "Der Hund schläft"),
        ("The dog sleeps", "Der Hund, der gestern noch da war, schläft heute nicht mehr, denn die Nacht war lang."),
        ("translator-credits", "Anna Beispiel"),
        ("more co&mmands here", "mehr Be&fehle hier"),
        ("%s: %d (%s)", "%s: %d [%s]"),
        ("The dog\x1b sleeps", "Der Hund\x1b schläft"),
    ],
)
def test_what_is_no_translation_is_left_out(message: str, translation: str) -> None:
    kept = {"The cat sleeps.": "Die Katze schläft."}
    assert pairs_of({message: translation, **kept}) == list(kept.items())


def test_files_in_another_language_and_no_mo_files() -> None:
    assert not list(message_pairs(mo_file({"The dog sleeps.": "Le chien dort."}, language="fr"), "de"))
    with pytest.raises(DataError, match=naming("MO")):
        list(message_pairs(b"no catalogue", "de"))


# The corpus: programs with a message of their own, one with its name, and one that all of them share.

N_PROGRAMS = 150
OWN = {"de": "Der Hund %s von {} schläft.", "fr": "Le chien %s de {} dort."}
SHARED = {"de": "Klicken Sie auf den Hund!", "fr": "Cliquez sur le chien !"}
COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
Copyright: the dogs
License: GPL-2+
"""


def letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def build_package(root: Path, name: str, programs: range, *, copyright_file: str = COPYRIGHT) -> Path:
    files: dict[str, bytes] = {
        f"usr/share/doc/{name}/copyright": copyright_file.encode(),
        "usr/share/locale/es/LC_MESSAGES/dog.mo": b"no catalogue",  # is not read
    }
    for n in programs:
        for language in ("de", "fr"):
            text = {
                f"The dog %s of {letters(n)} sleeps.": OWN[language].format(letters(n)),
                "Click on the dog" + "." * (n % 3): SHARED[language],
                "dogs": SHARED[language].split()[-1],
            }
            path = f"usr/share/locale/{language}/LC_MESSAGES/dog{letters(n)}-{n}.mo"
            files[path] = mo_file(text, language=language)
    return build_deb(root / f"{name}_2-3_all.deb", name, "1:2-3", files)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("packages")
    return {
        "coreutils": build_package(root, "coreutils", range(N_PROGRAMS - 1)),
        "git": build_package(root, "git", range(N_PROGRAMS - 1, N_PROGRAMS), copyright_file="Ask the dogs."),
    }


def lines(folder: Path, name: str) -> list[str]:
    return (folder / name).read_text(encoding="utf-8").split("\n")[:-1]


@pytest.mark.parametrize("other", ["de", "fr"])
def test_the_corpus_on_the_disk(packages: dict[str, Path], tmp_path: Path, other: str) -> None:
    told: list[str] = []
    sizes = PROGRAM_TEXTS.write(tmp_path / "corpus", packages, [other], told.append)
    train, dev, test = (lines(tmp_path / "corpus", f"{split}.en-{other}.en") for split in ("train", "dev", "test"))
    assert sizes == {f"en-{other}": {"train": len(train), "dev": len(dev), "test": len(test)}}
    assert sum("sleeps" in line for line in (*train, *dev, *test)) == N_PROGRAMS
    assert dev
    assert test

    def same(text: list[str]) -> set[str]:
        return {normalised_line(line.casefold()) for line in text}

    assert not same(train) & (same(dev) | same(test))
    assert not same(dev) & same(test)
    assert all(len(line.split()) >= 3 for line in (*dev, *test))
    for split in ("train", "dev", "test"):
        sides = [lines(tmp_path / "corpus", f"{split}.en-{other}.{side}") for side in ("en", other)]
        assert len(set(zip(*sides, strict=True))) == len(sides[0])
        for english, translation in zip(*sides, strict=True):
            codes = [[each.text for each in verbatim_strings(text)] for text in (english, translation)]
            assert codes[0] == codes[1]
            assert ("sleeps" in english) == any(letter in translation for letter in ("schläft", "dort"))
    assert len(told) == 3
    readme = (tmp_path / "corpus" / "README.md").read_text(encoding="utf-8")
    assert "- coreutils 1:2-3: GPL-2+\n- git 1:2-3: see its copyright file\n" in readme
    assert f"| en-{other} | {len(train)} | {len(dev)} | {len(test)} |" in readme


def test_written_twice_is_the_same(packages: dict[str, Path], tmp_path: Path) -> None:
    for name in ("once", "again"):
        PROGRAM_TEXTS.write(tmp_path / name, packages, ["de", "fr"])
    once, again = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("once", "again"))
    assert once == again


def test_a_corpus_from_copies_of_some_packages(packages: dict[str, Path], tmp_path: Path) -> None:
    told: list[str] = []
    counts = get_corpus(
        CATALOGUE["program-texts"],
        tmp_path / "data",
        direction="en-de",
        from_folder=packages["git"].parent,
        log=told.append,
    )
    assert counts.keys() == {"train.en-de", "dev.en-de", "test.en-de"}
    assert sum(line.startswith("left out") for line in told) == 1
    assert "libreoffice-l10n-de" in told[0]
    assert "libreoffice-l10n-fr" not in told[0]
    assert (tmp_path / "data/program_texts/README.md").is_file()


def test_a_damaged_catalogue_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    path = "usr/share/locale/de/LC_MESSAGES/dog.mo"
    deb = build_deb(tmp_path / "coreutils.deb", "coreutils", "1:2-3", {path: mo_file({"a": "b"})[:30]})
    with pytest.raises(DataError, match=naming(path)):
        PROGRAM_TEXTS.write(tmp_path / "corpus", {"coreutils": deb}, ["de"])
    assert not (tmp_path / "corpus").exists()


def test_the_packages_are_different_and_sorted() -> None:
    names = [name for name in PACKAGES if not name.startswith("libreoffice")]
    assert names == sorted(set(names))
    assert f"made from {len(PACKAGES)} Debian packages" in CATALOGUE["program-texts"].source
