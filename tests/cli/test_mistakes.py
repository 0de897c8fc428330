"""Mistakes of users: one clear line on stderr, no traceback, exit 1 for a bad value, 2 for an unknown verb or flag."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest

from commands import CommandLine
from said import says

pytestmark = pytest.mark.reliability


def refused(outcome: Any, *facts: object, code: int = 1) -> None:
    errors = [line for line in outcome.err.splitlines() if line.startswith("error: ")]
    assert outcome.code == code, outcome
    assert len(errors) == 1, outcome.err
    assert says(errors[0], *facts), errors[0]


def test_missing_files(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.write_text("a\n")
    refused(transduce("score", "--ref", tmp_path / "no", here), tmp_path / "no", "No such file")
    refused(transduce("train", tmp_path / "no.toml"), "no.toml", "No such file")
    refused(transduce("translate", tmp_path / "no"), tmp_path / "no")
    refused(
        transduce("evaluate", micro_model, "--src", here, "--ref", tmp_path / "no"), tmp_path / "no", "No such file"
    )
    refused(transduce("average", tmp_path / "no"), tmp_path / "no", "run.json")
    refused(transduce("score", "--ref", tmp_path, here), tmp_path, "Is a directory")


def test_unknown_config_key_names_the_nearest(transduce: CommandLine, tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text("[training]\nmax_update = 3\n")
    refused(transduce("train", recipe, "--out", tmp_path / "x"), "training.max_update", "max_updates")
    recipe.write_text("[trainig]\nmax_updates = 3\n")
    refused(transduce("train", recipe, "--out", tmp_path / "x"), "trainig", "training")
    recipe.write_text('preset = "bas"\n')
    refused(transduce("train", recipe, "--out", tmp_path / "x"), "bas", "base")
    recipe.write_text("[training\n")
    refused(transduce("train", recipe, "--out", tmp_path / "x"), recipe, "TOML")
    recipe.write_bytes(b"\xff\xfe")
    refused(transduce("train", recipe, "--out", tmp_path / "x"), recipe, "UTF-8")
    recipe.write_text('preset = "tiny"\n')
    refused(transduce("train", recipe, "--set", "training.max_updates"), "table.key=value", "training.max_updates")
    assert not (tmp_path / "x").exists()


def test_a_task_that_there_is_not_is_refused_before_anything_is_made(transduce: CommandLine, tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text('preset = "tiny"\n[data]\ntask = "translate"\n')
    for verb in ("train", "prepare"):
        refused(
            transduce(verb, recipe, "--out", tmp_path / "x"),
            "data.task: unknown task 'translate'; did you mean translation?",
        )
        assert not (tmp_path / "x").exists()
    outcome = transduce("doctor", recipe)
    assert outcome.code == 1
    assert "unknown task 'translate'" in outcome.out


def test_a_key_of_before_is_told_in_one_line(transduce: CommandLine, tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text('preset = "tiny"\n[data]\ntarget = "text"\n')
    outcome = transduce("model", recipe)
    assert outcome.code == 0
    assert outcome.err == f"warning: {recipe}: data.target is now data.task; write task = 'translation'\n"
    outcome = transduce("doctor", recipe)
    assert f"note    {recipe}: data.target is now data.task; write task = 'translation'" in outcome.out


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "empty"])
def test_damaged_model_folder(transduce: CommandLine, own_model: Path, name: str, damage: str) -> None:
    path = own_model / name
    content = path.read_bytes()
    match damage:
        case "missing":
            path.unlink()
        case "cut":
            path.write_bytes(content[: len(content) // 2])
        case "flipped":
            path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
        case "empty":
            path.write_bytes(b"")
    refused(transduce("translate", own_model, stdin=b"hello\n"), name)


def test_damaged_checkpoint(transduce: CommandLine, own_run: Path) -> None:
    newest = sorted((own_run / "checkpoints").iterdir())[-1]
    content = (newest / "model.safetensors").read_bytes()
    (newest / "model.safetensors").write_bytes(content[:100] + b"?" + content[101:])
    refused(transduce("average", own_run), newest / "model.safetensors")
    resumed = transduce("train", "--resume", "--out", own_run, "--set", "training.max_updates=40", "--device", "cpu")
    assert resumed.code == 0
    assert says(resumed.err, re.compile("^warning: "), "update-00000030")
    assert says(resumed.err, "update-00000020")


def test_an_average_without_one_that_belongs_to_it_is_refused(transduce: CommandLine, own_run: Path) -> None:
    (own_run / "checkpoints" / "update-00000030" / "state.json").write_text("{}")
    refused(transduce("average", own_run), "update-00000030", "state.json")


def test_no_checkpoint_is_complete(transduce: CommandLine, own_run: Path) -> None:
    for path in (own_run / "checkpoints").iterdir():
        (path / "state.json").unlink()
    resumed = transduce("train", "--resume", "--out", own_run, "--device", "cpu")
    assert resumed.code == 1
    *warnings, error = (line for line in resumed.err.splitlines() if line.startswith(("warning: ", "error: ")))
    for line, name in zip(warnings, ("update-00000030", "update-00000020"), strict=True):
        assert says(line, re.compile("^warning: "), name)
    assert says(error, re.compile("^error: "), own_run / "checkpoints")
    assert transduce("average", own_run).code == 1


@pytest.mark.parametrize("value", ["skip", "skip:", "skip:-1", "skip:x", "go", "skip:²"])
def test_what_to_do_with_numbers_that_are_none(transduce: CommandLine, micro_recipe: Path, value: str) -> None:
    refused(transduce("train", micro_recipe, "--on-nan", value), "--on-nan", "stop", "skip:N")


def test_unknown_verbs_and_flags(transduce: CommandLine) -> None:
    refused(transduce("transalte"), "transalte", code=2)
    refused(transduce("score", "--reff", "x", "y"), "--reff", code=2)
    refused(transduce("score"), "HYP", "transduce score --help", code=2)
    refused(transduce("corpus", "fetch"), "fetch", code=2)
    refused(transduce("translate"), "MODEL", "transduce translate --help", code=2)


def test_what_is_no_recipe(transduce: CommandLine, own_run: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.en"
    text.write_text("The dog sleeps.\n")
    refused(transduce("train", text), "text.en", "TOML", "train --list")
    refused(transduce("train", own_run), f"train --resume --out {own_run}")
    refused(transduce("prepare", tmp_path, "--out", tmp_path / "x"), tmp_path, "folder")
    refused(transduce("train", "tiny"), 'preset = "tiny"')


def test_bad_values(transduce: CommandLine, micro_model: Path, micro_run: Path, tmp_path: Path) -> None:
    refused(transduce("translate", micro_model, "--beam", 0), "--beam")
    refused(transduce("translate", micro_model, "--beam", "four"), "--beam")
    refused(transduce("translate", micro_model, "--n-best", 5, "--beam", 2), "n_best", "beam_size", 5, 2)
    refused(transduce("translate", micro_model, "--device", "gpu7"), "gpu7")
    refused(transduce("model", "bse"), "bse", "base")
    refused(transduce("average", micro_run, "--last", 0, "--out", tmp_path / "m"), "--last")
    refused(transduce("corpus", "get", "gramar", "--out", tmp_path / "c"), "gramar")
    refused(transduce("train"), "recipe")


def test_options_that_make_no_sense(transduce: CommandLine, micro_recipe: Path, tmp_path: Path) -> None:
    for minutes in (0, -1, "nan", "inf"):
        for verb in (["train", micro_recipe], ["demo"]):
            outcome = transduce(*verb, "--minutes", minutes, "--out", tmp_path / "x")
            refused(outcome, "'--minutes'", 0, minutes)
    for corpus in ("a b", "data/multi30k", ""):
        refused(transduce("demo", "--corpus", corpus), "--corpus", "multi30k", repr(corpus))
    refused(transduce("corpus", "get", "multi30k", "--pairs", 5, "--out", tmp_path), "--pairs", "multi30k")
    refused(transduce("corpus", "get", "tatoeba", "--seed", 0, "--out", tmp_path), "--seed", "tatoeba")
    grammar = ["corpus", "get", "grammar", "--out", tmp_path / "x"]
    refused(transduce(*grammar, "--from", tmp_path), "--from", "grammar")
    refused(transduce(*grammar, "--direction", "en-de"), "--direction", "grammar", "--direction en-de")
    refused(transduce("corpus", "list", "--data", tmp_path / "no"), "--data", tmp_path / "no")
    assert list(tmp_path.iterdir()) == []


def test_the_language_of_a_score(transduce: CommandLine, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("one two three four\n")
    for language in ("German", "d", "de-austria", ""):
        refused(transduce("score", "--ref", text, text, "--language", language), "--language", repr(language))
    unknown = transduce("score", "--ref", text, text, "--language", "xx", "--multi30k-bleu")
    assert unknown.code == 0
    assert says(unknown.err, re.compile("^warning: "), "sacremoses", "xx", "multi30k_bleu", "English")
    assert "warning" not in transduce("score", "--ref", text, text, "--language", "xx").err
    assert "warning" not in transduce("score", "--ref", text, text, "--language", "fr", "--multi30k-bleu").err


def test_translations_that_could_not_be_written(transduce: CommandLine, tmp_path: Path) -> None:
    """The error comes before the model is loaded: there is none here."""
    text = tmp_path / "text"
    text.write_text("one\n")
    arguments = ["evaluate", tmp_path / "no model", "--src", text, "--ref", text, "--out"]
    refused(transduce(*arguments, tmp_path), f"--out {tmp_path}", "Is a directory")
    refused(transduce(*arguments, text / "hyp"), f"--out {text / 'hyp'}")
    refused(transduce(*arguments, tmp_path / "hyp"), tmp_path / "no model")
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


def test_files_that_do_not_align(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    src, tgt = tmp_path / "a.en", tmp_path / "a.de"
    src.write_text("one\ntwo\nthree\n")
    tgt.write_text("eins\nzwei\n")
    refused(transduce("score", "--ref", src, tgt), tgt, 2, src, 3)
    refused(transduce("score", "--ref", src, src, "--against", tgt), tgt, 2, src, 3)
    refused(transduce("evaluate", micro_model, "--src", src, "--ref", tgt), tgt, 2, src, 3)
    recipe = tmp_path / "r.toml"
    recipe.write_text(f'[data]\ncorpus = "files"\ntrain_src = "{src}"\ntrain_tgt = "{tgt}"\n')
    refused(transduce("prepare", recipe, "--out", tmp_path / "s"), tgt, 2, src, 3)
    assert not (tmp_path / "s").exists()


def test_text_that_cannot_be_used(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    empty, binary, broken = tmp_path / "empty", tmp_path / "binary", tmp_path / "broken.gz"
    empty.write_text("")
    binary.write_bytes(b"fine\n\xff\xfe\n")
    broken.write_bytes(gzip.compress(b"some text\n" * 100)[:30])
    refused(transduce("score", "--ref", empty, empty), 0, 0)
    refused(transduce("score", "--ref", binary, binary), f"{binary}:2", "UTF-8", "0xff")
    refused(transduce("score", "--ref", broken, broken), "broken.gz")
    refused(transduce("evaluate", micro_model, "--src", empty, "--ref", empty), 0, 0)
    recipe = tmp_path / "r.toml"
    recipe.write_text(f'[data]\ncorpus = "files"\ntrain_src = "{empty}"\ntrain_tgt = "{empty}"\n')
    refused(transduce("prepare", recipe, "--out", tmp_path / "s"), "training", "0 pairs")
    recipe.write_text('[data]\ncorpus = "files"\n')
    refused(transduce("prepare", recipe, "--out", tmp_path / "s"), "train_src")


def test_an_existing_run_is_not_overwritten(transduce: CommandLine, micro_recipe: Path, own_run: Path) -> None:
    before = {path: path.read_bytes() for path in own_run.rglob("*") if path.is_file()}
    refused(transduce("train", micro_recipe, "--out", own_run), "--resume")
    changed = ["--set", "model.d_ff=64"]
    refused(transduce("train", micro_recipe, "--out", own_run, "--resume", *changed), "model.d_ff = 48", 64)
    assert {path: path.read_bytes() for path in own_run.rglob("*") if path.is_file()} == before
    refused(transduce("train", "--resume"), "--resume", "--out")


def test_there_is_nothing_to_resume(transduce: CommandLine, micro_recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "mine"
    told = run, "run.json", f"transduce train RECIPE --out {run}"
    refused(transduce("train", "--resume", "--out", run), *told)
    refused(transduce("train", micro_recipe, "--resume", "--out", run, "--device", "cpu"), *told)
    assert list(tmp_path.iterdir()) == []
    # Killed during preparation: the leftovers are not a run yet, and do not prevent one.
    (run / ".store.999999999.tmp").mkdir(parents=True)
    (run / "lock.json").write_text("")
    refused(transduce("train", micro_recipe, "--resume", "--out", run, "--device", "cpu"), *told)
    short = ["--set", "training.max_updates=1", "--set", "search.beam_size=1"]
    assert transduce("train", micro_recipe, "--out", run, "--device", "cpu", *short).code == 0


def test_a_start_that_fails_leaves_nothing_behind(
    transduce: CommandLine, micro_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    (place / "before").mkdir(parents=True)
    monkeypatch.chdir(place)
    missing = ["--set", "data.corpus=files", "--set", "data.train_tsv=no.tsv"]
    for out in ("runs/x", "before", "before/runs/x"):
        for arguments in (
            ["train", micro_recipe, *missing, "--out", out],
            ["train", micro_recipe, "--device", "cuda:99", "--out", out],
            ["train", micro_recipe, "--store", "no", "--out", out],
            ["train", micro_recipe, "--set", "data.vocab_size=300", "--set", "data.corpus=nowhere", "--out", out],
            ["prepare", micro_recipe, *missing, "--out", out],
            ["demo", *missing, "--out", out],
            ["corpus", "get", "grammar", "--pairs", 0, "--out", out],
        ):
            assert transduce(*arguments).code == 1
            assert [path.name for path in place.rglob("*")] == ["before"], arguments
    assert transduce("train", micro_recipe, *missing).code == 1
    assert transduce("demo", *missing).code == 1
    assert transduce("average", "before", "--out", "models/x").code == 1
    assert [path.name for path in place.rglob("*")] == ["before"]


def test_a_missing_file_says_where_it_was_looked_for(
    transduce: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipes, here = tmp_path / "recipes", tmp_path / "here"
    recipes.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)
    (recipes / "r.toml").write_text('[data]\ncorpus = "files"\ntrain_src = "a.en"\ntrain_tgt = "a.de"\n')
    told = "a.en", "No such file or directory", here
    for verb in ("prepare", "train"):
        outcome = transduce(verb, recipes / "r.toml", "--out", "out")
        refused(outcome, *told)
        assert str(recipes / "a.en") not in outcome.err
        (recipes / "a.en").write_text("a\n")
        refused(transduce(verb, recipes / "r.toml", "--out", "out"), *told, recipes / "a.en")
        (recipes / "a.en").unlink()
    refused(
        transduce("score", "--ref", "a.en", "a.en"),
        "a.en",
        "No such file or directory",
        here,
    )
    refused(transduce("train", "no.toml"), "no.toml", "No such file or directory", here)
    absolute = transduce("score", "--ref", here / "a.en", "a.en")
    refused(absolute, here / "a.en", "No such file or directory")
    assert absolute.err.count(str(here)) == 1  # the only place that was searched


def test_a_folder_of_somebody_else_is_not_touched(transduce: CommandLine, micro_recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    refused(transduce("train", micro_recipe, "--out", tmp_path / "mine"), tmp_path / "mine", "empty")
    refused(transduce("prepare", micro_recipe, "--out", tmp_path / "mine"), tmp_path / "mine", "exists")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]


def test_a_choice_that_there_is_not(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    outcome = transduce("export", micro_model, "--to", "foo", "--out", tmp_path / "x")
    refused(outcome, "--to", "'foo'", "'hf'")
    assert "Value error" not in outcome.err
