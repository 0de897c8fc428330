"""Paths that are not model folders: the error says what they are and what would work."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from commands import CommandLine
from said import says


def told(transduce: CommandLine, place: Path, verb: str = "translate", *options: object) -> str:
    outcome = transduce(verb, place, *options)
    assert outcome.code == 1
    assert outcome.out == ""
    (line,) = outcome.err.splitlines()
    assert line.startswith("error: ")
    return str(line.removeprefix("error: "))


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("translate", []),
        ("parse", []),
        ("evaluate", ["--text", "multi30k/test"]),
        ("attention", ["--src", "A dog."]),
        ("model", []),
    ],
)
def test_a_run_folder_offers_its_model(transduce: CommandLine, micro_run: Path, verb: str, options: list[str]) -> None:
    assert says(told(transduce, micro_run, verb, *options), micro_run, "run folder", micro_run / "model")


def test_a_reverse_model_is_looked_at_too(transduce: CommandLine, micro_run: Path) -> None:
    said = told(transduce, micro_run / "model", "translate", "--rerank", micro_run)
    assert says(said, micro_run, "run folder", micro_run / "model")


def test_a_run_without_a_model(transduce: CommandLine, own_run: Path) -> None:
    shutil.rmtree(own_run / "model")
    assert says(told(transduce, own_run), "run folder", f"transduce average {own_run}")
    assert says(told(transduce, own_run / "model"), own_run / "model", f"transduce average {own_run}")
    shutil.rmtree(own_run / "checkpoints")
    assert says(told(transduce, own_run), f"transduce train --resume --out {own_run}")


def test_parts_of_a_run(transduce: CommandLine, micro_run: Path) -> None:
    model = micro_run / "model"
    newest = sorted((micro_run / "checkpoints").iterdir())[-1]
    assert says(told(transduce, newest), newest, "checkpoint", model)
    assert says(told(transduce, newest.parent), newest.parent, "checkpoints", model)
    assert says(told(transduce, micro_run / "store"), micro_run / "store", "prepared text", model)
    assert says(told(transduce, micro_run / "store" / "train"), micro_run / "store" / "train", "token store")


def test_prepared_text_elsewhere(transduce: CommandLine, micro_run: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(micro_run / "store", tmp_path / "prepared"))
    assert says(told(transduce, store), f"transduce train RECIPE --store {store}")


def test_files_and_folders_that_are_none_of_ours(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.en"
    text.write_text("A dog.\n")
    assert says(told(transduce, micro_model, "translate", text), f"--in {text}", f"< {text}")
    assert says(told(transduce, text), text, "folder")
    weights = micro_model / "model.safetensors"
    assert re.search(rf"{weights}\b.*\bmodel folder\b.*{micro_model}$", told(transduce, weights))
    assert says(told(transduce, tmp_path / "no"), tmp_path / "no")
    (tmp_path / "many").mkdir()
    assert says(told(transduce, tmp_path / "many"), tmp_path / "many", "RUN/model")
    shutil.copytree(micro_model, tmp_path / "many" / "one")
    assert says(told(transduce, tmp_path / "many"), tmp_path / "many", tmp_path / "many" / "one")


def linked(model: Path, folder: Path) -> Path:
    """A model folder of links into another folder, as created by tools that share large files."""
    (folder / "kept").mkdir(parents=True)
    (folder / "model").mkdir()
    for number, path in enumerate(sorted(model.iterdir())):
        shutil.copy(path, folder / "kept" / str(number))
        (folder / "model" / path.name).symlink_to(Path("..", "kept", str(number)))
    return folder / "model"


def test_the_files_of_a_model_folder_may_be_links(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    folder = linked(micro_model, tmp_path)
    outcomes = [transduce("translate", each, stdin=b"The dog sleeps.\n") for each in (micro_model, folder)]
    assert [outcome.code for outcome in outcomes] == [0, 0]
    assert outcomes[0].out == outcomes[1].out
    assert transduce("doctor", folder).code == 0


@pytest.mark.parametrize("name", ["manifest.json", "config.json", "tokenizer.json", "model.safetensors"])
@pytest.mark.parametrize("to", ["nowhere", "pipe", "itself", "folder", "/dev/zero"])
def test_a_link_in_a_model_folder_that_leads_to_no_file_is_told(
    transduce: CommandLine, micro_model: Path, tmp_path: Path, name: str, to: str
) -> None:
    folder = linked(micro_model, tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (folder / name).unlink()
    (folder / name).symlink_to(folder / name if to == "itself" else tmp_path / to)
    outcome = transduce("translate", folder, stdin=b"The dog sleeps.\n")
    assert outcome.code == 1
    assert outcome.err.count("\n") == 1
    assert name in outcome.err


@pytest.mark.parametrize(
    "words", [("average",), ("train", "--resume", "--out"), ("train", "--more", "1", "--out")], ids=" ".join
)
def test_what_is_no_run(transduce: CommandLine, micro_run: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    verb, *options = words

    def said(place: Path) -> str:
        outcome = transduce(verb, *options, place)
        assert (outcome.code, outcome.err.count("\n")) == (1, 1)
        return str(outcome.err)

    newest = sorted((micro_run / "checkpoints").iterdir())[-1]
    for part in (micro_run / "model", newest.parent, newest):
        assert says(said(part), "holds no run", part, f"the run {micro_run.resolve()}")
    (tmp_path / "file").write_text("a\n")
    for taken in (tmp_path, tmp_path / "file"):
        assert says(said(taken), "holds no run", taken, "name the folder of a run")
    assert says(said(tmp_path / "new"), "holds no run", f"transduce train RECIPE --out {tmp_path / 'new'}")


@pytest.mark.parametrize(
    "words", [("shortlist", "{}", "--out", "new"), ("train", "{recipe}", "--store", "{}")], ids=" ".join
)
def test_what_is_no_prepared_text(
    transduce: CommandLine, micro_run: Path, micro_recipe: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    def said(place: Path) -> str:
        known = {"{}": place, "{recipe}": micro_recipe, "new": tmp_path / "new"}
        outcome = transduce(*(known.get(word, word) for word in words))
        assert outcome.code == 1
        return str(outcome.err.splitlines()[-1])

    for place in (micro_run, micro_run / "model"):
        assert says(said(place), re.compile("^error: "), place, "is not prepared text", micro_run / "store")
    for place in (tmp_path / "none", micro_recipe):
        assert says(said(place), re.compile("^error: "), place, "is not prepared text", "transduce prepare")
