"""Files that are not lines of text are recognised, with advice; text is accepted."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from said import says
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
    "utf16.en": (TEXT.encode("utf-16"), "iconv -f UTF-16 -t UTF-8"),
    "le.en": (TEXT.encode("utf-16-le"), "iconv -f UTF-16LE -t UTF-8"),
    "be.en": (TEXT.encode("utf-16-be"), "iconv -f UTF-16BE -t UTF-8"),
    "utf32.en": (TEXT.encode("utf-32"), "UTF-32"),
    "a.tmx": (TMX.encode(), "TMX"),
    "a.tmx.gz": (gzip.compress(TMX.encode()), "TMX"),
    "a.xlf": (b'<?xml version="1.0"?>\n<xliff version="1.2">', "XLIFF"),
    "a.ts": (b'<?xml version="1.0"?>\n<TS version="2.1">', "Qt"),
    "a.xml": (b'<?xml version="1.0"?>\n<text>', "XML"),
    "a.sgm": (b'<srcset setid="newstest" srclang="any">', "SGML"),
    "a.html": (b"<!DOCTYPE html>\n<p>A dog", "HTML"),
    "a.docx": (archive_of("[Content_Types].xml", "word/document.xml"), "Word"),
    "a.xlsx": (archive_of("xl/workbook.xml"), "spreadsheet"),
    "a.odt": (archive_of("mimetype", "content.xml"), "OpenDocument"),
    "a.zip": (archive_of("a.en", "a.de"), "zip"),
    "cut.zip": (archive_of("a.en", "a.de")[:40], "zip"),
    "a.tar": (tar(), "tar"),
    "a.pdf": (b"%PDF-1.7\n%\xe2\xe3", "PDF"),
    "a.doc": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "office"),
    "a.rtf": (b"{\\rtf1\\ansi A dog", "rich text"),
    "a.po": (b'#: a.c\nmsgid "dog"\nmsgstr "Hund"\n', "PO"),
    "a.json": (b'[\n  {\n    "en": "dog"\n  }\n]', "JSON"),
    "a.jsonl": (b'{"en": "dog", "de": "Hund"}\n' * 3, "JSON"),
    "lists.jsonl": (b'["dog", "Hund"]\n' * 3, "JSON"),
    "a.csv": (b"dog,Hund\ncat,Katze\n", "CSV"),
    "squeezed.en": (gzip.compress(TEXT.encode()), "compressed"),
    "twice.en.gz": (gzip.compress(gzip.compress(TEXT.encode())), "twice"),
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
    assert says(str(told), words)
    with pytest.raises(DataError) as caught:
        ParallelText(DataConfig(corpus="files", train_src=str(path), train_tgt=str(path)))
    assert says(str(caught.value), path, words)


@pytest.mark.parametrize("name", SOUND)
def test_text_is_text(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(SOUND[name])
    assert foreign_format(path) is None
    ParallelText(DataConfig(corpus="files", train_src=str(path), train_tgt=str(path)))


def test_a_file_that_is_not_there_is_left_to_its_readers(tmp_path: Path) -> None:
    assert foreign_format(tmp_path / "no.tmx") is None
