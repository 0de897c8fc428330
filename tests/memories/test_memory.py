"""Memories: exact matches with their numbers, contexts, similar texts, and files that are none."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from said import naming
from transduce.errors import DataError
from transduce.memories import Memory, building, write_memory
from transduce.memories.abstraction import abstract, adapted
from transduce.memories.similarity import similarity

PAIRS = [
    ("The dog sleeps.", "Der Hund schläft."),
    ("Open", "Offen"),
    ("The door was open.", "Die Tür war offen."),
    ("Open", "Öffnen"),
    ("Page 3 of 12", "Seite 3 von 12"),
    ("Delete {name}?", "{name} löschen?"),
    ("It weighs 1,500.5 kg.", "Es wiegt 1.500,5 kg."),
    ("3 of 3 files", "3 von 3 Dateien"),
    ("1 file", "1 Datei"),
    ("Two men are playing guitar on the street.", "Zwei Männer spielen auf der Straße Gitarre."),
    ("Open", "Öffnen"),
]


def memory_of(path: Path, *texts: list[tuple[str, str]], languages: tuple[str, str] = ("en", "de")) -> Memory:
    write_memory(path / "my.tm", texts, src_language=languages[0], tgt_language=languages[1])
    return Memory(path / "my.tm")


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return memory_of(tmp_path, PAIRS)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("The dog  sleeps.", "Der Hund schläft."),
        ("the dog sleeps.", None),
        ("Page 7 of 9", "Seite 7 von 9"),
        ("Page 7 of 7", "Seite 7 von 7"),
        ("Delete ${file}?", "${file} löschen?"),
        ("It weighs 2,250.75 kg.", "Es wiegt 2.250,75 kg."),
        ("It weighs 2.5 kg.", "Es wiegt 2,5 kg."),
        ("It weighs 2.5 km.", None),
        ("3 of 3 files", "3 von 3 Dateien"),
        ("2 of 5 files", None),
        ("7 of 7 files", "7 von 7 Dateien"),
        ("2 file", None),
        ("", None),
        ("␀", None),
    ],
)
def test_exact(memory: Memory, text: str, target: str | None) -> None:
    found = memory.match(text)
    assert (found and found.target) == target
    assert found is None or found.similarity == 1


def test_the_context_decides_then_what_is_frequent(memory: Memory) -> None:
    found = memory.match("Open", "The dog sleeps.", "The door was open.")
    assert found is not None
    assert (found.target, found.is_in_context) == ("Offen", True)
    other = memory.match("Open", "The door was open.", "Page 3 of 12")
    assert other is not None
    assert (other.target, other.is_in_context) == ("Öffnen", True)
    alone = memory.match("Open", before="Nobody said this.")
    assert alone is not None
    assert (alone.target, alone.is_in_context) == ("Öffnen", False)


def test_similar_texts_are_offered(memory: Memory) -> None:
    [found] = memory.fuzzy("Two women are playing guitar on the street.")
    assert (found.target, found.similarity) == (PAIRS[9][1], pytest.approx(8 / 9))
    assert memory.fuzzy("Two cats are eating fish in the street.") == []
    assert [each.similarity for each in memory.fuzzy("the dog sleeps.")] == [0.99]
    assert [each.similarity for each in memory.fuzzy("The dog sleeps.")] == [1.0]
    assert [each.target for each in memory.fuzzy("2 of 5 files")] == ["3 von 3 Dateien"]
    assert memory.fuzzy("") == []


def test_numbers_of_languages_with_more_plurals(tmp_path: Path) -> None:
    memory = memory_of(tmp_path, [("3 files", "3 файла"), ("5 files", "5 файлов")], languages=("en", "ru"))
    assert [(found := memory.match(f"{n} files")) and found.target for n in (4, 22, 12, 25, 21)] == [
        "4 файла", "22 файла", "12 файлов", "25 файлов", None,
    ]  # fmt: skip


def test_a_number_that_the_translation_has_elsewhere_is_not_replaced() -> None:
    languages = ("en", "de")
    known, wanted = abstract("3 dogs", languages), abstract("4 dogs", languages)
    assert adapted(known, "3 Hunde (alle 3)", wanted, languages) is None
    assert adapted(known, "Drei Hunde", wanted, languages) is None


def test_all_similar_texts_are_found(tmp_path: Path) -> None:
    texts = sorted({f"{a} {b} {c} {d} {e}" for a in "pq" for b in "rs" for c in "tu" for d in "vw" for e in "xyz"})
    memory = memory_of(tmp_path, [(text, text) for text in texts])
    asked = "p r t v n x"
    wanted = {text for text in texts if similarity(asked.split(), text.split()) >= 0.75}
    assert {each.source for each in memory.fuzzy(asked, n=100)} == wanted != set()


def test_threads_share_a_memory(memory: Memory) -> None:
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(memory.match, ["Page 7 of 2"] * 4))
    assert len(memory) == len(PAIRS)
    assert [each and each.target for each in found] == ["Seite 7 von 2"] * 4


@pytest.mark.parametrize("damage", ["text", "empty", "other", "cut", "newer", "words"])
def test_what_is_no_memory_is_refused_in_one_line(memory: Memory, damage: str, tmp_path: Path) -> None:
    path = tmp_path / "my.tm"
    memory.close()
    if damage == "text":
        path.write_text("Open\tOffen\n")
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:5000])
    else:
        statements = {
            "other": "PRAGMA application_id = 1", "newer": "PRAGMA user_version = 9", "words": "DROP TABLE words"
        }  # fmt: skip
        database = sqlite3.connect(path)
        database.execute(statements[damage])
        database.commit()
        database.close()
    with pytest.raises(DataError, match=str(path)) as raised:
        Memory(path).fuzzy("The dog sleeps.")
    assert "\n" not in str(raised.value)


def test_a_missing_memory(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="memory build"):
        Memory(tmp_path / "no.tm")


def test_a_full_disk_leaves_the_memory_that_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "my.tm"
    write_memory(path, [PAIRS], src_language="en", tgt_language="de")
    before = path.read_bytes()
    monkeypatch.setattr(building, "SCHEMA", (*building.SCHEMA, "PRAGMA max_page_count = 20"))
    many = [(f"The dog {'sleeps ' * n}.", "Der Hund schläft.") for n in range(1, 500)]
    with pytest.raises(DataError, match=naming(path, "cannot be written", "full")):
        write_memory(path, [many], src_language="en", tgt_language="de")
    assert path.read_bytes() == before
    assert [*tmp_path.iterdir()] == [path]


def test_what_a_killed_build_has_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".my.tm.99999999.tmp").write_bytes(b"half")  # no system has so many processes
    memory_of(tmp_path, PAIRS)
    assert [path.name for path in tmp_path.iterdir()] == ["my.tm"]


def test_texts_without_a_pair_write_no_memory(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=naming("no translation from en to de", tmp_path / "my.tm")):
        write_memory(tmp_path / "my.tm", [[("12", "12")]], src_language="en", tgt_language="de")
    assert not [*tmp_path.iterdir()]
