"""Pairs from the files that people have."""

from __future__ import annotations

import gzip
import lzma
import struct
from pathlib import Path

import pytest

from transduce.documents.pairs import Pair, pairs_of
from transduce.documents.tmx import tmx_lines
from transduce.errors import DataError, MissingFileError

TMX = """<?xml version="1.0"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="*all*"><prop type="x">y</prop></header><body>
<tu><tuv xml:lang="EN-us"><seg>A <bpt i="1">&lt;b></bpt>red<ept i="1"/> <hi>door</hi> &amp; more</seg></tuv>
<tuv xml:lang="de"><seg>Eine rote\nTür &amp; mehr</seg></tuv><tuv xml:lang="fr"><seg>Une porte</seg></tuv></tu>
<tu><prop type="x-context">menu</prop><tuv lang="en"><seg>Open</seg></tuv><tuv lang="de-AT"><seg>Öffnen</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Only English</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Open</seg></tuv><tuv xml:lang="de"><seg>Öffnen</seg></tuv></tu>
</body></tmx>
"""


def compiled(messages: dict[str, str], order: str = "<") -> bytes:
    """Return an MO file."""
    strings = [
        text.encode() for table in (sorted(messages), [messages[key] for key in sorted(messages)]) for text in table
    ]
    n, at = len(messages), 28 + 16 * len(messages)
    tables = b""
    for text in strings:
        tables += struct.pack(f"{order}2I", len(text), at)
        at += len(text) + 1
    head = struct.pack(f"{order}7I", 0x950412DE, 0, n, 28, 28 + 8 * n, 0, 0)
    return head + tables + b"".join(text + b"\x00" for text in strings)


def test_a_memory(tmp_path: Path) -> None:
    (tmp_path / "a.tmx").write_text(TMX, encoding="utf-8")
    pairs = pairs_of(tmp_path / "a.tmx", "en", "de")
    assert list(pairs) == [Pair("A red door & more", "Eine rote Tür & mehr"), Pair("Open", "Öffnen", "menu")]
    assert dict(pairs.left_out) == {"in other languages": 1, "seen before": 1}
    assert pairs.lines()[0] == "read 2 pairs from 1 file"
    assert list(pairs_of(tmp_path / "a.tmx", "fr", "en")) == [Pair("Une porte", "A red door & more")]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    written = [("one < 2 & \x00\ud800", "eins", "menu")]
    with gzip.open(tmp_path / "a.tmx.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(tmx_lines(written, "en", "pt-BR")))
    assert list(pairs_of(tmp_path, "en", "pt")) == [Pair("one < 2 &", "eins", "menu")]


@pytest.mark.parametrize("order", ["<", ">"])
def test_compiled_messages(order: str, tmp_path: Path) -> None:
    messages = {
        "": "Content-Type: text/plain; charset=UTF-8\nLanguage: de_AT\n",
        "menu\x04_File": "_Datei",
        "One file\x00%d files": "Eine Datei\x00%d Dateien",
        "OK": "OK",
        "%d": "%d.",
    }
    (tmp_path / "a.mo").write_bytes(compiled(messages, order))
    pairs = pairs_of(tmp_path, "en", "de")
    assert list(pairs) == [
        Pair("One file", "Eine Datei"), Pair("%d files", "%d Dateien"), Pair("File", "Datei", "menu"),
    ]  # fmt: skip
    assert dict(pairs.left_out) == {"the same on both sides": 1, "no words": 1}
    assert [pair.src for pair in pairs_of(tmp_path, "de", "en")] == ["Eine Datei", "%d Dateien", "Datei"]


def test_messages_xliff_and_columns_of_a_folder(tmp_path: Path) -> None:
    po = """msgid ""
msgstr "Language: de\\n"

msgid "_Open"
msgstr "Ö_ffnen"

#, fuzzy
msgid "Close"
msgstr "Öffnen"

msgid "Quit"
msgstr ""
"""
    xliff = (
        '<xliff version="1.2"><file source-language="de" target-language="en"><body><trans-unit id="u">'
        "<source>Rote <g id='1'>Tür</g></source><target>Red <g id='1'>door</g></target></trans-unit>"
        "</body></file></xliff>"
    )
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "de.po").write_text(po, encoding="utf-8")
    (tmp_path / "b.xlf").write_text(xliff, encoding="utf-8")
    (tmp_path / "c.tsv").write_text("House\tHaus\nthree\n", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("no pairs", encoding="utf-8")
    pairs = pairs_of(tmp_path, "en", "de")
    assert list(pairs) == [Pair("Red door", "Rote Tür", "u"), Pair("House", "Haus"), Pair("Open", "Öffnen")]
    assert dict(pairs.left_out) == {"unsure": 1, "no translation": 1, "not two columns": 1}
    assert list(pairs_of(tmp_path, "en", "de", kinds=["tsv"])) == [Pair("House", "Haus")]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.tmx", b"<tmx><body>", "line 1"),
        ("a.tmx", b"<html/>", "<html>"),
        ("a.tmx", b"<!DOCTYPE t [<!ENTITY a 'b'>]><tmx>&a;</tmx>", "entities"),
        ("a.tmx", b"<?xml version='1.0' encoding='klingon'?><tmx/>", "XML"),
        ("a.mo", b"no", "MO"),
        ("a.mo", compiled({"": "", "a": "b"})[:-3], "shorter"),
        ("a.mo", compiled({"a": "b"})[:20], "shorter"),
        ("a.po", b"no", "line 1"),
        ("a.xlf", b"<xliff>", "never closed"),
        ("a.doc", b"", "should end in"),
        ("a.tmx.gz", gzip.compress(TMX.encode(), mtime=0)[:-9], "ended before"),
        ("a.tmx.gz", gzip.compress(b"", mtime=0)[:10] + b"\xff" * 20, "decompressing"),
        ("a.xlf.gz", b"no gzip", "gzipped file"),
        ("a.po.xz", lzma.compress(b'msgid "a"\nmsgstr "b"\n')[:-9], "ended before"),
    ],
)
def test_damage_is_one_line_with_the_name_of_the_file(name: str, data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError) as error:
        list(pairs_of(tmp_path / name, "en", "de"))
    assert words in str(error.value)
    assert str(error.value).count(name) == 1
    assert "\n" not in str(error.value)


def test_a_folder_without_such_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no file whose name ends in \.po"):
        pairs_of(tmp_path, "en", "de", kinds=["po"])


def test_a_missing_file_is_named_once(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError) as caught:
        list(pairs_of(tmp_path / "no.tmx", "en", "de"))
    assert str(caught.value).count("no.tmx") == 1
