"""The first run of a newcomer, on real text: what is missing is fetched, and the model shows what it has learned."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import transduce.demo
from transduce.config import DataConfig
from transduce.corpora import BUILT_IN, CATALOGUE, Corpus, cache_folder
from transduce.demo import demo_config, fetch_missing
from transduce.recipes import read_recipe

CommandLine = Callable[..., Any]
RECIPES = Path(__file__).parents[1] / "recipes"

SENTENCES = [("A dog sees {} cats.", "Ein Hund sieht {} Katzen."), ("There are {} boys here.", "Hier sind {} Jungen.")]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with a small Multi30k of our own, and a cache folder with nothing in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TRANSDUCE_DATA", raising=False)
    folder = tmp_path / "data" / "multi30k"
    folder.mkdir(parents=True)
    for stem, numbers in {"train": range(40, 90), "val": range(5), "test_2016_flickr": range(10, 16)}.items():
        for side, language in enumerate(("en", "de")):
            lines = [pair[side].format(number) for number in numbers for pair in SENTENCES]
            (folder / f"{stem}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder.parent


@pytest.mark.parametrize(("recipe", "corpus"), [("grammar-en-de.toml", BUILT_IN), ("multi30k-en-de-quick.toml", "multi30k")])
def test_the_recipes_are_the_demos(recipe: str, corpus: str) -> None:
    assert read_recipe(RECIPES / recipe) == demo_config(corpus, seed=1, precision="bf16")


def test_a_demo_on_real_text(transduce: CommandLine, data: Path, tmp_path: Path) -> None:
    small = ["model.d_model=16", "model.d_k=4", "model.d_v=4", "model.d_ff=16", "data.vocab_size=300"]
    short = ["training.max_updates=6", "training.checkpoint_every_updates=3", "training.validate_every_updates=6"]
    settings = [argument for setting in [*small, *short] for argument in ("--set", setting)]
    outcome = transduce("demo", "--corpus", "multi30k", "--data", data, "--out", tmp_path / "run", *settings)
    assert outcome.code == 0, outcome.err
    assert "scores on multi30k/test_2016_flickr\nsacrebleu" in outcome.out
    assert "nrefs:1|case:mixed" in outcome.out
    assert outcome.out.count("(the corpus has: ") == 10  # six updates teach nothing
    assert (tmp_path / "run" / "attention.html").exists()
    card = (tmp_path / "run" / "model" / "README.md").read_text(encoding="utf-8")
    assert "Scores on test: multi30k/test_2016_flickr (12 sentences)" in card
    assert json.loads((tmp_path / "run" / "run.json").read_bytes())["config"]["data"]["corpus"] == "multi30k"


def test_only_what_is_missing_is_fetched(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[tuple[str, Path, str]] = []

    def get(corpus: Corpus, folder: Path, *, direction: str, **rest: object) -> dict[str, int]:
        fetched.append((corpus.name, folder, direction))
        return {}

    monkeypatch.setattr(transduce.demo, "get_corpus", get)

    def fetch(corpus: str | dict[str, float], *, direction: str = "en-de") -> None:
        config = DataConfig(corpus=corpus, direction=direction)
        fetch_missing(config, data, progress=lambda name: lambda n_bytes, n_total: None, tell=lambda line: None)

    fetch("multi30k")
    fetch("grammar")
    fetch("mine")  # not in the catalogue: nothing to fetch, and the run will say what is missing
    assert fetched == []
    fetch({"multi30k": 1.0, "libreoffice-help": 1.0}, direction="de-en")
    fetch("multi30k", direction="en-fr")
    assert fetched == [("libreoffice-help", cache_folder(), "de-en"), ("multi30k", cache_folder(), "en-fr")]
    assert CATALOGUE.keys() >= {name for name, _, _ in fetched}
