"""The languages that memories and XLIFF files name."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from transduce.documents.pairs import languages_in
from transduce.documents.tmx import tmx_lines
from transduce.errors import DataError

XLIFF = """\
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="a" source-language="en-US" target-language="pt_BR" datatype="plaintext"><body>
<trans-unit id="1"><source>A dog.</source><target>Um cachorro.</target></trans-unit></body></file></xliff>"""


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_the_language_of_the_sources_comes_first(tmp_path: Path) -> None:
    lines = "\n".join(tmx_lines([("Hund", "dog", "")], "de", "en"))
    swapped = lines.replace('srclang="de"', 'srclang="EN"')
    assert languages_in([written(tmp_path / "a.tmx", lines)]) == ["de", "en"]
    assert languages_in([written(tmp_path / "b.tmx", swapped)]) == ["en", "de"]
    assert languages_in([written(tmp_path / "c.tmx", lines.replace('srclang="de"', 'srclang="*all*"'))]) == ["de", "en"]
    assert languages_in([tmp_path / "a.tmx", tmp_path / "b.tmx"]) == ["de", "en"]


def test_xliff_has_regions(tmp_path: Path) -> None:
    assert languages_in([written(tmp_path / "a.xlf", XLIFF)]) == ["en-US", "pt-BR"]


def test_a_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.xlf.gz").write_bytes(gzip.compress(XLIFF.encode())[:-9])
    with pytest.raises(DataError, match=r"a\.xlf\.gz cannot be read: .* ended before"):
        languages_in([tmp_path / "a.xlf.gz"])


def test_po_files_do_not_name_the_language_of_their_sources(tmp_path: Path) -> None:
    assert languages_in([written(tmp_path / "de.po", 'msgid ""\nmsgstr "Language: de\\n"\n')]) == []


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.tmx"):
        languages_in([written(tmp_path / "a.tmx", "no XML")])
