"""``transduce memory``: made, searched and exported."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from commands import CommandLine
from said import says
from transduce.files import open_binary
from transduce.memories import Memory, write_memory


def test_a_memory_is_made_searched_and_exported(transduce: CommandLine, tmp_path: Path) -> None:
    table, memory = tmp_path / "pairs.tsv", tmp_path / "my.tm"
    table.write_text("A <b> & 3 dogs\tEin <b> & 3 Hunde\tmore\n\nThe cat sleeps.\tDie Katze schläft.\n", "utf-8")
    made = transduce("memory", "build", table, "--out", memory, "--src", "en", "--tgt", "de", "--json")
    assert json.loads(made.out) == {"pairs": 2, "memory": str(memory)}
    found = transduce("memory", "search", memory, "A cat sleeps.").out
    assert found == "75%\tThe cat sleeps.\tDie Katze schläft.\n"
    as_json = transduce("memory", "search", memory, "A <b> & 5 dogs", "--json").out
    assert json.loads(as_json) == {"similarity": 1.0, "source": "A <b> & 3 dogs", "target": "Ein <b> & 5 Hunde"}
    assert transduce("memory", "export", memory, "--out", tmp_path / "out.tmx").code == 0
    root = ElementTree.parse(tmp_path / "out.tmx").getroot()
    assert [each.text for each in root.iter("seg")][:2] == ["A <b> & 3 dogs", "Ein <b> & 3 Hunde"]
    assert transduce("memory", "export", memory, "--out", tmp_path / "out.tsv").code == 0
    assert (tmp_path / "out.tsv").read_text("utf-8").count("\n") == 2
    for name in ("out.tsv.gz", "out.txt", "out.tmx.xz"):
        assert transduce("memory", "export", memory, "--out", tmp_path / name).code == 0
        with open_binary(tmp_path / name) as stream:
            assert stream.read() == (tmp_path / "out.tmx" if ".tmx" in name else tmp_path / "out.tsv").read_bytes()
    refused = transduce("memory", "export", memory, "--out", tmp_path / "out.xlf")
    assert (refused.code, (tmp_path / "out.xlf").exists()) == (1, False)
    assert says(refused.err, "out.xlf", ".tmx, .tsv or .txt")


def test_what_is_no_table(transduce: CommandLine, tmp_path: Path) -> None:
    table = tmp_path / "pairs.tsv"
    table.write_text("one\ttwo\nthree\n")
    refused = transduce("memory", "build", table, "--out", tmp_path / "my.tm", "--src", "en", "--tgt", "de")
    assert refused.code == 1
    assert says(refused.err, f"{table}:2", "TAB")
    assert not (tmp_path / "my.tm").exists()
    empty = transduce("memory", "search", table, "text")
    assert (empty.code, empty.err.count("\n")) == (1, 1)


def test_a_text_that_no_source_is_like(transduce: CommandLine, tmp_path: Path) -> None:
    memory = tmp_path / "my.tm"
    write_memory(memory, [[("The cat sleeps.", "Die Katze schläft.")]], src_language="en", tgt_language="de")
    found = transduce("memory", "search", memory, "Press the green button")
    assert (found.code, found.out) == (0, "")
    assert says(found.err, memory, "no pair")


def test_codes_of_languages(transduce: CommandLine, tmp_path: Path) -> None:
    table, memory = tmp_path / "pairs.tsv", tmp_path / "my.tm"
    table.write_text("The cat sleeps.\tDie Katze schläft.\n", "utf-8")
    assert transduce("memory", "build", table, "--out", memory, "--src", "EN", "--tgt", "de_at").code == 0
    assert Memory(memory).languages == ("en", "de-AT")
    refused = transduce("memory", "build", table, "--out", memory, "--src", "english", "--tgt", "de")
    assert (refused.code, refused.err.count("\n")) == (1, 1)
    assert says(refused.err, "--src", "'english'", "en or pt-BR")


def test_files_without_a_pair_leave_a_memory_as_it_was(transduce: CommandLine, tmp_path: Path) -> None:
    memory, table = tmp_path / "my.tm", tmp_path / "none.tsv"
    write_memory(memory, [[("A dog.", "Ein Hund.")]], src_language="en", tgt_language="de")
    table.write_text("")
    refused = transduce("memory", "build", table, "--out", memory, "--src", "en", "--tgt", "de")
    assert (refused.code, refused.out) == (1, "")
    assert says(refused.err, "error: ", "no translation from en to de", memory)
    assert [*Memory(memory).pairs()] == [("A dog.", "Ein Hund.")]


@pytest.mark.parametrize("verb", [("search", "text"), ("export", "--out", "new.tmx")], ids=lambda verb: verb[0])
def test_what_is_no_built_memory(verb: tuple[str, ...], transduce: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "my.tmx").write_text('<tmx version="1.4"/>\n' * 100)
    words = [tmp_path / each if "." in each else each for each in verb[1:]]
    refused = transduce("memory", verb[0], tmp_path / "my.tmx", *words)
    assert (refused.code, refused.err.count("\n")) == (1, 1)
    assert says(refused.err, tmp_path / "my.tmx", "no file of transduce memory build", "make one of it")
