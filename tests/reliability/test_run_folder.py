"""Run folders changed by others: nothing is written through links, lost, or mistaken for something else."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import transduce.data.arrays as arrays_module
from commands import CommandLine
from edits import Edit, edit_json
from said import naming, says
from transduce.config import RunConfig
from transduce.diagnostics import examine
from transduce.errors import CheckpointError, DataError, TrainingError
from transduce.files import write_manifest
from transduce.model.weights_file import read_tensors, write_tensors
from transduce.recipes import read_recipe
from transduce.runs import average_run, read_run_config, train
from transduce.training import UpdateRecord, average_weights, checkpoint_folders, read_state

pytestmark = [pytest.mark.reliability, pytest.mark.merge]


def problems(folder: Path) -> list[str]:
    return [f"{found.subject}: {found.message}" for found in examine([str(folder)]) if found.status == "problem"]


def resume(folder: Path, max_updates: int = 31, **options: Any) -> list[str]:
    """Resume a run; return its log lines."""
    told: list[str] = []
    config = read_run_config(folder)
    longer = config.training.model_copy(update={"max_updates": max_updates, "validation_bleu": False})
    train(config.model_copy(update={"training": longer}), folder, resume=True, log=told.append, **options)
    return told


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# links, pipes and folders instead of files


KINDS: dict[str, Callable[[Path, Path], object]] = {
    "link": lambda path, target: path.symlink_to(target),
    "dangling link": lambda path, target: path.symlink_to(target.with_name("nowhere")),
    "pipe": lambda path, target: os.mkfifo(path),
    "folder": lambda path, target: path.mkdir(),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["lock.json", "metrics.jsonl", "run.json", "prepared_at.json"])
def test_a_run_does_not_go_on_through_what_is_no_file(
    transduce: CommandLine, own_run: Path, tmp_path: Path, name: str, kind: str
) -> None:
    precious = tmp_path / "precious"
    precious.write_text('{"kind": "update", "update": 40}\n')
    (own_run / name).unlink(missing_ok=True)
    KINDS[kind](own_run / name, precious)
    before = everything_in(own_run / "checkpoints")
    outcome = transduce("train", "--resume", "--out", own_run, "--set", "training.max_updates=31", "--device", "cpu")
    assert outcome.code == 1
    assert outcome.err.count("error: ") == 1
    assert says(outcome.err, re.compile("^error: "), own_run / name, kind.split()[-1])
    assert precious.read_text() == '{"kind": "update", "update": 40}\n'
    assert not (tmp_path / "nowhere").exists()
    assert everything_in(own_run / "checkpoints") == before
    assert [found for found in problems(own_run) if name in found]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["lock.json", "metrics.jsonl", "prepared_at.json", ".run.json.7.tmp"])
def test_a_run_does_not_begin_through_what_is_no_file(
    transduce: CommandLine, micro_recipe: Path, tmp_path: Path, name: str, kind: str
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "run").mkdir()
    KINDS[kind](tmp_path / "run" / name, precious)
    if name.startswith("."):  # only a leftover
        assert train(read_recipe(micro_recipe), tmp_path / "run", should_stop=lambda: True).reason == "interrupted"
    else:
        outcome = transduce("train", micro_recipe, "--out", tmp_path / "run", "--device", "cpu")
        assert outcome.code == 1
        assert outcome.err.count("error: ") == 1
    assert precious.read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json", "manifest.json"])
def test_a_checkpoint_with_a_link_in_it_is_passed_over(own_run: Path, tmp_path: Path, name: str) -> None:
    path = own_run / "checkpoints" / "update-00000030" / name
    path.rename(tmp_path / name)
    path.symlink_to(tmp_path / name)
    told = resume(own_run, should_stop=lambda: True)
    [line] = [line for line in told if says(line, re.compile("^warning: "), "update-00000030")]
    assert says(line, name, "link")
    assert any(says(line, "update-00000020") for line in told)


def test_a_link_in_the_place_of_a_checkpoint_is_not_replaced_nor_gone_on_from(own_run: Path, tmp_path: Path) -> None:
    newest = own_run / "checkpoints" / "update-00000030"
    newest.rename(tmp_path / "elsewhere")
    newest.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("precious")
    (own_run / "checkpoints" / "update-00000031").symlink_to(tmp_path / "precious")
    elsewhere = everything_in(tmp_path / "elsewhere")
    links = [found for found in problems(own_run) if says(found, "link")]
    assert [re.findall(r"update-\d+", found)[0] for found in links] == ["update-00000030", "update-00000031"]
    with pytest.raises(CheckpointError, match=naming("update-00000030", "link")):
        average_run(own_run, last=2)
    told = resume(own_run)
    assert any(says(line, "update-00000020") for line in told)
    for name in ("update-00000030", "update-00000031"):
        assert any(says(line, re.compile("^warning: "), name) for line in told)
    assert everything_in(tmp_path / "precious") == {"thesis.txt": b"precious"}
    assert everything_in(tmp_path / "elsewhere") == elsewhere
    assert not (own_run / "checkpoints" / "update-00000031").is_symlink()


@pytest.mark.slow
def test_folders_may_be_links_to_a_larger_disk(own_run: Path, micro_run: Path, tmp_path: Path) -> None:
    for name in ("checkpoints", "store", "tensorboard", "model"):
        (own_run / name).rename(tmp_path / f"large-{name}")
        (own_run / name).symlink_to(tmp_path / f"large-{name}")
    other = Path(shutil.copytree(micro_run, tmp_path / "other"))
    (tmp_path / "linked").symlink_to(own_run)
    resume(tmp_path / "linked")
    resume(other)
    assert (own_run / "model").is_symlink()
    for name in ("checkpoints/update-00000031/model.safetensors", "model/model.safetensors"):
        assert (own_run / name).read_bytes() == (other / name).read_bytes()
    assert problems(own_run) == []


@pytest.mark.slow
def test_a_folder_for_checkpoints_may_be_made_before_the_run(micro_recipe: Path, tmp_path: Path) -> None:
    run, disk = tmp_path / "run", tmp_path / "disk"
    run.mkdir()
    disk.mkdir()
    (run / "checkpoints").symlink_to(disk)
    (run / "model").mkdir()
    train(read_recipe(micro_recipe, ["training.max_updates=2"]), run)
    assert [path.name for path in disk.glob("update-*")] == ["update-00000002"]
    (tmp_path / "other" / "checkpoints" / "mine").mkdir(parents=True)
    with pytest.raises(TrainingError, match=naming(tmp_path / "other", "no run")):
        train(read_recipe(micro_recipe), tmp_path / "other")


@pytest.mark.parametrize("name", ["checkpoints", "store", "tensorboard", "model", "not-finite"])
def test_links_that_lead_nowhere_are_no_folders(own_run: Path, tmp_path: Path, name: str) -> None:
    if (own_run / name).exists():
        (own_run / name).rename(tmp_path / "away")
    (own_run / name).symlink_to(tmp_path / "nowhere")
    with pytest.raises((TrainingError, CheckpointError), match=naming(own_run / name, "link")):
        resume(own_run)
    assert not (tmp_path / "nowhere").exists()
    assert [found for found in problems(own_run) if says(found, own_run, name, "link")]


def test_folders_of_others_are_not_written(own_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own_run / "model").rename(tmp_path / "theirs")
    (own_run / "model").symlink_to(tmp_path / "theirs")
    monkeypatch.setattr(os, "geteuid", lambda: (tmp_path / "theirs").stat().st_uid + 1)
    with pytest.raises(TrainingError, match=naming(own_run / "model", tmp_path / "theirs")):
        resume(own_run)


# the settings that the run was started with


def set_lr_factor(values: dict[str, Any]) -> None:
    values["config"]["training"]["lr_factor"] = 7.0


@pytest.mark.parametrize(
    ("edit", "facts", "of_checkpoint"),
    [
        (set_lr_factor, ["training.lr_factor", "7.0"], ["update-00000030", "1.0"]),
        (lambda values: values["config"]["training"].update(seed=2), ["training.seed", 2], ["update-00000030", 1]),
        (
            lambda values: values["config"]["search"].update(beam_size=1),
            ["search.beam_size", 1],
            ["update-00000030", 4],
        ),
        (
            lambda values: values.update(data_fingerprint="0" * 64),
            ["data_fingerprint", f"'{'0' * 12}'"],
            ["update-00000030", re.compile("'[0-9a-f]{12}'")],
        ),
        (lambda values: values["config"]["training"].pop("lr_factor"), ["fields", "training.lr_factor"], []),
        (lambda values: values["config"].pop("search"), ["fields", "search.kind"], []),
        (lambda values: values.pop("config"), ["'config'"], []),
        (lambda values: values.pop("data_fingerprint"), ["data_fingerprint", None], []),
    ],
)
def test_a_changed_run_file_is_told_by_field_and_can_be_written_again(
    own_run: Path, edit: Edit, facts: list[object], of_checkpoint: list[object]
) -> None:
    path = own_run / "run.json"
    before = path.read_text()
    config = read_run_config(own_run)
    edit_json(path, edit)
    changed = path.read_text()
    way_out = "--resume", "update-00000030"
    with pytest.raises(CheckpointError, match=naming(path, *facts, *{*of_checkpoint, *way_out})):
        train(config, own_run, resume=True)
    with pytest.raises(CheckpointError, match=naming(path, *facts, *of_checkpoint)):
        average_run(own_run, last=2)
    assert path.read_text() == changed
    assert [found for found in problems(own_run) if says(found, *facts)]
    path.unlink()
    train(config, own_run, resume=True, should_stop=lambda: True)
    assert path.read_text() == before


def test_what_may_change_while_a_run_lasts_may_be_changed_there(own_run: Path) -> None:
    edit_json(own_run / "run.json", lambda values: values["config"]["training"].update(keep_checkpoints=3, patience=9))
    assert problems(own_run) == []
    resume(own_run, should_stop=lambda: True)


def test_the_length_is_fixed_where_the_learning_rate_knows_it(micro_recipe: Path, tmp_path: Path) -> None:
    settings = ["training.decay=linear", "training.validation_bleu=false", "training.max_updates=2"]
    train(read_recipe(micro_recipe, settings), tmp_path / "run", should_stop=asked_after(1))
    edit_json(tmp_path / "run" / "run.json", lambda values: values["config"]["training"].update(max_updates=4))
    with pytest.raises(CheckpointError, match=naming("run.json", "training.max_updates", 4, "update-00000001", 2)):
        train(read_run_config(tmp_path / "run"), tmp_path / "run", resume=True)


def asked_after(n_questions: int) -> Callable[[], bool]:
    """Return whether to stop: False for the first calls."""
    questions = iter([False] * n_questions)
    return lambda: next(questions, True)


def test_a_run_whose_file_is_gone_goes_on(transduce: CommandLine, own_run: Path, micro_run: Path) -> None:
    (own_run / "run.json").unlink()
    [found] = problems(own_run)
    assert says(found, own_run / "run.json", "transduce train --resume")
    config = read_run_config(own_run)
    assert config == read_run_config(micro_run)
    with pytest.raises(TrainingError, match=naming(own_run, "--resume")):
        train(config, own_run)
    outcome = transduce("train", "--resume", "--out", own_run, "--set", "training.max_updates=31", "--device", "cpu")
    assert outcome.code == 0
    assert says(outcome.err, re.compile("^warning: "), "run.json", "update-00000030")
    expected = json.loads((micro_run / "run.json").read_text())
    expected["config"]["training"]["max_updates"] = 31
    assert json.loads((own_run / "run.json").read_text()) == expected
    assert problems(own_run) == []


@pytest.mark.parametrize(
    "change", [*(pytest.param(each, marks=pytest.mark.slow) for each in ("removed", "edited")), "a link", "a folder"]
)
def test_a_file_that_changes_while_the_run_goes_on_costs_nothing(
    micro_recipe: Path, micro_run: Path, tmp_path: Path, change: str
) -> None:
    path, precious = tmp_path / "run" / "run.json", tmp_path / "precious"
    precious.write_text("precious")

    def at_the_fifth(record: object) -> None:
        if isinstance(record, UpdateRecord) and record.update == 5:
            if change == "edited":
                edit_json(path, set_lr_factor)
                return
            path.unlink()
            if change == "a link":
                path.symlink_to(precious)
            if change == "a folder":
                path.mkdir()

    told: list[str] = []
    result = train(read_recipe(micro_recipe), tmp_path / "run", listeners=[at_the_fifth], log=told.append)
    assert result.model_folder is not None
    warnings = [line for line in told if line.startswith("warning: ") and str(path) in line]
    assert says(warnings[0], path)
    assert precious.read_text() == "precious"
    if change == "a folder":
        assert says(warnings[0], "Is a directory", "checkpoints")
    else:
        assert len(warnings) == 1
        assert path.read_bytes() == (micro_run / "run.json").read_bytes()
    ours, theirs = (folder / "model" / "model.safetensors" for folder in (tmp_path / "run", micro_run))
    assert ours.read_bytes() == theirs.read_bytes()


def as_of_an_earlier_version(run: Path) -> None:
    """Checkpoints without a copy of ``run.json``, which does not count its fields and has one less."""
    for path in checkpoint_folders(run / "checkpoints"):
        edit_json(path / "state.json", lambda values: values.pop("begun_with"))
        write_manifest(path)
    edit_json(run / "run.json", lambda values: values.pop("n_fields"))
    edit_json(run / "run.json", lambda values: values["config"]["training"].pop("bidirectional_epochs"))


def test_a_run_of_an_earlier_version_goes_on_and_says_so_once(own_run: Path, micro_run: Path, tmp_path: Path) -> None:
    as_of_an_earlier_version(own_run)
    assert problems(own_run) == []
    notes = [found.message for found in examine([str(own_run)]) if found.status == "note"]
    assert [note for note in notes if says(note, 2, "checkpoints", "earlier version")]
    average_run(own_run, last=2)
    warnings = [line for line in resume(own_run) if line.startswith("warning: ") and "max_extra" not in line]
    assert len(warnings) == 1
    assert says(warnings[0], "update-00000030", "earlier version", "run.json")
    assert [line for line in resume(own_run, max_updates=32) if says(line, "earlier version")] == []
    other = Path(shutil.copytree(micro_run, tmp_path / "other"))
    resume(other, max_updates=32)
    ours, theirs = (run / "checkpoints" / "update-00000032" / "model.safetensors" for run in (own_run, other))
    assert ours.read_bytes() == theirs.read_bytes()


def test_a_run_of_an_earlier_version_whose_file_is_gone_is_told(own_run: Path, micro_recipe: Path) -> None:
    as_of_an_earlier_version(own_run)
    (own_run / "run.json").unlink()
    for resumes in (True, False):
        with pytest.raises(TrainingError, match=naming(own_run, "run.json", "checkpoints")):
            train(read_recipe(micro_recipe), own_run, resume=resumes)


# checkpoints


def test_a_copy_of_a_checkpoint_is_not_taken_for_another(own_run: Path, micro_run: Path, tmp_path: Path) -> None:
    checkpoints = own_run / "checkpoints"
    shutil.copytree(checkpoints / "update-00000020", checkpoints / "update-00000025")
    shutil.copytree(checkpoints / "update-00000020", checkpoints / "update-00000090")
    copies = [found for found in problems(own_run) if says(found, "copy", 20)]
    assert [re.findall(r"update-\d+", found)[0] for found in copies] == ["update-00000025", "update-00000090"]
    with pytest.raises(CheckpointError, match=naming("update-00000025", "copy", 20)):
        average_run(own_run, last=2)
    told = resume(own_run)
    [line] = [line for line in told if says(line, "update-00000090")]
    assert says(line, re.compile("^warning: "), "copy", 20)
    assert any(says(line, "update-00000030") for line in told)
    [line] = [line for line in told if says(line, "passed-over-update-00000025")]
    assert says(line, re.compile("^warning: "), "copy", 20, re.compile(r"(?<!over-)update-00000025"))
    other = Path(shutil.copytree(micro_run, tmp_path / "other"))
    resume(other)
    for name in ("checkpoints/update-00000031/model.safetensors", "model/model.safetensors"):
        assert (own_run / name).read_bytes() == (other / name).read_bytes()


def test_a_checkpoint_that_was_renamed_is_not_gone_on_from(own_run: Path) -> None:
    checkpoints = own_run / "checkpoints"
    (checkpoints / "update-00000030").rename(checkpoints / "update-000000031")
    with pytest.raises(CheckpointError, match=naming("update-000000031", "copy", 30)):
        read_state(checkpoints / "update-000000031")
    assert any(says(line, "update-00000020") for line in resume(own_run))


def test_a_checkpoint_of_another_run_is_not_gone_on_from(own_run: Path, micro_recipe: Path, tmp_path: Path) -> None:
    other = read_recipe(micro_recipe, ["training.seed=3", "training.max_updates=40", "training.validation_bleu=false"])
    train(other, tmp_path / "other")
    shutil.copytree(tmp_path / "other" / "checkpoints" / "update-00000040", own_run / "checkpoints" / "update-00000040")
    with pytest.raises(CheckpointError, match=naming("run.json", "training.seed", 1, "update-00000040", 3)):
        resume(own_run)
    with pytest.raises(CheckpointError, match=naming("run.json", "training.seed", 1, "update-00000040", 3)):
        average_run(own_run, last=2)
    assert [found for found in problems(own_run) if says(found, "training.seed", 1, "update-00000040", 3)]


# the text


@pytest.fixture
def read_from_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores are read row by row, as large ones are."""
    monkeypatch.setattr(arrays_module, "MAX_BYTES_IN_MEMORY", 0)


@pytest.mark.slow
@pytest.mark.usefixtures("read_from_disk")
def test_text_that_is_cut_while_the_run_goes_on_ends_it_in_one_line(
    micro_recipe: Path, micro_run: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run" / "store" / "train" / "src.ids.npy"
    content = b""

    def at_the_fifth(record: object) -> None:
        nonlocal content
        if isinstance(record, UpdateRecord) and record.update == 5:
            content = path.read_bytes()
            os.truncate(path, 200)

    config: RunConfig = read_recipe(micro_recipe)
    with pytest.raises(DataError, match=naming(path, "--resume")):
        train(config, tmp_path / "run", listeners=[at_the_fifth])
    assert read_state(checkpoint_folders(tmp_path / "run" / "checkpoints")[-1]).update == 5
    path.write_bytes(content)
    train(config, tmp_path / "run", resume=True)
    ours, theirs = (folder / "model" / "model.safetensors" for folder in (tmp_path / "run", micro_run))
    assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.slow
@pytest.mark.usefixtures("read_from_disk")
def test_a_run_over_a_large_store_is_the_same(micro_recipe: Path, micro_run: Path, tmp_path: Path) -> None:
    train(read_recipe(micro_recipe), tmp_path / "run")
    newest = average_weights(checkpoint_folders(tmp_path / "run" / "checkpoints")[-2:])
    for name, weight in read_tensors(micro_run / "model" / "model.safetensors").items():
        assert torch.equal(newest[name], weight), name


@pytest.mark.parametrize("name", ["manifest.json", "train/manifest.json", "dev/manifest.json"])
def test_text_without_its_manifest_is_refused(own_run: Path, name: str) -> None:
    (own_run / "store" / name).unlink()
    with pytest.raises(DataError, match=naming((own_run / "store" / name).parent, "manifest.json")):
        resume(own_run)
    assert [found for found in problems(own_run) if says(found, "manifest.json")]


def test_a_model_without_its_manifest_is_refused(transduce: CommandLine, own_model: Path) -> None:
    (own_model / "manifest.json").unlink()
    outcome = transduce("translate", own_model, stdin=b"a dog\n")
    assert outcome.code == 1
    assert says(outcome.err, re.compile("^error: "), own_model, "manifest.json")


def test_a_model_that_came_meanwhile_is_not_replaced(
    own_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "averaged"

    def meanwhile(path: Path, tensors: Any) -> None:
        out.mkdir()
        (out / "thesis.txt").write_text("precious")
        write_tensors(path, tensors)

    monkeypatch.setattr("transduce.model.weights_file.write_tensors", meanwhile)
    with pytest.raises(DataError, match=naming(out, "Directory not empty", tmp_path / "averaged-2")):
        average_run(own_run, last=2, out=out)
    assert everything_in(out) == {"thesis.txt": b"precious"}
    ours, theirs = (folder / "model.safetensors" for folder in (tmp_path / "averaged-2", own_run / "model"))
    assert ours.read_bytes() == theirs.read_bytes()


def test_the_model_that_was_there_at_the_start_is_the_only_one_that_is_replaced(
    own_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(path: Path, tensors: Any) -> None:
        (own_run / "model").rename(tmp_path / "kept")
        (own_run / "model").mkdir()
        (own_run / "model" / "thesis.txt").write_text("precious")
        write_tensors(path, tensors)

    before = everything_in(own_run / "model")
    monkeypatch.setattr("transduce.model.weights_file.write_tensors", meanwhile)
    with pytest.raises(DataError, match=naming(own_run / "model", own_run / "model-2")):
        average_run(own_run, last=2)
    assert everything_in(own_run / "model") == {"thesis.txt": b"precious"}
    assert everything_in(tmp_path / "kept") == before
