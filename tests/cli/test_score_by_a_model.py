"""``transduce score --model``: how probable a model finds given translations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from said import says
from transduce.inference import Translator, log_probabilities


def test_each_line_has_the_log_probability_of_its_translation(
    transduce: Any, micro_model: Path, tmp_path: Path
) -> None:
    pairs = [("the old dog sees the cat", "der alte Hund sieht die Katze"), ("a woman sleeps", "Katze"), ("a", "")]
    for column, name in enumerate(("in.en", "out.de")):
        (tmp_path / name).write_text("".join(f"{pair[column]}\n" for pair in pairs))
    command = ("score", tmp_path / "out.de", "--model", micro_model, "--src", tmp_path / "in.en")
    plain = transduce(*command)
    scored = [json.loads(line) for line in transduce(*command, "--json").out.splitlines()]
    assert plain.out.splitlines() == [f"{each['log_prob']:.4f}" for each in scored]
    assert [each["line"] for each in scored] == [1, 2, 3]
    expected = log_probabilities(Translator.load(micro_model), pairs)
    assert [each["log_prob"] for each in scored] == pytest.approx(expected, abs=1e-4)
    assert [each["tokens"] for each in scored][-1] == 1


def test_a_line_that_is_not_read_whole_is_named(transduce: Any, micro_model: Path, tmp_path: Path) -> None:
    (tmp_path / "in.en").write_text("a dog\n" + "dog " * 3000 + "\n")
    (tmp_path / "out.de").write_text("ein Hund\nHund\n")
    outcome = transduce("score", tmp_path / "out.de", "--model", micro_model, "--src", tmp_path / "in.en")
    assert outcome.code == 0
    assert len(outcome.out.splitlines()) == 2
    assert says(outcome.err, "warning", "line", 2)


@pytest.mark.parametrize("options", [["--model"], ["--src"], ["--model", "--src", "--ref"], []])
def test_options_that_do_not_belong_together(
    transduce: Any, micro_model: Path, tmp_path: Path, options: list[str]
) -> None:
    (tmp_path / "lines").write_text("a\n")
    values = {"--model": micro_model, "--src": tmp_path / "lines", "--ref": tmp_path / "lines"}
    outcome = transduce("score", tmp_path / "lines", *(part for name in options for part in (name, values[name])))
    assert outcome.code == 1
    assert says(outcome.err, "--model", "--src")
