"""The licences on a model card."""

from __future__ import annotations

from transduce.config import ParallelData, TreesData
from transduce.corpora import CATALOGUE
from transduce.runs.card import licences_of


def test_each_corpus_of_a_catalogue_has_its_licence() -> None:
    data = ParallelData(corpus={"tatoeba": 1.0, "mine": 2.0, "libreoffice-help": 0.5}, direction="en-de")
    lines = licences_of(data)
    assert [line.partition(":")[0] for line in lines] == ["- tatoeba", "- libreoffice-help"]
    for name, line in zip(("tatoeba", "libreoffice-help"), lines, strict=True):
        assert CATALOGUE[name].licence in line
        assert CATALOGUE[name].source in line
    assert "CC BY 4.0" in licences_of(TreesData(corpus="gum", shared_vocabulary=False))[0]


def test_own_files_and_the_built_in_corpus_have_none() -> None:
    assert licences_of(ParallelData(corpus="files", train_src="a", train_tgt="b")) == []
    assert licences_of(ParallelData()) == []
