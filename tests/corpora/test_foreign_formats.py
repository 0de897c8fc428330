"""What is given as text but is none is named, with what would help; text is left alone."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from transduce.config import DataConfig
from transduce.corpora import ParallelText
from transduce.corpora.formats import foreign_format
from transduce.errors import DataError


def archive_of(*names: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in names:
            archive.writestr(name, "a dog")
    return stream.getvalue()


def tar() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.en"))
    return stream.getvalue()


TMX = '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n<header/>\n'
TEXT = "A dog sleeps in its basket.\nTwo dogs sleep there.\n"

FOREIGN = {
    "utf16.en": (TEXT.encode("utf-16"), "is UTF-16; convert it, as in: iconv -f UTF-16 -t UTF-8"),
    "le.en": (TEXT.encode("utf-16-le"), "is UTF-16 without a byte-order mark; convert it, as in: iconv -f UTF-16LE"),
    "be.en": (TEXT.encode("utf-16-be"), "iconv -f UTF-16BE -t UTF-8"),
    "utf32.en": (TEXT.encode("utf-32"), "is UTF-32"),
    "a.tmx": (TMX.encode(), "is TMX, a translation memory; each <tu> in it holds a pair"),
    "a.tmx.gz": (gzip.compress(TMX.encode()), "is TMX"),
    "a.xlf": (b'<?xml version="1.0"?>\n<xliff version="1.2">', "is XLIFF; write its <source> elements into one file"),
    "a.ts": (b'<?xml version="1.0"?>\n<TS version="2.1">', "is a Qt translation file"),
    "a.xml": (b'<?xml version="1.0"?>\n<text>', "is XML"),
    "a.sgm": (b'<srcset setid="newstest" srclang="any">', "is SGML of a test set"),
    "a.html": (b"<!DOCTYPE html>\n<p>A dog", "is HTML"),
    "a.docx": (archive_of("[Content_Types].xml", "word/document.xml"), "is a Word document (.docx); save it as plain"),
    "a.xlsx": (archive_of("xl/workbook.xml"), "is a spreadsheet (.xlsx); save it as text with tabs"),
    "a.odt": (archive_of("mimetype", "content.xml"), "is an OpenDocument file"),
    "a.zip": (archive_of("a.en", "a.de"), "is a zip archive; unpack it and name the files"),
    "cut.zip": (archive_of("a.en", "a.de")[:40], "is a zip archive"),
    "a.tar": (tar(), "is a tar archive"),
    "a.pdf": (b"%PDF-1.7\n%\xe2\xe3", "is a PDF; save it as plain text in UTF-8, a sentence a line"),
    "a.doc": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is a document of an old office program"),
    "a.rtf": (b"{\\rtf1\\ansi A dog", "is rich text"),
    "a.po": (b'#: a.c\nmsgid "dog"\nmsgstr "Hund"\n', "is a PO file of gettext"),
    "a.json": (b'[\n  {\n    "en": "dog"\n  }\n]', "is JSON; write its two texts into a .tsv file"),
    "a.jsonl": (b'{"en": "dog", "de": "Hund"}\n' * 3, "is JSON"),
    "lists.jsonl": (b'["dog", "Hund"]\n' * 3, "is JSON"),
    "a.csv": (b"dog,Hund\ncat,Katze\n", "is CSV; save it as text with tabs between the columns"),
    "squeezed.en": (gzip.compress(TEXT.encode()), "is compressed, but its name does not say so; give it a name that"),
    "twice.en.gz": (gzip.compress(gzip.compress(TEXT.encode())), "is compressed, twice; decompress it once"),
}

SOUND = {
    "plain.en": TEXT.encode(),
    "empty.en": b"",
    "plain.gz": b"no gzip at all",
    "latin-1.de": "Tür ö\n".encode("latin-1") * 30,
    "columns.csv": b"a dog, a cat\tein Hund, eine Katze\n" * 3,
    "one-column.csv": b"a dog\na cat\n",
    "brackets.en": b"[1] See page 2.\n{a} and {b}\n",
    "tags.en": b"<b>Note</b> that XML begins with <?xml\n",
    "quotes.en": b'"Dog," he said.\nmsgid is a word\n',
    "marked.en": b"\xef\xbb\xbfA dog.\n",
    "chinese.zh": "狗在睡觉。\n".encode() * 9,
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_formats_are_named_and_not_trained_on(tmp_path: Path, name: str) -> None:
    content, words = FOREIGN[name]
    path = tmp_path / name
    path.write_bytes(content)
    told = foreign_format(path)
    assert told is not None
    assert words in told
    with pytest.raises(DataError) as caught:
        ParallelText(DataConfig(corpus="files", train_src=str(path), train_tgt=str(path)))
    assert str(caught.value) == f"{path} {told}"


@pytest.mark.parametrize("name", SOUND)
def test_text_is_text(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(SOUND[name])
    assert foreign_format(path) is None
    ParallelText(DataConfig(corpus="files", train_src=str(path), train_tgt=str(path)))


def test_a_file_that_is_not_there_is_left_to_its_readers(tmp_path: Path) -> None:
    assert foreign_format(tmp_path / "no.tmx") is None
