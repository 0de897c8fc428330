"""Files that are no lines of text are named as what they are, wherever text is read; text is taken as text."""

from __future__ import annotations

import gzip
import io
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from said import naming, says
from transduce.errors import DataError
from transduce.files import read_lines, repaired_lines
from transduce.files.foreign import foreign_beginning

SENTENCES = "The dog sleeps.\nДобрый день всем.\nΚαλημέρα σας.\n" * 9


def archive(*names: str, first: bytes = b"") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        if first:
            made.writestr("mimetype", first)
        for name in names:
            made.writestr(name, f"<xml>{name}</xml>")
    return stream.getvalue()


XLIFF = b'<?xml version="1.0" encoding="utf-8"?>\n<!-- x -->\n<xliff version="1.2"><file original="a"/></xliff>\n'
# What a file is, and a word of the message.
FOREIGN: dict[str, tuple[bytes, str]] = {
    "a.docx": (archive("[Content_Types].xml", "word/document.xml"), "Word"),
    "b.docx": (archive("_rels/.rels", "word/document.xml"), "Word"),
    "a.odt": (archive("content.xml", first=b"application/vnd.oasis.opendocument.text"), "OpenDocument"),
    "a.epub": (archive("content.opf", first=b"application/epub+zip"), "EPUB"),
    "a.zip": (archive("a.txt"), "zip"),
    "a.doc": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), "office"),
    "a.rtf": (rb"{\rtf1\ansi Hello}", "rich text"),
    "a.pdf": (b"%PDF-1.7\n1 0 obj\n", "PDF"),
    "a.po": (b'# A comment\n#, fuzzy\nmsgid ""\nmsgstr ""\n\nmsgid "Open"\nmsgstr "Offen"\n', "PO"),
    "b.po": (b'\xef\xbb\xbf\nmsgctxt "menu"\nmsgid "Open"\nmsgstr ""\n', "PO"),
    "a.mo": (b"\xde\x12\x04\x95" + bytes(40), "gettext"),
    "a.xliff": (XLIFF, "XLIFF"),
    "a.tmx": (b"<?xml version='1.0'?><!DOCTYPE tmx SYSTEM 'x'><tmx version='1.4'/>", "TMX"),
    "a.ts": (b'<?xml version="1.0"?>\n<!DOCTYPE TS>\n<TS version="2.1" language="de">', "Qt"),
    "utf16": (SENTENCES.encode("utf-16"), "UTF-16"),
    "utf16be": (b"\xfe\xff" + SENTENCES.encode("utf-16-be"), "UTF-16"),
    "utf16-no-bom": (("The dog sleeps.\n" * 9).encode("utf-16-le"), "UTF-16"),
    "cyrillic-utf16": (("Добрый день всем.\n" * 9).encode("utf-16-be"), "UTF-16"),
    "utf32": (SENTENCES.encode("utf-32"), "UTF-32"),
    "koi8": (("Добрый день всем.\n" * 9).encode("koi8-r"), "encoding"),
    "gbk": (("狗在睡觉。\n" * 30).encode("gb18030"), "encoding"),
    "a.png": (b"\x89PNG\r\n\x1a\n" + bytes(30), "image"),
    "a.jpg": (b"\xff\xd8\xff\xe0" + bytes(30), "image"),
    "a.wav": (b"RIFF\x24\0\0\0WAVEfmt ", "recording"),
    "a.mp3": (b"ID3\x04\0\0", "recording"),
    "gzip": (gzip.compress(SENTENCES.encode()), "gzip"),
    "a.sqlite": (b"SQLite format 3\0" + bytes(200), "SQLite"),
    "random": (random.Random(1).randbytes(4000), "not text"),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_no_text_is_named(name: str, tmp_path: Path) -> None:
    content, word = FOREIGN[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=naming(path, word)):
        list(read_lines(path, escape_invalid=True))
    with pytest.raises(DataError, match=naming("stdin", word)):
        list(repaired_lines(io.BytesIO(content), "stdin", lambda number, fault: None))
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(content))
    with pytest.raises(DataError, match=naming(packed, word)):
        list(read_lines(packed))


TEXTS = (
    b"", b"\n", b"\0\n" * 9, b"a\0b\n", "über Öl\n".encode("latin-1") * 20, SENTENCES.encode(),
    b"\xef\xbb\xbfA dog.\n", "狗在睡觉。\n".encode() * 99, "नमस्ते\n".encode() * 99, b"PK is a name\n",
    b"%PDF is a format\n", b"# a heading\n" * 9, b"msgid and msgstr are keywords\n", b"<p>xliff</p>\n",
    b"<?xml version='1.0'?><html/>\n", b"\x1b[1mbold\x1b[0m\n" * 9,
    b"1\n00:00:01,000 --> 00:00:02,000\nHello\n", b" " * 9000, b"\r\n" * 5000, b"BMW\n", b"GIF is a format\n", b"ID3\n",
)  # fmt: skip


@pytest.mark.parametrize("content", TEXTS, ids=repr)
def test_text_is_text(content: bytes) -> None:
    assert foreign_beginning(content) is None


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=300))
def test_no_printable_text_is_refused(text: str) -> None:
    assert foreign_beginning(f"A {text}".encode()) is None


def test_every_line_of_a_stream_is_kept_and_its_faults_are_told() -> None:
    faults = list[tuple[int, str]]()
    stream = io.BytesIO(b"\xef\xbb\xbfone\r\ntw\xff\n\nfour \xef\xbf\xbd")
    lines = list(repaired_lines(stream, "stdin", lambda number, fault: faults.append((number, fault))))
    assert lines == ["one", "tw\ufffd", "", "four \ufffd"]
    assert faults == [(2, "not UTF-8")]


@pytest.mark.parametrize("name", ["a.docx", "a.po", "utf16", "a.pdf", "random"])
def test_every_verb_that_reads_text_names_it(
    name: str, transduce: Callable[..., Any], micro_model: Path, micro_recipe: Path, tmp_path: Path
) -> None:
    content, word = FOREIGN[name]
    bad, good = tmp_path / name, tmp_path / "good.txt"
    bad.write_bytes(content)
    good.write_text("The dog sleeps.\n" * 3)
    for stdin, *arguments in (
        (content, "translate", micro_model),
        (b"", "translate", micro_model, "--in", bad, "--format", "text"),
        (b"", "evaluate", micro_model, "--src", bad, "--ref", good),
        (b"", "evaluate", micro_model, "--src", good, "--ref", bad),
        (b"", "score", bad, "--ref", good),
        (b"", "score", good, "--ref", bad),
        (b"", "init", "--src", bad, "--tgt", good, "--direction", "en-de", "--out", tmp_path / "new.toml"),
        (b"", "init", "--tsv", bad, "--direction", "en-de", "--out", tmp_path / "new.toml"),
        (b"", "parseval", bad, bad),
    ):
        outcome = transduce(*arguments, stdin=stdin)
        assert (outcome.code, outcome.out) == (1, ""), arguments
        assert len(outcome.err.splitlines()) == 1, outcome.err
        assert says(outcome.err, word, "stdin" if stdin else bad), arguments
    recipe = tmp_path / "own.toml"
    recipe.write_text(micro_recipe.read_text().replace('corpus = "grammar"\nn_pairs = 600', 'corpus = "files"'))
    for key in ("train_src", "dev_src"):
        files = {"train_src": good, "train_tgt": good, "dev_src": good, "dev_tgt": good} | {key: bad}
        settings = [f"--set=data.{each}={path}" for each, path in files.items()]
        outcome = transduce("prepare", recipe, "--out", tmp_path / key, *settings)
        assert outcome.code == 1
        assert says(outcome.err.splitlines()[-1], word, bad)
