"""``transduce sweep``: every combination is scored as ``evaluate`` scores it, and the cheapest good one is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import CommandLine
from said import says
from transduce.cli.sweep import Combination, cheapest


@pytest.fixture
def parallel(tmp_path: Path) -> tuple[Path, Path]:
    """Sources and references, two lines each."""
    src, ref = tmp_path / "t.en", tmp_path / "t.de"
    src.write_text("The dog sees the cat.\nA man sleeps.\n")
    ref.write_text("Der Hund sieht die Katze.\nEin Mann schläft.\n", encoding="utf-8")
    return src, ref


def test_combinations_are_scored_as_by_evaluate(
    transduce: CommandLine, micro_model: Path, parallel: tuple[Path, Path]
) -> None:
    text = ("--src", parallel[0], "--ref", parallel[1])
    outcome = transduce("sweep", micro_model, *text, "--beam", "2,1", "--alpha", "1,0.5", "--json")
    assert outcome.code == 0
    found = json.loads(outcome.out)
    assert [(each["beam_size"], each["alpha"]) for each in found["tried"]] == [(1, 0.5), (2, 0.5), (2, 1.0)]
    for each in found["tried"]:
        options = ("--beam", each["beam_size"], "--alpha", each["alpha"])
        scores = json.loads(transduce("evaluate", micro_model, *text, *options, "--json").out)
        assert scores["sacrebleu"]["score"] == each["bleu"]
    shown = transduce("sweep", micro_model, *text, "--beam", "1,2", "--alpha", "0.5").out
    assert says(shown, "--set", f"search.beam_size={found['chosen']['beam_size']}", "search.alpha=0.5")


def test_the_precision_goes_by_the_device(
    transduce: CommandLine, micro_model: Path, parallel: tuple[Path, Path]
) -> None:
    options = ("--beam", "1", "--device", "auto", "--precision", "auto")
    outcome = transduce("sweep", micro_model, "--src", parallel[0], "--ref", parallel[1], *options)
    assert (outcome.code, outcome.out.count("chosen")) == (0, 1)


@pytest.mark.parametrize(("option", "value"), [("--beam", "1,x"), ("--beam", "0"), ("--alpha", "nan")])
def test_a_wrong_number_is_told(
    option: str, value: str, transduce: CommandLine, micro_model: Path, parallel: tuple[Path, Path]
) -> None:
    outcome = transduce("sweep", micro_model, "--src", parallel[0], "--ref", parallel[1], option, value)
    assert (outcome.code, outcome.err.count("\n")) == (1, 1)
    assert value in outcome.err


def test_the_cheapest_of_the_best_is_chosen() -> None:
    def tried(beam_size: int, alpha: float, bleu: float, p_value: float) -> Combination:
        return Combination(beam_size, alpha, bleu, 50.0, 1.0, (), p_value)

    best, as_good, better_alpha = tried(8, 1.0, 36.0, 1.0), tried(4, 0.6, 35.7, 0.3), tried(4, 1.0, 35.8, 0.4)
    assert cheapest([tried(1, 0.6, 34.0, 0.01), as_good, better_alpha, best]) == better_alpha
