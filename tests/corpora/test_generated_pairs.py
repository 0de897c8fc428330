"""A corpus of generated pairs is known wherever corpora are named."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from said import naming
from transduce.config import ParallelData, Split
from transduce.corpora import GENERATED, Corpus, Pair, ParallelText
from transduce.corpora.generated import Generated
from transduce.diagnostics import examine
from transduce.errors import ConfigError
from transduce.findings.pairs import examine_pairs_of


@pytest.mark.parametrize("name", GENERATED)
def test_pairs_follow_from_the_seed_and_fewer_are_the_first_of_more(name: str) -> None:
    def drawn(split: Split, n_pairs: int, seed: int) -> list[Pair]:
        return list(GENERATED[name].pairs(split, n_pairs=n_pairs, seed=seed))

    assert len(drawn("train", 20, 1)) == 20
    assert drawn("train", 20, 1)[:5] == drawn("train", 5, 1) != drawn("train", 5, 2)
    assert not {*drawn("train", 20, 1)} & {*drawn("dev", 20, 1), *drawn("test", 20, 1)}


def test_another_one_is_read_and_examined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def counted(split: Split, *, n_pairs: int, seed: int) -> Iterator[Pair]:
        return ((f"{split} a{number}", f"{split} b{number}") for number in range(n_pairs))

    about = Corpus("counting", languages=("en", "fr"), licence="MIT", size="any", source="built in")
    monkeypatch.setitem(GENERATED, "counting", Generated(about, counted))
    data = ParallelData(corpus="counting", direction="fr-en", n_pairs=3)
    text = ParallelText(data)
    assert list(text.train("counting")) == [(f"train b{number}", f"train a{number}") for number in range(3)]
    assert text.name_of("dev") == "counting dev"
    assert list(islice(text.of("dev"), 1)) == [("dev b0", "dev a0")]
    with pytest.raises(ConfigError, match=naming("counting", "en", "fr", "'en-de'")):
        ParallelText(ParallelData(corpus="counting")).train_pairs("counting")
    for found in (examine(["counting"]), examine_pairs_of(data, tmp_path / "recipe.toml", None)):
        findings = list(found)
        assert any("counting" in finding.subject for finding in findings)
        assert not [finding for finding in findings if finding.status == "problem"]
