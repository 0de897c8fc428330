"""Parallel text: the grammar in both directions, named corpora in data folders, the user's files."""

from __future__ import annotations

import gzip
import lzma
import os
import re
from pathlib import Path

import pytest

from said import naming
from transduce.cli.history import line_history
from transduce.config import DataConfig
from transduce.corpora import (
    CATALOGUE,
    CleaningReport,
    ParallelText,
    cache_folder,
    corpus_named,
    data_folders,
    read_aligned_files,
    read_tab_separated,
    write_grammar_corpus,
)
from transduce.errors import ConfigError, DataError
from transduce.trees import parse_tree


@pytest.fixture(autouse=True)
def no_data_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TRANSDUCE_DATA", raising=False)


def write_text(folder: Path, stem: str, **sides: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for language, lines in sides.items():
        (folder / f"{stem}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.mark.usefixtures("all_evaluated_sentences")
def test_the_grammar_in_both_directions() -> None:
    there = list(ParallelText(DataConfig(n_pairs=20)).train_pairs("grammar"))
    text = ParallelText(DataConfig(n_pairs=20, direction="de-en"))
    assert list(text.train_pairs("grammar")) == [(tgt, src) for src, tgt in there]
    assert len(list(text.of("dev"))) == 500
    with pytest.raises(ConfigError, match=naming("grammar", "en", "de", "direction", "'en-fr'")):
        ParallelText(DataConfig(direction="en-fr")).train_pairs("grammar")


@pytest.mark.usefixtures("all_evaluated_sentences")
def test_the_written_corpus_is_the_one_that_is_read(tmp_path: Path) -> None:
    sizes = write_grammar_corpus(tmp_path / "g", n_pairs=30, seed=2)
    assert sizes == {"train": 30, "dev": 500, "test": 1000}
    text = ParallelText(DataConfig(n_pairs=30, corpus_seed=2))
    read = {"train": text.train_pairs("grammar"), "dev": text.of("dev"), "test": text.of("test")}
    for split, pairs in read.items():
        en, de = tmp_path / "g" / f"{split}.en", tmp_path / "g" / f"{split}.de"
        assert list(read_aligned_files(en, de)) == list(pairs)
    trees = (tmp_path / "g" / "train.trees").read_text(encoding="utf-8").splitlines()
    assert [parse_tree(tree).label for tree in trees] == ["TOP"] * 30


def test_files_that_do_not_align_are_counted(tmp_path: Path) -> None:
    src, tgt = tmp_path / "a", tmp_path / "b"
    src.write_text("1\n2\n")
    tgt.write_text("1\n2\n3\n4\n")
    with pytest.raises(DataError, match=naming(src, 2, tgt, 4)):
        list(read_aligned_files(src, tgt))
    with pytest.raises(DataError, match=naming(src, 2, tgt, 4)):
        list(read_aligned_files(tgt, src))


def test_tab_separated_pairs(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("a dog\tein Hund\n\tleer\n")
    assert list(read_tab_separated(path)) == [("a dog", "ein Hund"), ("", "leer")]
    text = ParallelText(DataConfig(corpus="files", train_tsv=str(path)))
    assert [text.has(split) for split in ("train", "dev", "test")] == [True, False, False]
    path.write_text("a\tb\nno tab\n")
    assert list(text.train_pairs("files")) == [("a", "b"), None]  # left to the cleaning
    dev = ParallelText(DataConfig(dev_tsv=str(path)))
    with pytest.raises(DataError, match=naming("pairs.tsv:2", 0)):
        list(dev.of("dev"))
    with pytest.raises(ConfigError, match=naming("dev", "data.dev_src")):
        text.of("dev")


def test_a_named_file_that_is_missing_is_found_at_once(tmp_path: Path) -> None:
    write_text(tmp_path, "train", en=["a"], de=["b"])
    train = {"train_src": str(tmp_path / "train.en"), "train_tgt": str(tmp_path / "train.de")}
    with pytest.raises(DataError, match=naming("nowhere.tsv", "No such file")):
        ParallelText(DataConfig(corpus="files", dev_tsv="nowhere.tsv", **train))


def test_files_that_cannot_be_read_twice_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, why in {"pipe": "a pipe or a device", ".": "a folder"}.items():
        for config in (
            DataConfig(corpus="files", train_tsv=str(tmp_path / name)),
            DataConfig(dev_tsv=str(tmp_path / name)),
        ):
            with pytest.raises(DataError, match=naming(tmp_path / name, why)):
                ParallelText(config)


def test_a_corpus_of_the_catalogue_is_read_from_a_data_folder(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "multi30k"
    write_text(folder, "train", en=["two dogs", "a cat"], de=["zwei Hunde", "eine Katze"])
    write_text(folder, "val", en=["a dog"])
    with lzma.open(folder / "val.de.xz", "wt", encoding="utf-8") as stream:
        stream.write("ein Hund\n")
    with gzip.open(folder / "test_2016_flickr.en.gz", "wt", encoding="utf-8") as stream:
        stream.write("a boy\n")
    text = ParallelText(DataConfig(corpus="multi30k", direction="de-en"), tmp_path / "data")
    assert list(text.train_pairs("multi30k")) == [("zwei Hunde", "two dogs"), ("eine Katze", "a cat")]
    assert list(text.of("dev")) == [("ein Hund", "a dog")]
    assert not text.has("test")  # one side is missing
    assert {path.name for path in text.files} == {"train.en", "train.de"}


def test_folders_are_looked_into_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSDUCE_DATA", str(tmp_path / "variable"))
    expected = [tmp_path / "given", tmp_path / "variable", tmp_path / "cache" / "transduce"]
    for folder in expected[:2]:
        folder.mkdir()
    assert list(data_folders(tmp_path / "given")) == expected
    for folder in reversed(expected):
        write_text(folder / "mine", "train.en-de", en=[folder.name], de=["da"])
        text = ParallelText(DataConfig(corpus="mine"), tmp_path / "given")
        assert list(text.train_pairs("mine")) == [(folder.name, "da")]


def test_a_data_folder_that_is_not_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(data_folders()) == [tmp_path / "cache" / "transduce"]  # it does not exist, but is only the default
    with pytest.raises(ConfigError, match=naming("--data", tmp_path / "no")):
        ParallelText(DataConfig(), tmp_path / "no")
    (tmp_path / "file").touch()
    monkeypatch.setenv("TRANSDUCE_DATA", str(tmp_path / "file"))
    with pytest.raises(ConfigError, match=naming("TRANSDUCE_DATA", tmp_path / "file")):
        data_folders(tmp_path)


def test_a_user_without_a_home_folder_has_no_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", unknown)
    assert data_folders(tmp_path) == (tmp_path,)
    with pytest.raises(ConfigError, match=naming("HOME", "XDG_CACHE_HOME")):
        cache_folder()
    with line_history("test"):
        pass
    with pytest.raises(DataError, match="no folder: set HOME"):
        list(ParallelText(DataConfig(corpus="multi30k")).train_pairs("multi30k"))


def test_a_folder_of_ones_own_in_other_languages_is_told(tmp_path: Path) -> None:
    write_text(tmp_path / "mine", "train", en=["a"], fr=["b"])
    with pytest.raises(DataError, match=naming("mine/train.en", "mine/train.de", tmp_path / "mine", "train.fr")):
        ParallelText(DataConfig(corpus="mine"), tmp_path)
    write_text(tmp_path / "mine", "other", **{f"l{number}": ["a"] for number in range(8)})
    with pytest.raises(DataError, match=naming(tmp_path / "mine", "other.l0", "other.l7", re.compile(r"\.\.\."))):
        ParallelText(DataConfig(corpus="mine"), tmp_path)


def test_a_folder_of_ones_own_is_a_corpus(tmp_path: Path) -> None:
    write_text(tmp_path / "mine", "train.de-en", en=["a"], de=["b"])  # the pair of languages in either order
    write_text(tmp_path / "mine", "dev", en=["c"], de=["d"])
    text = ParallelText(DataConfig(corpus="mine"), tmp_path)
    assert (list(text.train_pairs("mine")), list(text.of("dev")), text.has("test")) == (
        [("a", "b")],
        [("c", "d")],
        False,
    )


@pytest.mark.usefixtures("all_evaluated_sentences")
def test_dev_and_test_are_of_the_first_corpus_that_has_them_or_of_named_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_text(tmp_path / name, "train", en=[name], de=[name + " de"])
    write_text(tmp_path / "two", "dev", en=["dev"], de=["dev de"])
    corpus = {"one": 1.0, "two": 0.5, "grammar": 1.0}
    text = ParallelText(DataConfig(corpus=corpus), tmp_path)
    assert text.corpora == ("one", "two", "grammar")
    assert list(text.of("dev")) == [("dev", "dev de")]
    assert len(list(text.of("test"))) == 1000  # of the grammar
    tsv = tmp_path / "dev.tsv"
    tsv.write_text("named\tgenannt\n")
    named = ParallelText(DataConfig(corpus=corpus, dev_tsv=str(tsv)), tmp_path)
    assert list(named.of("dev")) == [("named", "genannt")]


def test_text_that_is_not_there_is_told_with_the_way_to_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=naming("multi30k/train.en", "multi30k/train.de", "corpus get multi30k")):
        ParallelText(DataConfig(corpus="multi30k"), tmp_path)
    with pytest.raises(DataError, match=naming("mutli30k", "multi30k")):
        ParallelText(DataConfig(corpus="mutli30k"), tmp_path)
    with pytest.raises(ConfigError, match=naming("multi30k", "en-de", "en-fr", "de-fr", "direction", "'en-cs'")):
        ParallelText(DataConfig(corpus="multi30k", direction="en-cs"), tmp_path)
    with pytest.raises(ConfigError, match=naming("tatoeba", "en-de", "en-fr", "direction", "'fr-de'")):
        ParallelText(DataConfig(corpus="tatoeba", direction="fr-de"), tmp_path)


def test_a_corpus_of_several_texts_needs_each_that_has_these_languages(tmp_path: Path) -> None:
    newstest = CATALOGUE["newstest"]
    for text in newstest.train:
        if text.is_in("en", "fr"):
            write_text(tmp_path / text.folder, text.stem, en=[f"{text.stem} 1", "2"], fr=["un", "deux"])
    french = ParallelText(DataConfig(corpus="newstest", direction="en-fr"), tmp_path)
    assert len(list(french.train_pairs("newstest"))) == 2 * 7  # six sets in three languages, one in these two
    (tmp_path / "wmt_news" / "newstest2010.fr").unlink()
    with pytest.raises(DataError, match=naming("wmt_news/newstest2010.en", "wmt_news/newstest2010.fr")):
        ParallelText(DataConfig(corpus="newstest", direction="en-fr"), tmp_path)


def test_cleaning_reports_by_corpus(tmp_path: Path) -> None:
    write_text(tmp_path / "mine", "train", en=["a dog", "", "same"], de=["ein Hund", "leer", "same"])
    text = ParallelText(DataConfig(corpus="mine"), tmp_path)
    assert list(text.train("mine")) == [("a dog", "ein Hund")]
    report = text.reports["mine"]
    assert isinstance(report, CleaningReport)
    assert (report.n_read, report.dropped["empty"].first_lines, report.dropped["identical sides"].first_lines) == (
        3,
        [2],
        [3],
    )


def test_the_catalogue_is_consistent() -> None:
    for name, corpus in CATALOGUE.items():
        assert (corpus.name, corpus_named(name)) == (name, corpus)
        assert corpus.licence
        assert corpus.source
        assert corpus.train
        for text in (*corpus.train, *corpus.dev, *corpus.test, *corpus.further):
            assert not text.languages or len(set(text.languages) & set(corpus.languages)) >= 2
        # Whatever can be downloaded fills exactly the texts of the corpus.
        wanted = {f"{text.folder}/{text.stem}" for split in ("train", "dev", "test") for text in corpus.texts(split)}
        wanted |= {f"{text.folder}/{text.stem}" for text in corpus.further}
        members = {member.removesuffix(".gz").rsplit(".", 1)[0] for file in corpus.remote for member in file.members}
        pairs = (".en-de", ".en-fr")
        reached = {stem for stem in wanted if stem in members or any(stem + pair in members for pair in pairs)}
        assert not corpus.remote or reached == wanted
        for file in corpus.remote:
            assert file.address.startswith("https://")
            assert file.checksum is None or len(file.checksum) in (len("md5:") + 32, len("sha256:") + 64)


def test_tokenised_text_is_raw_text_again(tmp_path: Path) -> None:
    (tmp_path / "wmt_sample10k").mkdir()
    for language, lines in {
        "en": b"It &apos;s a dog , he said .\nbad \xff byte .\n\n",
        "de": "Es ist ein Hund , sagte er .\nein Satz .\n„ Ja &quot; .\n".encode(),
    }.items():
        (tmp_path / "wmt_sample10k" / f"train.tok.{language}").write_bytes(lines)
    text = ParallelText(DataConfig(corpus="wmt-sample10k"), tmp_path)
    pairs = list(text.train_pairs("wmt-sample10k"))
    assert pairs[0] == ("It's a dog, he said.", "Es ist ein Hund, sagte er.")
    assert pairs[1] == ("bad \udcff byte.", "ein Satz.")  # for the cleaning to see
    assert pairs[2][0] == ""
    assert '"' in pairs[2][1]
