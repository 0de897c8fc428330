"""Warnings about doubtful translations: one of each kind, and a count at the end."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from commands import CommandLine
from said import says
from small_models import write_model
from talking_model import write_talking_model
from transduce.cli.line_warnings import LineWarnings
from transduce.inference import ScoredText, Translation
from transduce.inference.folder import read_model_folder
from transduce.inference.translation.line_statistics import LineStatistics
from transduce.inference.translation.parts import FLAGS, Flag
from transduce.terms import Term, Terms


def translation(*flags: Flag) -> Translation:
    return Translation("source", (ScoredText("text", -1.0),), flags)


def test_each_kind_is_told_once_and_counted_at_the_end() -> None:
    told: list[str] = []
    written: list[str] = []
    warnings = LineWarnings(told.append, max_source_tokens=1024, write=written.append)
    others: list[Flag] = [flag for flag in FLAGS if flag not in ("long", "short", "source-cut")]
    for each in (
        translation(),
        translation("long"),
        translation("long", "short"),
        translation("source-cut"),
        translation("source-cut"),
        *map(translation, others),
    ):
        warnings.observe(each)
    numbers = [line.partition(" line ")[2].partition(" ")[0] for line in told]
    assert numbers == ["2", "3", "4", "5", *map(str, range(6, 6 + len(others)))]
    assert says(told[0], 2, "longer", "source")
    assert says(told[1], 3, "shorter")
    assert says(told[2], 4, "1,024")
    assert says(told[4 + others.index("output-cut")], "search.max_extra_tokens")
    assert len({re.sub(r"\d+", "", line) for line in told}) == len(FLAGS)  # each kind has its own message
    assert [line.split("\t")[:2] for line in written[:5]] == [
        ["2", "long"], ["3", "long"], ["3", "short"], ["4", "source-cut"], ["5", "source-cut"],
    ]  # fmt: skip
    assert {len(line.split("\t")) for line in written} == {3}
    told.clear()
    warnings.log_counts()
    cut, long = told
    assert says(cut, re.compile("^warning: "), 2, 5 + len(others), "1,024")
    assert says(long, re.compile("^warning: "), 2, 5 + len(others), "longer")


def test_terms_that_a_line_lacks_are_named() -> None:
    told: list[str] = []
    terms = Terms((Term("source", "Quelle"),), avoided=("text",))
    LineWarnings(told.append, max_source_tokens=9, terms=terms).observe(translation("terms"))
    assert says(told[0], "source should be Quelle; text is to be avoided")


@pytest.mark.merge
def test_every_warning_can_be_written_to_a_file(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    lines = f"The dog sleeps.\n2024\n{'word ' * 2000}\n".encode()
    told = tmp_path / "told.tsv"
    outcome = transduce("translate", micro_model, "--no-split", "--json", "--warnings", told, stdin=lines)
    assert outcome.code == 0
    found = [json.loads(line)["warnings"] for line in outcome.out.splitlines()]
    assert found[1] == []
    assert {"source-cut", "long"} <= set(found[2])
    expected = [(str(number), flag) for number, flags in enumerate(found, start=1) for flag in flags]
    assert [tuple(line.split("\t")[:2]) for line in told.read_text().splitlines()] == expected
    workers = ["translate", micro_model, "--no-split", "--json", "--workers", 2]
    assert transduce(*workers, stdin=lines).out == outcome.out
    text = tmp_path / "text"
    text.write_text("A cat.\n")
    for wrong in (
        ["--warnings", "-"],
        ["--warnings", text],
        ["--out", told, "--warnings", told],
        ["--warnings", tmp_path],
    ):
        refused = transduce("translate", micro_model, "--in", text, *wrong)
        assert refused.code == 1
        assert says(refused.err, "--warnings")
    assert text.read_text() == "A cat.\n"


@pytest.mark.parametrize("options", [[], ["--workers", 2]], ids=["one process", "workers"])
def test_greedy_search_tells_how_sure_it_is(
    transduce: CommandLine, micro_model: Path, tmp_path: Path, options: list[object]
) -> None:
    read = read_model_folder(write_talking_model(micro_model, tmp_path / "talking"), device="cpu")
    usual = LineStatistics(sentences=1, tokens=99, longest=99, least_ratio=0.0, caps=0.0, least_log_prob=0.0)
    model, told = tmp_path / "model", tmp_path / "told.tsv"
    write_model(model, read.model, read.tokenizers, search=read.search, direction=read.direction, statistics=usual)
    command = ("translate", model, "--beam", 1, "--warnings", told)
    outcome = transduce(*command, *options, stdin=b"The dog sleeps.\n")
    assert outcome.code == 0
    assert "unlike" in told.read_text()
    assert says(outcome.err, "unlike")


def test_a_line_of_several_sentences_is_split_unless_it_should_not_be(
    transduce: CommandLine, micro_model: Path
) -> None:
    one, two = "The dog sees the cat.", "The woman sleeps."
    alone = transduce("translate", micro_model, stdin=f"{one}\n{two}\n".encode()).out.splitlines()
    assert transduce("translate", micro_model, stdin=f"{one}  {two}\n".encode()).out == "  ".join(alone) + "\n"
    whole = transduce("translate", micro_model, "--no-split", stdin=("word " * 200).encode())
    assert says(whole.err, re.compile("^warning: "), 1, "longer")
    split = transduce("translate", micro_model, stdin=("word " * 200).encode())
    assert "longer" not in split.err
    assert split.out.count("\n") == 1
