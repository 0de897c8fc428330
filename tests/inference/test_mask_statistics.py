"""What a training text has on one side only is not masked, from preparation to translation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from said import naming, says
from transduce.config import DataConfig
from transduce.corpora import generate_pairs
from transduce.errors import CheckpointError
from transduce.inference.translation.line_statistics import LineStatistics, line_statistics
from transduce.inference.translation.mask_statistics import MAX_NAMED, MaskCounts, MaskStatistics, mask_rules
from transduce.tasks.preparation import prepare
from transduce.tasks.prepared import open_prepared
from transduce.text import MASKS, mask

Pairs = list[tuple[str, str]]


def counts_of(pairs: Pairs) -> MaskCounts:
    counts = MaskCounts("en", "de")
    assert list(counts.counted(pairs)) == pairs
    return counts


@pytest.mark.parametrize("tag", ["<fr>", "<formal>", "__de__", "[[fr]]", "{fr}", "$fr", "@fr@"])
def test_control_tags_are_named(tag: str) -> None:
    counts = counts_of([(f"{tag} see <b>x.txt</b>", "voir <b>x.txt</b>")] * 20 + [("a", "b")] * 100)
    assert counts.statistics().one_sided == (tag,)
    assert counts.control_tags() == {tag: 20}
    [line] = counts.lines()
    assert says(line, "control tags", tag, 20)


def test_what_is_no_control_tag() -> None:
    for pairs in (
        [("<fr> a", "b")] * 19,  # too few
        [("<b> a", "<b> b")] * 20 + [("<b> a", "b")] * 20,  # half of them have it
        [("<fr> a", "b")] * 20 + [("a", "b")] * 400,  # not many sources
        [("see <fr> a", "b")] * 30,  # not at the beginning
        [("10:30 a", "halb elf b")] * 30,  # digits are kept in any case
    ):
        assert list(counts_of(pairs).lines()) == []
    assert counts_of([("see <fr> a", "b")] * 30).statistics().one_sided == ("<fr>",)
    assert counts_of([("10:30 a", "halb elf b")] * 30).statistics().one_sided == ()
    many = [(f"<x{number}> a", "b") for number in range(MAX_NAMED + 3)] * 20
    assert says(next(counts_of(many).lines()), 3, "more")


def test_the_form_of_most_numbers_decides() -> None:
    translated, copied = ("1,500 km", "1.500 km"), ("12.5 kg", "12.5 kg")
    for pairs, is_translated in (
        ([], True),
        ([translated], True),
        ([copied], False),
        ([translated] * 3 + [copied], True),
    ):
        statistics = counts_of(pairs).statistics()
        assert statistics.translates_numbers is is_translated
        masked = mask("1,500 km", mask_rules("en", "de", statistics))
        assert masked.in_target(MASKS[0]) == ("1.500 km" if is_translated else "1,500 km")


def test_preparation_and_model_folder_have_the_statistics(tmp_path: Path) -> None:
    grammar = [(pair.en, pair.de) for pair in generate_pairs("train", n_pairs=300, seed=5)]
    for side, language in enumerate(("en", "de")):
        lines = (f"{'<de> ' * (side == 0)}{pair[side]} {'12.5 kg' if side == 0 else '12,5 kg'}\n" for pair in grammar)
        (tmp_path / f"t.{language}").write_text("".join(lines), encoding="utf-8")
    files = {"train_src": str(tmp_path / "t.en"), "train_tgt": str(tmp_path / "t.de")}
    config = DataConfig(**{"corpus": "files", "vocab_size": 400, "masks": True, **files})
    messages: list[str] = []
    prepared = prepare(config, tmp_path / "prepared", log=messages.append)
    assert any(says(line, "control tags", "<de>", 300) for line in messages)
    assert prepared.masks == MaskStatistics(one_sided=("<de>",), translates_numbers=True)
    source, target = prepared.train.pair(0)
    written = prepared.tokenizers.src.decode(source), prepared.tokenizers.tgt.decode(target)
    assert written[0].startswith("<de> ")
    assert [sum(character in MASKS for character in side) for side in written] == [1, 1]  # of 12.5 kg

    statistics = line_statistics(prepared.train, prepared.tokenizers, "en", prepared.masks)
    values = json.loads(json.dumps(statistics.as_json()))
    assert LineStatistics.from_json(values, where="here") == statistics
    assert mask("<de> <b>", mask_rules("en", "de", statistics.masks)).text == f"<de> {MASKS[0]}"
    del values["masks"]
    older = LineStatistics.from_json(values, where="here")
    assert older is not None
    assert older.masks is None
    assert mask("<de> <b>", mask_rules("en", "de", None)).text == MASKS[0] + " " + MASKS[1]
    with pytest.raises(CheckpointError, match=naming("here", "one_sided")):
        LineStatistics.from_json({**values, "masks": {"one_sided": 5, "translates_numbers": True}}, where="here")

    description = json.loads((tmp_path / "prepared" / "prepared.json").read_text())
    assert description["masks"] == {"one_sided": ["<de>"], "translates_numbers": True}


def test_a_prepared_folder_of_an_earlier_version_has_no_statistics(tmp_path: Path) -> None:
    prepare(DataConfig(n_pairs=50, vocab_size=300), tmp_path / "prepared")
    path = tmp_path / "prepared" / "prepared.json"
    description = json.loads(path.read_text())
    del description["masks"], description["format"]
    path.write_text(json.dumps(description))
    (tmp_path / "prepared" / "manifest.json").unlink()
    assert open_prepared(tmp_path / "prepared").masks is None
