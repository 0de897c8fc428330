"""Section 7: the short form of the chapter, its settings beside the recipes, and what follows from the rows."""

from __future__ import annotations

import math
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from transduce.config import GreedySearchConfig, ParallelData
from transduce.inference import Translator
from transduce.recipes import RECIPES, base, read_recipe, tiny, with_settings
from transduce.text import EOS_ID
from transduce_paper import ARTEFACTS, Experiments, Request, write_report
from transduce_paper.future import ONE_AT_A_TIME, _findings
from transduce_paper.future.measuring import peer_system
from transduce_paper.future.neighbourhoods import CHARACTERS, NEIGHBOURHOODS
from transduce_paper.future.peer import has_ctranslate2
from transduce_paper.future.systems import STUDENTS, TEACHER, student_config

FILES = [name for name in ParallelData.model_fields if name.endswith(("_src", "_tgt", "_tsv"))]


def test_the_settings_are_those_of_the_recipes() -> None:
    assert with_settings(base(), TEACHER) == read_recipe(RECIPES / "multi30k-en-de.toml")
    for name, student in STUDENTS.items():
        recipe = read_recipe(RECIPES / f"{student.recipe}.toml")
        assert recipe.data.train_tsv == ("distilled-greedy.tsv" if student.learns_from == "greedy" else "distilled.tsv")
        without_files = recipe.model_copy(update={"data": recipe.data.model_copy(update=dict.fromkeys(FILES))})
        assert without_files == student_config(name)


def test_the_neighbourhoods_of_characters_are_those_of_the_recipe() -> None:
    recipe = read_recipe(RECIPES / "lm-characters-restricted.toml")
    nearby = ["model.attention=restricted", f"model.neighbourhood={recipe.model.neighbourhood}"]
    assert with_settings(tiny(), [*CHARACTERS, *nearby]) == recipe
    assert recipe.model.neighbourhood in NEIGHBOURHOODS["characters"]


def test_the_short_form(tmp_path: Path) -> None:
    experiments = Experiments(tmp_path / "runs", tmp_path / "work", scale="test")
    report = ARTEFACTS["future"](experiments, Request())
    table = report.table()
    systems = table.column("system")
    assert systems[:2] == ["teacher, beam 1", "teacher, greedy"]
    assert len(systems) == 15
    identical = dict(zip(systems, table.column("identical"), strict=True))
    assert identical["teacher, drafts of 7 tokens"] == identical["teacher, drafts that end early"] == "3 of 3"
    assert identical["teacher, such drafts from a shortlist"] == "3 of 3"
    for blocks in ("blocks of 8 tokens", "deep encoder, shallow decoder, blocks of 8 tokens"):
        assert identical[blocks] == "3 of 3"  # as by the same model, one token a pass
    passes = dict(zip(systems, table.column("passes a sentence"), strict=True))
    assert passes["teacher, drafts that end early"] >= 1
    assert passes["mask-predict, 1 iteration"] == 1
    assert passes["teacher, greedy"] is None
    assert all(rate > 0 for column in ("a second, 1", "a second, 64") for rate in table.column(column))
    assert report.table("-neighbourhoods").column("r") == [16, "all"]
    assert report.table("-lengths").column("n") == [64, 128, 64, 128]
    has_digits = find_spec("sklearn") is not None
    assert sum(len(part.claims) for part in report.parts()) == (4 if has_digits else 3)
    if has_digits:
        bits = report.table("-pixels").column("bits per dimension, test")
        assert bits[0] == pytest.approx(math.log2(17))
        assert all(0 < each < 20 for each in bits)
    shutil.rmtree(tmp_path / "work")
    again = ARTEFACTS["future"](Experiments(tmp_path / "runs", tmp_path / "work", scale="test"), Request())
    assert [str(each) for each in again.blocks()] == [str(each) for each in report.blocks()]  # from the records alone
    assert not any((tmp_path / "work" / name).exists() for name in ("test", "distilled", "stores"))
    page = write_report(report, tmp_path / "out")[0].read_text(encoding="utf-8")
    assert "Kasai et al." in page
    assert "not installed" in page
    assert (tmp_path / "out" / "future-pixels.svg").exists() is has_digits


def row(system: str, bleu: float, speed: float, same: int = 0, passes: float | None = None) -> dict[str, Any]:
    return {
        "system": system, "sacrebleu": bleu, "per_s_1": speed, "same": same, "n_sentences": 100,
        "same_as": ONE_AT_A_TIME if system.startswith("blocks") else "teacher, greedy",
        "passes_per_sentence": passes, "tokens_per_pass": 3.0,
        "least_per_s_1": 0.9 * speed, "most_per_s_1": 1.1 * speed,
    }  # fmt: skip


def test_the_verdict_follows_from_the_rows() -> None:
    rows = [
        row("teacher, beam 8", 40.0, 3.0), row("teacher, greedy", 39.0, 10.0, 100),
        row("teacher, drafts of 7 tokens", 39.0, 19.0, 99, 4.0),
        row("teacher, drafts that end early", 39.0, 21.0, 99, 5.0),
        row("blocks of 8 tokens", 38.0, 24.0, 98, 4.5), row(ONE_AT_A_TIME, 38.0, 10.0, 1),
        row("deep encoder, shallow decoder", 39.6, 28.0), row("mask-predict, 1 iteration", 30.0, 90.0, 0, 1.0),
        row("teacher, greedy, CTranslate2", 39.9, 99.0),
    ]  # fmt: skip
    found = _findings(rows)
    assert "2.10 times" in found["verdict"]
    assert f"{18.9 / 11:.2f} to {23.1 / 9:.2f} by the rounds" in found["verdict"]
    assert "99.0%" in found["verdict"]
    assert "deep encoder, shallow decoder, 2.80 times" in found["verdict"]
    (claim,) = found["claims"]
    assert claim.verdict == "agrees"
    assert "mask-predict" in claim.found
    assert "blocks of 8 tokens a model writes 2.40 times" in found["verdict"]
    assert "98.0% of them identical" in found["verdict"]
    rows[3]["least_per_s_1"] = 10.9  # as fast as a round of greedy search
    assert _findings(rows)["claims"][0].verdict == "cannot tell"
    rows[6]["sacrebleu"] = 39.0
    assert "No system" in _findings(rows)["verdict"]


def test_ctranslate2_writes_what_greedy_search_writes(micro_model: Path) -> None:
    pytest.importorskip("ctranslate2")
    assert has_ctranslate2()
    translator = Translator.load(micro_model)
    with torch.no_grad():  # a model of 30 updates ends at once; this one goes on
        translator.model.output_weight[EOS_ID] *= 0.3
    other = Translator(translator.model, translator.tokenizers, translator.search, direction="en-de")
    texts = ["The dog sleeps.", "The woman sees the old cat."]
    peer = peer_system("peer", other, max_extra_tokens=translator.search.max_extra_tokens)
    greedy = GreedySearchConfig(max_extra_tokens=translator.search.max_extra_tokens)
    found = [
        other.translate_segments([text], greedy, is_checked=False) for text in texts
    ]  # as it is written, loops too
    expected = [segments[0].n_best[0].text for segments in found if segments is not None]
    assert [peer.translate([text])[0] for text in texts] == expected
    assert all(len(text) > 3 for text in expected)
    assert len(peer.translate(texts)) == 2
