"""Plain text: files, folders, one side of corpora, and what is wrong with a configuration of it."""

from __future__ import annotations

import gzip
import lzma
import os
from pathlib import Path

import pytest

from said import naming
from transduce.config import DataConfig, config_from_mapping
from transduce.corpora import plain_text
from transduce.corpora.plain_text import PlainText, documents_of
from transduce.errors import ConfigError, DataError


def config_of(**fields: object) -> DataConfig:
    return config_from_mapping(DataConfig, {"task": "causal-lm", **fields}, where="data")


def test_files_and_folders_of_documents(tmp_path: Path) -> None:
    folder = tmp_path / "text"
    (folder / "sub").mkdir(parents=True)
    (folder / "b.txt").write_text("one\ntwo\n\nthree\n", encoding="utf-8")
    (folder / "sub" / "c.txt.gz").write_bytes(gzip.compress(b"vier\n"))
    (folder / "a.txt.xz").write_bytes(lzma.compress(b"zero\n"))
    (folder / ".hidden").write_text("no", encoding="utf-8")
    text = PlainText(config_of(corpus="files", train_text=str(folder), dev_text=str(folder / "b.txt")))
    assert list(text.train("files")) == [["zero"], ["one", "two"], ["three"], ["vier"]]
    assert list(text.of("dev")) == [["one", "two"], ["three"]]
    assert (text.corpora, text.name_of("dev"), text.has("test")) == (("files",), str(folder / "b.txt"), False)


@pytest.mark.usefixtures("all_evaluated_sentences")
def test_one_side_of_a_corpus() -> None:
    english, german = (
        PlainText(config_of(corpus="grammar", n_pairs=3, language=language)) for language in ("en", "de")
    )
    (one,), (other,) = english.train("grammar"), german.train("grammar")
    assert len(one) == len(other) == 3
    assert one != other
    assert len(next(english.of("dev"))) == 500
    assert english.name_of("test") == "grammar test"


def test_long_documents_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_text, "MAX_DOCUMENT_CHARACTERS", 5)
    assert list(documents_of(["abc", "def", "g", "h"])) == [["abc", "def"], ["g", "h"]]


@pytest.mark.parametrize(
    ("fields", "facts"),
    [
        ({"corpus": "grammar"}, ("data.language", "'en-de'")),
        ({"corpus": "files"}, ("data.train_text",)),
        ({"corpus": "grammar", "train_text": "x"}, ("train_text", "'files'", "'grammar'")),
        ({"corpus": "grammar", "language": "fr"}, ("language", "'fr'", "'en-de'")),
        ({"task": "translation", "language": "en"}, ("language", "'causal-lm'", "'translation'")),
    ],
)
def test_a_configuration_that_names_no_text(fields: dict[str, str], facts: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match=naming(*facts)):
        PlainText(config_of(**fields))


def test_missing_and_empty_text(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("nowhere", "empty"):
        with pytest.raises(DataError, match=naming(tmp_path / name)):
            PlainText(config_of(corpus="files", train_text=str(tmp_path / name)))


def test_a_link_to_nothing_in_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a dog\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "gone.txt").symlink_to("/nothing/here")
    config = config_of(corpus="files", train_text=str(tmp_path))
    with pytest.raises(DataError, match=naming(tmp_path / "sub" / "gone.txt")):
        PlainText(config)
    (tmp_path / "sub" / "gone.txt").unlink()
    os.mkfifo(tmp_path / "sub" / "pipe")
    with pytest.raises(DataError, match=naming(tmp_path / "sub" / "pipe", "pipe")):
        PlainText(config)
