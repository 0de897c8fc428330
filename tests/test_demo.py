"""The demo on real text: missing corpora are downloaded, and examples are shown."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

import transduce.demo
from commands import CommandLine
from said import says
from transduce.cli.demo import _print_result
from transduce.config import DataConfig
from transduce.corpora import BUILT_IN, CATALOGUE, Corpus, cache_folder
from transduce.demo import DemoResult, demo_config, fetch_missing
from transduce.errors import DataError
from transduce.metrics import score_translations
from transduce.recipes import RECIPES, read_recipe
from transduce.runs import RunResult

SENTENCES = [("A dog sees {} cats.", "Ein Hund sieht {} Katzen."), ("There are {} boys here.", "Hier sind {} Jungen.")]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with a small synthetic Multi30k, and an empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TRANSDUCE_DATA", raising=False)
    folder = tmp_path / "data" / "multi30k"
    folder.mkdir(parents=True)
    for stem, numbers in {"train": range(40, 90), "val": range(5), "test_2016_flickr": range(10, 16)}.items():
        for side, language in enumerate(("en", "de")):
            lines = [pair[side].format(number) for number in numbers for pair in SENTENCES]
            (folder / f"{stem}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder.parent


@pytest.mark.parametrize(
    ("recipe", "corpus"), [("grammar-en-de.toml", BUILT_IN), ("multi30k-en-de-quick.toml", "multi30k")]
)
def test_the_recipes_are_the_demos(recipe: str, corpus: str) -> None:
    assert read_recipe(RECIPES / recipe) == demo_config(corpus, seed=1, precision="bf16")


def tiny(out: Path, *settings: str) -> list[object]:
    """Arguments of a very short demo."""
    small = ["model.d_model=16", "model.d_k=4", "model.d_v=4", "model.d_ff=16", "data.vocab_size=300"]
    short = ["training.max_updates=6", "training.checkpoint_every_updates=3", "training.validate_every_updates=6"]
    return ["--out", out, *(argument for setting in [*small, *short, *settings] for argument in ("--set", setting))]


@pytest.mark.merge
def test_a_demo_on_real_text(transduce: CommandLine, data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    outcome = transduce("demo", "--corpus", "multi30k", "--data", data, *tiny(run))
    assert outcome.code == 0, outcome.err
    assert re.search(r"\bmulti30k/test_2016_flickr\nsacrebleu\b", outcome.out)
    assert "nrefs:1|case:mixed" in outcome.out
    assert "\nmulti30k_bleu" in outcome.out  # usually reported for this test set
    assert "paper_bleu" not in outcome.out
    assert outcome.out.count("(reference: ") == 10  # six updates are too few to learn
    assert says(outcome.out, run / "attention.html")
    assert (run / "attention.html").exists()
    card = (run / "model" / "README.md").read_text(encoding="utf-8")
    assert says(card, "test", "multi30k/test_2016_flickr", 12)
    assert json.loads((run / "run.json").read_bytes())["config"]["data"]["corpus"] == "multi30k"
    again = transduce("demo", "--corpus", "multi30k", "--data", data, *tiny(run))
    assert again.code == 1
    assert says(again.err, f"transduce train --resume --out {run}")


@pytest.mark.merge
def test_the_sentence_to_try_is_the_shortest_example(
    transduce: CommandLine, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blank lines are not examples, quotes are escaped for the shell, and the printed command is the one used."""
    for language, line in (("en", "It's five o'clock."), ("de", "Es ist fünf Uhr.")):
        longer = "All the others are longer." if language == "en" else "Alle anderen sind länger."
        lines = ["", "  ", line, "", *[longer] * 19, ""]
        path = data / "multi30k" / f"test_2016_flickr.{language}"
        path.write_text("".join(f"{text}\n" for text in lines), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["/somewhere/transduce/__main__.py", "demo"])
    outcome = transduce("demo", "--data", data, "--corpus", "multi30k", *tiny(tmp_path / "my run"))
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("(reference: ") == 10
    *_, last = outcome.out.splitlines()
    assert last.startswith("try it:")
    model = str(tmp_path / "my run" / "model")
    command = ["echo", "It's five o'clock.", "|", "python", "-m", "transduce", "translate", model]
    assert shlex.split(last.removeprefix("try it:")) == command


def test_a_demo_without_dev_and_test_text(transduce: CommandLine, data: Path, tmp_path: Path) -> None:
    (data / "tatoeba").mkdir()
    for language in ("en", "de"):
        train = data / "multi30k" / f"train.{language}"
        train.rename(data / "tatoeba" / f"tatoeba-2021-08-07.{language}")
    arguments = ["demo", "--corpus", "tatoeba", "--data", data]
    values = json.loads(transduce(*arguments, "--json", *tiny(tmp_path / "a")).out)
    assert (values["page"], values["scores"], values["examples"]) == (None, None, [])
    assert Path(values["model"]).is_dir()
    text = transduce(*arguments, *tiny(tmp_path / "b")).out
    assert "attention" not in text
    assert "None" not in text
    assert re.search(r"try it: +\S.* translate ", text)


def test_combinations_are_new_in_the_grammar_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = score_translations(["a b c d"], ["a b c d"], language="de")
    result = DemoResult(RunResult(tmp_path, "max_updates", 6, tmp_path, scores, "test", "some text"), scores, (), None)

    def told(**fields: object) -> str:
        _print_result(result, DataConfig(**fields))  # type: ignore[arg-type]
        return capsys.readouterr().out

    claim = "scores on some text: sentences with word combinations that are not in the training data\n"
    assert claim in told(corpus="grammar")
    assert claim in told(corpus={"grammar": 2.0})
    for other in (
        told(corpus="multi30k"),
        told(corpus={"grammar": 1.0, "multi30k": 1.0}),
        told(corpus="grammar", test_tsv="own.tsv"),
    ):
        assert "scores on some text\n" in other


Fetched = list[tuple[Corpus, Path, str]]


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> Fetched:
    """Record the corpora that would be downloaded."""
    calls: Fetched = []

    def get(corpus: Corpus, folder: Path, *, direction: str, **rest: object) -> dict[str, int]:
        calls.append((corpus, folder, direction))
        return {}

    monkeypatch.setattr(transduce.demo, "get_corpus", get)
    return calls


def fetch(data: Path, corpus: str | dict[str, float], **fields: str) -> list[str]:
    """Collect the log lines."""
    lines: list[str] = []
    config = DataConfig(corpus=corpus, **fields)  # type: ignore[arg-type]
    fetch_missing(config, data, progress=lambda name: lambda n_bytes, n_total: None, log=lines.append)
    return lines


def test_only_what_is_missing_is_fetched(data: Path, fetched: Fetched) -> None:
    fetch(data, "multi30k")
    fetch(data, "grammar")
    fetch(data, "mine")  # not in the catalogue: nothing to download, and the run will report what is missing
    assert fetched == []
    fetch(data, {"multi30k": 1.0, "libreoffice-help": 1.0}, direction="de-en")
    fetch(data, "multi30k", direction="en-fr")
    fetch(data, "tatoeba")
    assert fetched == [
        (CATALOGUE["libreoffice-help"], cache_folder(), "de-en"),
        (CATALOGUE["multi30k"], cache_folder(), "en-fr"),
        (CATALOGUE["tatoeba"], cache_folder(), "en-de"),
    ]


def test_dev_and_test_text_is_fetched_without_the_training_text_that_is_there(data: Path, fetched: Fetched) -> None:
    (data / "multi30k" / "val.de").unlink()
    fetch(data, "multi30k", dev_tsv="dev.tsv")  # that is the dev text then
    assert fetched == []
    fetch(data, "multi30k")
    multi30k = CATALOGUE["multi30k"]
    ((corpus, folder, direction),) = fetched
    assert (corpus.train, corpus.dev, corpus.test, corpus.further) == ((), multi30k.dev, (), ())
    assert (corpus.remote, folder, direction) == (multi30k.remote, cache_folder(), "en-de")


@pytest.mark.parametrize("error", [DataError("no network here?"), PermissionError(13, "Permission denied")])
def test_without_a_network_training_text_is_enough(
    data: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def get(*arguments: object, **rest: object) -> dict[str, int]:
        raise error

    monkeypatch.setattr(transduce.demo, "get_corpus", get)
    (data / "multi30k" / "test_2016_flickr.en").unlink()
    (line,) = fetch(data, "multi30k")
    assert line.startswith("warning: ")
    assert says(line, "multi30k", str(error))
    (data / "multi30k" / "train.en").unlink()
    with pytest.raises(type(error)):
        fetch(data, "multi30k")


def test_a_corpus_that_never_had_dev_and_test_text_is_not_fetched_for_it(data: Path, fetched: Fetched) -> None:
    (data / "tatoeba").mkdir()
    for language in ("en", "de"):
        (data / "tatoeba" / f"tatoeba-2021-08-07.{language}").write_text("a line\n")
    assert fetch(data, "tatoeba") == []
    assert fetched == []
