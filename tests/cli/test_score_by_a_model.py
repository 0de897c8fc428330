"""``transduce score --model``: how probable a model finds given translations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from said import says


def test_a_translation_of_the_model_has_the_score_of_its_search(
    transduce: Any, micro_model: Path, tmp_path: Path
) -> None:
    sources = ["the old dog sees the cat", "a woman sleeps", ""]
    (tmp_path / "in.en").write_text("".join(f"{line}\n" for line in sources))
    options = ("--in", tmp_path / "in.en", "--alpha", 0, "--beam", 3, "--json", "--no-split")
    found = [json.loads(line) for line in transduce("translate", micro_model, *options).out.splitlines()]
    (tmp_path / "out.de").write_text("".join(f"{each['translation']}\n" for each in found))
    command = ("score", tmp_path / "out.de", "--model", micro_model, "--src", tmp_path / "in.en")
    plain = transduce(*command)
    scored = [json.loads(line) for line in transduce(*command, "--json").out.splitlines()]
    assert plain.out.splitlines() == [f"{each['log_prob']:.4f}" for each in scored]
    assert [each["line"] for each in scored] == [1, 2, 3]
    for ours, expected in zip(scored[:2], found[:2], strict=True):
        if "mended" not in expected["warnings"] and "output-cut" not in expected["warnings"]:
            assert ours["log_prob"] == pytest.approx(expected["score"], abs=2e-3)
    assert scored[2]["tokens"] == 1


@pytest.mark.parametrize("options", [["--model"], ["--src"], ["--model", "--src", "--ref"], []])
def test_options_that_do_not_belong_together(
    transduce: Any, micro_model: Path, tmp_path: Path, options: list[str]
) -> None:
    (tmp_path / "lines").write_text("a\n")
    values = {"--model": micro_model, "--src": tmp_path / "lines", "--ref": tmp_path / "lines"}
    outcome = transduce("score", tmp_path / "lines", *(part for name in options for part in (name, values[name])))
    assert outcome.code == 1
    assert says(outcome.err, "--model", "--src")
