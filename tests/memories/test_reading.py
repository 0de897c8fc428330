"""Files of translations as memories."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path

import pytest

from transduce.errors import DataError, MissingFileError
from transduce.memories import Memory, open_memory, pairs_of_file, write_memory

TMX = """<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/><body><tu>
<tuv xml:lang="en"><seg>A dog.</seg></tuv><tuv xml:lang="de"><seg>Ein Hund.</seg></tuv></tu></body></tmx>"""


def opened(path: Path) -> Memory:
    return open_memory(path, src_language="en", tgt_language="de")


@pytest.mark.parametrize(("name", "text"), [("my.tmx", TMX), ("my.tsv", "A dog.\tEin Hund.\n")])
def test_a_file_of_translations_is_a_memory_while_it_is_used(
    name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    memory = opened(tmp_path / name)
    assert [*memory.pairs()] == [("A dog.", "Ein Hund.")]
    assert memory.languages == ("en", "de")
    memory.close()
    del memory
    gc.collect()
    assert not [*temporary.iterdir()]


def test_a_built_memory_is_opened_under_any_name(tmp_path: Path) -> None:
    path = tmp_path / "memory.bin"
    write_memory(path, [[("A dog.", "Ein Hund.")]], src_language="en", tgt_language="de")
    assert opened(path).path == path


def test_what_is_to_stay_as_it_is_stays(tmp_path: Path) -> None:
    (tmp_path / "a.tmx").write_text(TMX.replace("Ein Hund.", "A dog."), encoding="utf-8")
    found = opened(tmp_path / "a.tmx").match("A dog.")
    assert found is not None
    assert found.target == "A dog."


def test_spaces_that_do_not_break_and_invisible_characters_stay(tmp_path: Path) -> None:
    target = "Page\u00a03\u202f: «\u00a0so\u00adlo\u00a0»\u200f"
    text = TMX.replace("A dog.", "A\u00a0dog,  3 of it").replace("Ein Hund.", target.replace("3", "\n 3"))
    (tmp_path / "a.tmx").write_text(text, encoding="utf-8")
    memory = opened(tmp_path / "a.tmx")
    found = memory.match("A dog, 7 of it")
    assert found is not None
    assert found.target == target.replace("\u00a03", "\u00a0 7")
    [(source, _)] = memory.pairs()
    assert source == "A\u00a0dog, 3 of it"


def test_files_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (tmp_path / "a.tmx").write_text(TMX.replace('"de"', '"fr"'), encoding="utf-8")
    with pytest.raises(DataError, match="de"):
        opened(tmp_path / "a.tmx")
    (tmp_path / "a.xyz").write_bytes(b"A dog.")
    with pytest.raises(DataError, match="should end in"):
        opened(tmp_path / "a.xyz")
    (tmp_path / "a.tm").write_bytes(b"A dog.")
    with pytest.raises(DataError, match="transduce memory build"):
        opened(tmp_path / "a.tm")
    with pytest.raises(MissingFileError):
        opened(tmp_path / "b.tmx")
    assert not [*temporary.iterdir()]


def test_a_memory_grows_by_corrections(tmp_path: Path) -> None:
    """The last of equal sources wins; the file may be that which is written."""
    path, edits = tmp_path / "my.tm", tmp_path / "edits.tmx"
    write_memory(path, [[("A dog.", "Der Hund."), ("A cat.", "Eine Katze.")]], src_language="en", tgt_language="de")
    edits.write_text(TMX, encoding="utf-8")
    files = [pairs_of_file(each, "en", "de") for each in (path, edits)]
    assert write_memory(path, files, src_language="en", tgt_language="de") == 3
    memory = Memory(path)
    found = [memory.match(text) for text in ("A dog.", "A cat.")]
    assert [each and each.target for each in found] == ["Ein Hund.", "Eine Katze."]
    between = '<tu><prop type="prev">A cat.</prop><prop type="next">A cow.</prop>'
    edits.write_text(TMX.replace("<tu>", between).replace("Ein Hund.", "Hündin."), encoding="utf-8")
    document = [("A cat.", "Eine Katze."), ("A dog.", "Der Hund."), ("A cow.", "Eine Kuh.")]
    files = [pairs_of_file(path, "en", "de"), document, document, pairs_of_file(edits, "en", "de")]
    assert write_memory(path, files, src_language="en", tgt_language="de") == 6
    write_memory(path, [pairs_of_file(path, "en", "de")], src_language="en", tgt_language="de")
    memory = Memory(path)
    found = [memory.match("A dog.", *near) for near in (("A cat.", "A cow."), ("A cow.", "A cat."))]
    assert [each and each.target for each in found] == ["Hündin.", "Der Hund."]
    with pytest.raises(DataError, match="from en to de, not en to fr"):
        pairs_of_file(path, "en", "fr")
