"""Doctor on rankings: what it says about damaged, empty, single and tied ones, and about prompts in two files."""

from __future__ import annotations

import json
from pathlib import Path

from transduce.diagnostics import examine


def findings_of(*paths: Path) -> dict[str, list[str]]:
    by_status: dict[str, list[str]] = {"good": [], "note": [], "problem": []}
    for finding in examine([str(path) for path in paths]):
        by_status[finding.status].append(f"{finding.subject}: {finding.message}")
    return by_status


def written(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), encoding="utf-8")
    return path


def ranking(prompt: str, *responses: str) -> dict[str, object]:
    return {"prompt": prompt, "responses": list(responses)}


def test_sound_rankings(tmp_path: Path) -> None:
    found = findings_of(written(tmp_path / "r.jsonl", ranking("a", "b", "c"), ranking("d", "e", "f", "g")))
    assert found["note"] == found["problem"] == []
    assert "2 prompts, 5 responses" in found["good"][0]


def test_single_tied_and_repeated_ones_are_noted(tmp_path: Path) -> None:
    lines = ranking("a", "b", "c"), ranking("d", "e"), ranking("f", "g", "g"), {"prompt": "h"}, ranking("a", "x", "y")
    found = findings_of(written(tmp_path / "r.jsonl", *lines))
    notes = " / ".join(found["note"])
    assert "2 rankings with one response (lines 2, 3)" in notes
    assert "1 ranking with a response that occurs twice, a tie (line 3)" in notes
    assert "1 prompt without a response (line 4)" in notes
    assert "1 prompt that came before (line 5)" in notes
    assert found["problem"] == []


def test_responses_for_fine_tuning_are_no_single_rankings(tmp_path: Path) -> None:
    lines = {"prompt": "a", "response": "b"}, {"prompt": "c", "response": "d"}
    found = findings_of(written(tmp_path / "r.jsonl", *lines))
    assert found["note"] == found["problem"] == []
    assert "one response each" in found["good"][0]


def test_damaged_and_empty_lines_are_problems(tmp_path: Path) -> None:
    lines = ranking("a", "b", "c"), "{", ranking("d", "e", " "), ranking(" ", "e", "f"), "[]"
    found = findings_of(written(tmp_path / "r.jsonl", *lines))
    problems = " / ".join(found["problem"])
    assert "2 lines that cannot be read: the first is not JSON" in problems
    assert "(lines 2, 5)" in problems
    assert "2 lines with an empty prompt or response (lines 3, 4)" in problems
    assert "is empty" in findings_of(written(tmp_path / "empty.jsonl", ""))["problem"][0]


def test_prompts_of_train_in_test(tmp_path: Path) -> None:
    train = written(tmp_path / "train.jsonl", *(ranking(f"p{n}", "x", "y") for n in range(6)))
    few = written(tmp_path / "test.jsonl", *(ranking(f"p{n}", "x", "y") for n in range(5, 9)))
    most = written(tmp_path / "dev.jsonl", *(ranking(f"p{n}", "x", "y") for n in range(3, 7)))
    assert any("1 prompt of 4 is in" in each for each in findings_of(train, few)["note"])
    assert any("3 prompts of 4 are in" in each for each in findings_of(train, most)["problem"])


def test_a_recipe_of_rankings(tmp_path: Path) -> None:
    train = written(tmp_path / "train.jsonl", ranking("a", "b", "c"))
    recipe = written(
        tmp_path / "reward.toml",
        'preset = "tiny"',
        "[model]",
        'system = "language-model"',
        "[data]",
        'task = "reward"',
        'corpus = "files"',
        f'train_prompts = "{train}"',
        f'dev_prompts = "{train}"',
    )
    found = findings_of(recipe)
    assert any("1 prompt of 1 is in" in each for each in found["problem"])
    assert any("rankings: 1 prompt, 2 responses" in each for each in found["good"])
