"""Mistakes of users: one clear line on stderr, no traceback, exit 1 for a bad value, 2 for an unknown verb or flag."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.reliability

CommandLine = Callable[..., Any]


def refused(outcome: Any, *words: str, code: int = 1) -> None:
    errors = [line for line in outcome.err.splitlines() if line.startswith("error: ")]
    assert outcome.code == code, outcome
    assert len(errors) == 1, outcome.err
    for word in words:
        assert word in errors[0]


def test_missing_files(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.write_text("a\n")
    refused(transduce("score", "--ref", tmp_path / "no", here), str(tmp_path / "no"), "No such file")
    refused(transduce("train", tmp_path / "no.toml"), "no.toml", "No such file")
    refused(transduce("translate", tmp_path / "no"), "is not a folder")
    refused(transduce("evaluate", micro_model, "--src", here, "--ref", tmp_path / "no"), "No such file")
    refused(transduce("average", tmp_path / "no"), "holds no run", "run.json")
    refused(transduce("score", "--ref", tmp_path, here), "Is a directory")


def test_unknown_config_key_names_the_nearest(transduce: CommandLine, tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text("[training]\nmax_update = 3\n")
    refused(transduce("train", recipe, "--out", tmp_path / "x"), "training.max_update", "did you mean max_updates?")
    recipe.write_text("[trainig]\nmax_updates = 3\n")
    refused(transduce("train", recipe, "--out", tmp_path / "x"), "did you mean training?")
    recipe.write_text('preset = "bas"\n')
    refused(transduce("train", recipe, "--out", tmp_path / "x"), "did you mean base?")
    recipe.write_text("[training\n")
    refused(transduce("train", recipe, "--out", tmp_path / "x"), "not valid TOML")
    recipe.write_bytes(b"\xff\xfe")
    refused(transduce("train", recipe, "--out", tmp_path / "x"), "not UTF-8")
    recipe.write_text('preset = "tiny"\n')
    refused(transduce("train", recipe, "--set", "training.max_updates"), "expected table.key=value")
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
    refused(transduce("average", own_run), "model.safetensors", "corrupt")
    resumed = transduce("train", "--resume", "--out", own_run, "--set", "training.max_updates=40", "--device", "cpu")
    assert resumed.code == 0
    assert "warning: passed over update-00000030: " in resumed.err
    assert "resumed from update-00000020" in resumed.err


def test_an_average_without_one_that_belongs_to_it_is_refused(transduce: CommandLine, own_run: Path) -> None:
    (own_run / "checkpoints" / "update-00000030" / "state.json").write_text("{}")
    refused(transduce("average", own_run), "update-00000030", "state.json")


def test_no_checkpoint_is_complete(transduce: CommandLine, own_run: Path) -> None:
    for path in (own_run / "checkpoints").iterdir():
        (path / "state.json").unlink()
    resumed = transduce("train", "--resume", "--out", own_run, "--device", "cpu")
    assert resumed.code == 1
    assert resumed.err.count("warning: passed over") == 2
    assert resumed.err.splitlines()[-1].startswith("error: no checkpoint in ")
    assert transduce("average", own_run).code == 1


@pytest.mark.parametrize("value", ["skip", "skip:", "skip:-1", "skip:x", "go", "skip:²"])
def test_what_to_do_with_numbers_that_are_none(transduce: CommandLine, micro_recipe: Path, value: str) -> None:
    refused(transduce("train", micro_recipe, "--on-nan", value), "--on-nan should be stop, or skip:N")


def test_unknown_verbs_and_flags(transduce: CommandLine) -> None:
    refused(transduce("transalte"), "transalte", code=2)
    refused(transduce("score", "--reff", "x", "y"), "--reff", code=2)
    refused(transduce("score"), "Missing", code=2)
    refused(transduce("corpus", "fetch"), "fetch", code=2)
    refused(transduce("translate"), "Missing argument 'MODEL'. See: transduce translate --help", code=2)


def test_what_is_no_recipe(transduce: CommandLine, own_run: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.en"
    text.write_text("The dog sleeps.\n")
    refused(transduce("train", text), "text.en is not valid TOML", "a recipe is a file as those in recipes/*.toml")
    refused(transduce("train", own_run), f"it is a folder; to go on with the run in it: train --resume --out {own_run}")
    refused(
        transduce("prepare", tmp_path, "--out", tmp_path / "x"), f"recipe {tmp_path} cannot be read: it is a folder"
    )
    refused(transduce("train", "tiny"), 'tiny is a preset, which a recipe names: preset = "tiny"')


def test_bad_values(transduce: CommandLine, micro_model: Path, micro_run: Path, tmp_path: Path) -> None:
    refused(transduce("translate", micro_model, "--beam", 0), "--beam")
    refused(transduce("translate", micro_model, "--beam", "four"), "--beam")
    refused(transduce("translate", micro_model, "--n-best", 5, "--beam", 2), "n_best must be at most beam_size")
    refused(transduce("translate", micro_model, "--device", "gpu7"), "device gpu7 cannot be used")
    refused(transduce("model", "bse"), "did you mean base?")
    refused(transduce("average", micro_run, "--last", 0, "--out", tmp_path / "m"), "--last")
    refused(transduce("corpus", "get", "gramar", "--out", tmp_path / "c"), "gramar")
    refused(transduce("train"), "name a recipe")


def test_options_that_make_no_sense(transduce: CommandLine, micro_recipe: Path, tmp_path: Path) -> None:
    for minutes in (0, -1, "nan", "inf"):
        for verb in (["train", micro_recipe], ["demo"]):
            outcome = transduce(*verb, "--minutes", minutes, "--out", tmp_path / "x")
            refused(outcome, f"'--minutes': should be more than 0, got {minutes}")
    for corpus in ("a b", "data/multi30k", ""):
        refused(transduce("demo", "--corpus", corpus), "--corpus: ", f"as in multi30k, got {corpus!r}")
    refused(
        transduce("corpus", "get", "multi30k", "--pairs", 5, "--out", tmp_path), "--pairs does not go with multi30k"
    )
    refused(transduce("corpus", "get", "tatoeba", "--seed", 0, "--out", tmp_path), "--seed does not go with tatoeba")
    grammar = ["corpus", "get", "grammar", "--out", tmp_path / "x"]
    refused(transduce(*grammar, "--from", tmp_path), "--from does not go with grammar")
    refused(transduce(*grammar, "--direction", "en-de"), "--direction does not go with grammar, got --direction en-de")
    refused(transduce("corpus", "list", "--data", tmp_path / "no"), f"--data names {tmp_path / 'no'}, which is not")
    assert list(tmp_path.iterdir()) == []


def test_the_language_of_a_score(transduce: CommandLine, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("one two three four\n")
    for language in ("German", "d", "de-AT", ""):
        refused(transduce("score", "--ref", text, text, "--language", language), "--language", f"got {language!r}")
    unknown = transduce("score", "--ref", text, text, "--language", "xx", "--multi30k-bleu")
    assert unknown.code == 0
    assert "warning: sacremoses has no rules for xx; multi30k_bleu by those for English" in unknown.err
    assert "warning" not in transduce("score", "--ref", text, text, "--language", "xx").err
    assert "warning" not in transduce("score", "--ref", text, text, "--language", "fr", "--multi30k-bleu").err


def test_translations_that_could_not_be_written(transduce: CommandLine, tmp_path: Path) -> None:
    """It is found out before the model is even read: there is none here."""
    text = tmp_path / "text"
    text.write_text("one\n")
    arguments = ["evaluate", tmp_path / "no model", "--src", text, "--ref", text, "--out"]
    refused(transduce(*arguments, tmp_path), f"--out {tmp_path} cannot be written: Is a directory")
    refused(transduce(*arguments, text / "hyp"), f"--out {text / 'hyp'} cannot be written: ")
    refused(transduce(*arguments, tmp_path / "hyp"), "no model is not a folder")
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


def test_files_that_do_not_align(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    src, tgt = tmp_path / "a.en", tmp_path / "a.de"
    src.write_text("one\ntwo\nthree\n")
    tgt.write_text("eins\nzwei\n")
    refused(transduce("score", "--ref", src, tgt), f"{tgt} has 2 lines, {src} 3; ")
    refused(transduce("score", "--ref", src, src, "--against", tgt), f"{tgt} has 2 lines, {src} 3; ")
    refused(transduce("evaluate", micro_model, "--src", src, "--ref", tgt), f"{tgt} has 2 lines, {src} 3; ")
    recipe = tmp_path / "r.toml"
    recipe.write_text(f'[data]\ncorpus = "files"\ntrain_src = "{src}"\ntrain_tgt = "{tgt}"\n')
    refused(transduce("prepare", recipe, "--out", tmp_path / "s"), f"{tgt} has 2 lines, {src} 3")
    assert not (tmp_path / "s").exists()


def test_text_that_cannot_be_used(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    empty, binary, broken = tmp_path / "empty", tmp_path / "binary", tmp_path / "broken.gz"
    empty.write_text("")
    binary.write_bytes(b"fine\n\xff\xfe\n")
    broken.write_bytes(gzip.compress(b"some text\n" * 100)[:30])
    refused(transduce("score", "--ref", empty, empty), "at least one pair")
    refused(transduce("score", "--ref", binary, binary), f"{binary}:2", "not UTF-8", "0xff")
    refused(transduce("score", "--ref", broken, broken), "broken.gz")
    refused(transduce("evaluate", micro_model, "--src", empty, "--ref", empty), "at least one pair")
    recipe = tmp_path / "r.toml"
    recipe.write_text(f'[data]\ncorpus = "files"\ntrain_src = "{empty}"\ntrain_tgt = "{empty}"\n')
    refused(transduce("prepare", recipe, "--out", tmp_path / "s"), "no training pair can be used", "read 0 pairs")
    recipe.write_text('[data]\ncorpus = "files"\n')
    refused(transduce("prepare", recipe, "--out", tmp_path / "s"), "train_src")


def test_an_existing_run_is_not_overwritten(transduce: CommandLine, micro_recipe: Path, own_run: Path) -> None:
    before = {path: path.read_bytes() for path in own_run.rglob("*") if path.is_file()}
    refused(transduce("train", micro_recipe, "--out", own_run), "--resume")
    changed = ["--set", "model.d_ff=64"]
    refused(transduce("train", micro_recipe, "--out", own_run, "--resume", *changed), "model.d_ff = 48", "64")
    assert {path: path.read_bytes() for path in own_run.rglob("*") if path.is_file()} == before
    refused(transduce("train", "--resume"), "--resume goes on with the run in --out; name it")


def test_there_is_nothing_to_resume(transduce: CommandLine, micro_recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "mine"
    told = f"{run} holds no run to go on with (there is no run.json); begin it without --resume: "
    refused(transduce("train", "--resume", "--out", run), told)
    refused(transduce("train", micro_recipe, "--resume", "--out", run, "--device", "cpu"), told)
    assert list(tmp_path.iterdir()) == []
    # Killed while it prepared the text: what is left is no run yet, and does not stand in the way of one.
    (run / ".store.999999999.tmp").mkdir(parents=True)
    (run / "lock.json").write_text("")
    refused(transduce("train", micro_recipe, "--resume", "--out", run, "--device", "cpu"), told)
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
    told = f"a.en cannot be read: No such file or directory (looked in {here}; paths in a recipe are relative to where"
    for verb in ("prepare", "train"):
        outcome = transduce(verb, recipes / "r.toml", "--out", "out")
        refused(outcome, told)
        assert "there is" not in outcome.err
        (recipes / "a.en").write_text("a\n")
        refused(transduce(verb, recipes / "r.toml", "--out", "out"), told, f"; there is {recipes / 'a.en'}: name that")
        (recipes / "a.en").unlink()
    refused(
        transduce("score", "--ref", "a.en", "a.en"),
        f"a.en cannot be read: No such file or directory (looked in {here})",
    )
    refused(
        transduce("train", "no.toml"), f"recipe no.toml cannot be read: No such file or directory (looked in {here})"
    )
    absolute = transduce("score", "--ref", here / "a.en", "a.en")
    refused(absolute, f"{here / 'a.en'} cannot be read: No such file or directory")
    assert "looked in" not in absolute.err


def test_a_folder_of_somebody_else_is_not_touched(transduce: CommandLine, micro_recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    refused(transduce("train", micro_recipe, "--out", tmp_path / "mine"), "not empty")
    refused(transduce("prepare", micro_recipe, "--out", tmp_path / "mine"), "exists already")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]
