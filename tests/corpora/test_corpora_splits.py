"""One door to all corpora: the grammar in both directions, and the user's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from transduce.config import DataConfig
from transduce.corpora import has_split, read_aligned_files, read_pairs, read_tab_separated, write_grammar_corpus
from transduce.errors import ConfigError, DataError
from transduce.trees import parse_tree


def test_the_grammar_in_both_directions() -> None:
    there = list(read_pairs(DataConfig(n_pairs=20), "train"))
    back = list(read_pairs(DataConfig(n_pairs=20, direction="de-en"), "train"))
    assert back == [(tgt, src) for src, tgt in there]
    assert len(list(read_pairs(DataConfig(n_pairs=20), "dev"))) == 500
    with pytest.raises(ConfigError, match="English and German, got direction = 'en-fr'"):
        read_pairs(DataConfig(direction="en-fr"), "train")


def test_the_written_corpus_is_the_one_that_is_read(tmp_path: Path) -> None:
    sizes = write_grammar_corpus(tmp_path / "g", n_pairs=30, seed=2)
    assert sizes == {"train": 30, "dev": 500, "test": 1000}
    for split in ("train", "dev", "test"):
        en, de = tmp_path / "g" / f"{split}.en", tmp_path / "g" / f"{split}.de"
        assert list(read_aligned_files(en, de)) == list(read_pairs(DataConfig(n_pairs=30, corpus_seed=2), split))
    trees = (tmp_path / "g" / "train.trees").read_text(encoding="utf-8").splitlines()
    assert [parse_tree(tree).label for tree in trees] == ["TOP"] * 30


def test_files_that_do_not_align_are_counted(tmp_path: Path) -> None:
    src, tgt = tmp_path / "a", tmp_path / "b"
    src.write_text("1\n2\n")
    tgt.write_text("1\n2\n3\n4\n")
    with pytest.raises(DataError, match=r"a has 2 lines, .*b 4; parallel files must align"):
        list(read_aligned_files(src, tgt))
    with pytest.raises(DataError, match=r"a has 2 lines, .*b 4; parallel files must align"):
        list(read_aligned_files(tgt, src))


def test_tab_separated_pairs(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("a dog\tein Hund\n\tleer\n")
    assert list(read_tab_separated(path)) == [("a dog", "ein Hund"), ("", "leer")]
    config = DataConfig(corpus="files", train_tsv=str(path))
    assert [has_split(config, split) for split in ("train", "dev", "test")] == [True, False, False]
    path.write_text("a\tb\nno tab\n")
    with pytest.raises(DataError, match=r"pairs\.tsv:2 has 0 tabs"):
        list(read_pairs(config, "train"))
    with pytest.raises(ConfigError, match=r"no dev text: set data\.dev_src"):
        read_pairs(config, "dev")
