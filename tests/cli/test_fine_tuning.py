"""``transduce train --from MODEL --tmx FILE``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from said import says
from transduce.corpora import generate_pairs
from transduce.documents.tmx import tmx_lines
from transduce.recipes import read_recipe
from transduce.runs import read_run_config
from transduce.runs.starting_weights import gentle_rate
from transduce.training import peak_learning_rate

CommandLine = Callable[..., Any]


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a translation memory in the working folder."""
    monkeypatch.chdir(tmp_path)
    pairs = [(pair.en, pair.de, "") for pair in generate_pairs("train", n_pairs=150, seed=7)]
    path = tmp_path / "memory.tmx"
    path.write_text("\n".join(tmx_lines(pairs, "en", "de")), encoding="utf-8")
    return path


def test_a_model_learns_from_a_memory(transduce: CommandLine, micro_model: Path, memory: Path) -> None:
    del memory
    small = ("--set", "training.max_updates=4", "--set", "training.checkpoint_every_updates=2")
    outcome = transduce("train", "--from", micro_model, "--tmx", "memory.tmx", "--out", "tuned", *small, "--json")
    assert outcome.code == 0, outcome.err
    result = json.loads(outcome.out)
    assert result["updates"] == 4
    new, old = result["compared"]
    assert new["n_lines"] == len(Path("tuned-text/dev.en").read_text(encoding="utf-8").splitlines())
    assert old["n_lines"] == 60
    assert str(micro_model) in old["text"]
    for each in (new, old):
        assert all(0 <= score <= 100 for score in (*each["bleu"], *each["chrf"]))
    config = read_run_config(Path("tuned"))
    assert config.data.tokenizer_from == str(micro_model.resolve()) == config.training.init_from
    peak = peak_learning_rate(d_model=config.model.d_model, config=config.training)
    assert peak == pytest.approx(4 * gentle_rate(config.model.d_model), rel=0.01)
    assert (config.training.best_by, config.data.also_dev) == ("mean_perplexity", ("old",))
    n_of = {name: len(Path("tuned-text", name, "train.en").read_text("utf-8").splitlines()) for name in ("", "old")}
    assert n_of[""] == pytest.approx(config.data.weights["old"] * n_of["old"], rel=0.01)  # half and half
    held_out = set(Path("tuned-text/dev.en").read_text("utf-8").splitlines())
    assert held_out.isdisjoint(Path("tuned-text/old/train.en").read_text("utf-8").splitlines())
    again = transduce("train", "--from", micro_model, "--tmx", "memory.tmx", "--out", "tuned")
    assert (again.code, says(again.err, "tuned", "exists")) == (1, True)


def test_a_model_alone_has_no_old_text(transduce: CommandLine, own_model: Path, memory: Path) -> None:
    outcome = transduce(
        "train", "--from", own_model, "--tmx", memory, "--out", "tuned", "--set", "training.max_updates=1"
    )
    assert outcome.code == 0, outcome.err
    assert says(outcome.out, "dev of the new text", "->")
    assert "the text of" not in outcome.out
    assert says(outcome.err, "warning", "--mix")
    peak = peak_learning_rate(d_model=32, config=read_run_config(Path("tuned")).training)
    assert peak == pytest.approx(gentle_rate(32), rel=0.01)


def test_text_to_mix_is_named(transduce: CommandLine, own_model: Path, memory: Path) -> None:
    pairs = [(pair.en, pair.de, "") for pair in generate_pairs("train", n_pairs=100, seed=8)]
    Path("other.tmx").write_text("\n".join(tmx_lines(pairs, "en", "de")), encoding="utf-8")
    few = ("--set", "training.max_updates=1")
    outcome = transduce("train", "--from", own_model, "--tmx", memory, "--mix", "other.tmx", "--out", "a", *few)
    assert outcome.code == 0, outcome.err
    n_dev, n_train = (len(Path(f"a-text/old/{split}.en").read_text("utf-8").splitlines()) for split in ("dev", "train"))
    assert (n_dev, n_dev + n_train <= 100) == (6, True)
    # The text of one run is a corpus for the next.
    outcome = transduce("train", "--from", own_model, "--tmx", "other.tmx", "--mix", "a-text", "--out", "b", *few)
    assert outcome.code == 0, outcome.err
    assert read_run_config(Path("b")).data.weights["old"] > 0
    outcome = transduce("train", "--from", own_model, "--tmx", memory, "--mix", "none", "--out", "c", *few)
    assert (outcome.code, Path("c-text/old").exists()) == (0, False)


def test_a_recipe_that_goes_on_from_a_model(
    transduce: CommandLine, micro_model: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transduce.runs.fine_tuning.seconds_per_update", lambda *_: 0.5)
    outcome = transduce("init", "--from", micro_model, "--tmx", memory, "--minutes", 0.2, "--out", "new.toml")
    assert outcome.code == 0, outcome.err
    assert "next: transduce train new.toml --out runs/new\n" in outcome.out
    assert "transduce memory build" in outcome.out
    config, model = read_recipe(Path("new.toml")), read_run_config(micro_model.parent).model
    assert config.model.model_copy(update={"src_vocab_size": 0, "tgt_vocab_size": 0}) == model.model_copy(
        update={"src_vocab_size": 0, "tgt_vocab_size": 0}
    )
    assert config.data.names_of("train") == ["new-text/train.en", "new-text/train.de"]
    outcome = transduce("train", "new.toml", "--out", "runs/new", "--set", "training.max_updates=2")
    assert outcome.code == 0, outcome.err
    assert says(outcome.out, "dev of the new text", "->")
    assert says(outcome.out, "dev of the text of", micro_model, "->")
    assert "overwrites" not in outcome.err
    other = transduce("init", "--from", micro_model, "--tmx", memory, "--direction", "de-en", "--out", "other.toml")
    assert (other.code, says(other.err, "en-de", "de-en")) == (1, True)


def test_a_rate_that_overwrites_is_told(transduce: CommandLine, micro_recipe: Path, micro_model: Path) -> None:
    few = ("--set", "training.max_updates=1", "--set", "training.warmup_steps=10")
    outcome = transduce("train", micro_recipe, "--from", micro_model, "--out", micro_recipe.parent / "again", *few)
    assert outcome.code == 0, outcome.err
    assert says(outcome.err, "warning", "overwrites", "init --from", "training.lr_factor=")


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["--tmx", "memory.tmx"], ["--from"]),
        (["--from", "MODEL", "--mix", "memory.tmx"], ["--mix", "--tmx"]),
        (["--from", "MODEL", "--tmx", "memory.tmx", "--mix", "gone"], ["gone"]),
        (["recipe.toml", "--from", "MODEL", "--tmx", "memory.tmx"], ["--from", "recipe"]),
        (["--from", "MODEL", "--tmx", "gone.tmx"], ["gone.tmx"]),
        (["--from", "MODEL", "--xliff", "memory.tmx"], ["memory.tmx", ".xlf"]),
        (["--from", "MODEL", "--tmx", "empty.tmx"], ["no translations"]),
        (["--from", "MODEL", "--tmx", "few.tmx"], ["usable pairs"]),
    ],
)
def test_mistakes(
    transduce: CommandLine, micro_model: Path, memory: Path, arguments: list[str], facts: list[str]
) -> None:
    folder = memory.parent
    (folder / "empty.tmx").write_text("<tmx/>", encoding="utf-8")
    (folder / "few.tmx").write_text("\n".join(tmx_lines([("a dog", "ein Hund", "")], "en", "de")), encoding="utf-8")
    before = sorted(folder.iterdir())
    given = [str(micro_model) if each == "MODEL" else each for each in arguments]
    outcome = transduce("train", *given, "--out", "tuned")
    assert (outcome.code, says(outcome.err, *facts)) == (1, True), outcome.err
    assert sorted(folder.iterdir()) == before
