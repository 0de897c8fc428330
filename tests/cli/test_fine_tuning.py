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
from transduce.runs import read_run_config

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
    assert config.training.lr_factor == pytest.approx(0.1 * (config.training.warmup_steps / 4000) ** 0.5)
    again = transduce("train", "--from", micro_model, "--tmx", "memory.tmx", "--out", "tuned")
    assert (again.code, says(again.err, "tuned", "exists")) == (1, True)


def test_a_model_alone_has_no_old_text(transduce: CommandLine, own_model: Path, memory: Path) -> None:
    outcome = transduce(
        "train", "--from", own_model, "--tmx", memory, "--out", "tuned", "--set", "training.max_updates=1"
    )
    assert outcome.code == 0, outcome.err
    assert says(outcome.out, "dev of the new text", "->")
    assert "the text of" not in outcome.out


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["--tmx", "memory.tmx"], ["--from"]),
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
