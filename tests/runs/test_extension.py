"""A finished run is extended: ``train --more``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from commands import CommandLine
from said import says
from transduce.errors import TrainingError
from transduce.recipes import read_recipe
from transduce.runs import extended_run, read_run_config, train
from transduce.training import Record, UpdateRecord

SETTINGS = (
    "training.decay=linear",
    "training.warmup_steps=2",
    "training.max_updates=8",
    "training.checkpoint_every_updates=4",
    "training.log_every_updates=1",
    "training.validation_bleu=false",
)


@pytest.fixture(scope="module")
def finished(micro_recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run whose learning rate has come to 0."""
    folder = tmp_path_factory.mktemp("extension") / "run"
    train(read_recipe(micro_recipe, SETTINGS), folder)
    return folder


def test_an_extension_resumes_with_the_same_bits(finished: Path, tmp_path: Path) -> None:
    config = extended_run(finished, 0.001, lambda line: None)
    config = config.model_copy(update={"training": config.training.model_copy(update={"max_updates": 14})})
    assert config.training.extended_at == (8,)
    whole, cut = (Path(shutil.copytree(finished, tmp_path / name)) for name in ("whole", "cut"))
    rates = list[float]()

    def rate(record: Record) -> None:
        rates.extend([record.learning_rate] if isinstance(record, UpdateRecord) else [])

    assert train(config, whole, resume=True, listeners=[rate]).updates == 14
    assert rates == sorted(rates, reverse=True)  # six updates have no warm-up
    assert rates[0] > rates[-1] > 0
    for n in (0, 2):  # before the first update, and between
        seen = list[Record]()

        def should_stop(n: int = n, seen: list[Record] = seen) -> bool:
            return len(seen) >= n

        stopped = train(config, cut, resume=True, listeners=[seen.append], should_stop=should_stop)
        assert stopped.reason == "interrupted"
    assert train(read_run_config(cut), cut, resume=True).updates == 14
    assert (cut / "model" / "model.safetensors").read_bytes() == (whole / "model" / "model.safetensors").read_bytes()
    assert extended_run(whole, 1, lambda line: None).training.extended_at == (8, 14)


@pytest.mark.merge
@pytest.mark.parametrize("decay", ["inverse_sqrt", "linear"])
def test_an_extension_resumes_by_the_recipe(micro_recipe: Path, tmp_path: Path, decay: str) -> None:
    run = tmp_path / "run"
    config = read_recipe(micro_recipe, [*SETTINGS, f"training.decay={decay}", "training.patience=9"])
    train(config, run)
    extended = extended_run(run, 0.001, lambda line: None)
    extended = extended.model_copy(update={"training": extended.training.model_copy(update={"max_updates": 12})})
    seen, lines = list[Record](), list[str]()
    train(extended, run, resume=True, listeners=[seen.append], should_stop=lambda: bool(seen))
    assert train(config, run, resume=True, log=lines.append).updates == 12
    assert any(says(line, "extended", 12) for line in lines)
    assert read_run_config(run).training == extended.training


def test_the_command(transduce: CommandLine, finished: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    outcome = transduce("train", "--more", 1e-4, "--out", run, "--json")
    assert outcome.code == 0, outcome.err
    assert says(outcome.err, "more", 8)
    assert json.loads(outcome.out)["updates"] == read_run_config(run).training.max_updates > 8
    for arguments, facts in (
        (("recipe.toml", "--more", 1), ("--more", "recipe")),
        (("--more", 1, "--minutes", 1), ("--more", "--minutes")),
        (("--more", 1, "--set", "training.patience=1"), ("--more", "training.patience")),
    ):
        refused = transduce("train", *arguments, "--out", run)
        assert (refused.code, says(refused.err, *facts)) == (1, True), refused.err
    too_long = transduce("train", "--more", 1e9, "--out", run)
    assert (too_long.code, too_long.err.count("\n"), "pydantic" in too_long.err) == (1, 1, False), too_long.err


def test_a_run_makes_at_least_one_update(micro_recipe: Path, tmp_path: Path) -> None:
    """The memory preflight takes none of its time, and a clock that is over at once still leaves a model."""
    result = train(read_recipe(micro_recipe, [*SETTINGS, "training.max_minutes=1e-9"]), tmp_path / "run")
    assert (result.updates, result.reason) == (1, "max_minutes")
    assert result.model_folder is not None


def test_only_a_finished_run_is_extended(micro_recipe: Path, tmp_path: Path) -> None:
    seen = list[Record]()
    train(
        read_recipe(micro_recipe, SETTINGS), tmp_path / "run", listeners=[seen.append], should_stop=lambda: bool(seen)
    )
    with pytest.raises(TrainingError, match="has not finished"):
        extended_run(tmp_path / "run", 1, lambda line: None)
    longer = [*SETTINGS, "training.decay=inverse_sqrt"]
    train(read_recipe(micro_recipe, longer), tmp_path / "longer")
    config = read_recipe(micro_recipe, [*longer, "training.max_updates=20"])
    train(config, tmp_path / "longer", resume=True, should_stop=lambda: True)
    with pytest.raises(TrainingError, match="has not finished"):  # though it had, when it was to be shorter
        extended_run(tmp_path / "longer", 1, lambda line: None)
    with pytest.raises(TrainingError, match="holds no run"):
        extended_run(tmp_path / "none", 1, lambda line: None)
