"""``align``: links between the words of texts and their translations."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import CommandLine
from said import says
from transduce.inference.translation import word_alignment
from transduce.inference.translation.word_alignment import AlignedSentence
from transduce.inference.translation.word_links import aligned_lines, word_links
from transduce.text import normalise, word_spans

SOURCE, TARGET = "The dog  sleeps.\n\n \u200b The dog .\n", "Der Hund schläft.\n\nDer Hund .\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    src, tgt = tmp_path / "src", tmp_path / "tgt"
    src.write_text(SOURCE, "utf-8")
    tgt.write_text(TARGET, "utf-8")
    return src, tgt


@pytest.mark.parametrize("engine", ["native", "torch"])
def test_each_target_word_has_a_source_word(
    transduce: CommandLine, micro_model: Path, files: tuple[Path, Path], engine: str
) -> None:
    src, tgt = files
    outcome = transduce("align", micro_model, "--src", src, "--tgt", tgt, "--engine", engine)
    assert outcome.code == 0
    lines = [[tuple(map(int, link.split("-"))) for link in line.split()] for line in outcome.out.split("\n")]
    assert [[target for _, target in line] for line in lines] == [[0, 1, 2], [], [0, 1, 2], []]
    assert all(0 <= source <= 2 for source, _ in lines[0])
    assert lines[2][2] == (3, 2)  # a full stop; the second "word" of the source shows nothing
    asked = transduce("align", micro_model, "--src", src, "--tgt", tgt, "--json", "--engine", engine)
    [first, *_] = map(json.loads, asked.out.splitlines())
    assert (first["line"], first["source"], first["target"]) == (1, "The dog  sleeps.", "Der Hund schläft.")
    assert [tuple(link[:2]) for link in first["links"]] == lines[0]
    assert all(1 / 4 < link[2] <= 1 for link in first["links"])


def test_links_are_written_to_a_file(
    transduce: CommandLine, micro_model: Path, files: tuple[Path, Path], tmp_path: Path
) -> None:
    src, tgt = files
    assert transduce("align", micro_model, "--src", src, "--tgt", tgt, "--out", tmp_path / "links").code == 0
    assert len((tmp_path / "links").read_text("utf-8").splitlines()) == 3


def test_files_must_have_equal_lines(transduce: CommandLine, micro_model: Path, files: tuple[Path, Path]) -> None:
    src, tgt = files
    tgt.write_text("Der Hund.\n", "utf-8")
    refused = transduce("align", micro_model, "--src", src, "--tgt", tgt)
    assert (refused.code, says(refused.err, tgt, 1, src, 3)) == (1, True)
    overwritten = transduce("align", micro_model, "--src", src, "--tgt", src, "--out", src)
    assert (overwritten.code, says(overwritten.err, src)) == (1, True)


def _aligned(source: str, target: str, weights: list[list[float]]) -> AlignedSentence:
    words = (tuple(word_spans(source)), tuple(word_spans(target)))
    weights_XY = np.array(weights, np.float32).reshape(len(words[1]), len(words[0]))
    return AlignedSentence(source, target, *words, weights_XY, (0.0,) * len(words[1]))


def test_characters_may_be_words(monkeypatch: pytest.MonkeyPatch) -> None:
    crossed = _aligned("猫が", "the cat", [[0.2, 0.8], [0.9, 0.1]])
    monkeypatch.setattr(word_alignment, "align_words", lambda translator, pairs: [crossed])
    translator: Any = SimpleNamespace()
    pairs = [("猫が", "the cat")]
    [of_words], [of_characters] = (
        list(aligned_lines(translator, pairs, has_characters=has_characters)) for has_characters in (False, True)
    )
    assert of_words.links == ((0, 0), (0, 1))
    assert of_characters.links == ((1, 0), (0, 1))
    assert of_characters.weights == pytest.approx((0.8, 0.9), abs=1e-3)


def test_what_belongs_to_all_alike_has_no_link() -> None:
    words = (word_spans("a b"), word_spans("x y"))
    assert word_links("a b", "x y", [(*words, np.full((2, 2), 0.5, np.float32))]) == ()


@given(st.text("ab \u200b\xad猫が、\t", max_size=12), st.text("ab \u200b\xad猫が、\t", max_size=12), st.booleans())
def test_numbers_are_those_of_the_files(source: str, target: str, has_characters: bool) -> None:
    texts = normalise(source), normalise(target)
    n_source, n_target = (len(word_spans(text)) for text in texts)
    weights = np.random.default_rng(1).dirichlet(np.ones(max(1, n_source)), n_target)[:, :n_source]
    aligned = _aligned(*texts, weights.tolist())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_alignment, "align_words", lambda translator, pairs: [aligned])
        [line] = aligned_lines(SimpleNamespace(), [(source, target)], has_characters=has_characters)  # type: ignore[arg-type]
    if not has_characters:
        assert all(normalise(source.split()[i]) and normalise(target.split()[j]) for i, j in line.links)
        if n_source > 1:
            assert {j for _, j in line.links} == {j for j, word in enumerate(target.split()) if normalise(word)}
