"""``transduce distil``: translations as training text, of a student or of the other direction."""

from __future__ import annotations

import json
from pathlib import Path

from commands import CommandLine
from said import says
from transduce.corpora.parallel_files import read_tab_separated
from transduce.inference import ScoredText, Translation, Translator
from transduce.inference.translation.distillation import DistilledCounts, distilled_pairs
from transduce.inference.translation.parts import Flag
from transduce.recipes import read_recipe
from transduce.runs import train

LINES = ["The dog sleeps.", "", "A\tcat\u2028sees the old man. The child sleeps.", "The woman sees it."]


def test_what_is_left_out_is_counted() -> None:
    def translation(source: str, text: str, *flags: Flag) -> Translation:
        return Translation(source, (ScoredText(text, 0.0),), flags)

    counts, lines = DistilledCounts(), [
        translation("a\tcat ", " eine\u2028Katze"), translation("", ""), translation("a dog", " "),
        translation("very long", "sehr lang", "source-cut"), translation("a dog", "ein Hund", "short"),
        translation("a cat", "a cat", "untranslated"),
    ]  # fmt: skip
    assert list(distilled_pairs(lines, counts)) == [("a cat", "eine Katze"), ("a dog", "ein Hund")]
    assert counts.as_json() == {"pairs": 2, "empty": 3, "too_long": 1}
    assert list(distilled_pairs(lines, counts, is_back=True)) == [("eine Katze", "a cat"), ("ein Hund", "a dog")]


def test_a_student_is_trained_on_what_its_teacher_writes(
    transduce: CommandLine, micro_model: Path, micro_recipe: Path, tmp_path: Path
) -> None:
    src, out = tmp_path / "train.en", tmp_path / "distilled.tsv"
    src.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    outcome = transduce("distil", micro_model, "--src", src, "--out", out, "--alpha", 9, "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out) == {"out": str(out), "pairs": 3, "empty": 1, "too_long": 0}
    pairs = list(read_tab_separated(out))
    teacher = Translator.load(micro_model)
    assert [source for source, _ in pairs] == [LINES[0], "A cat sees the old man. The child sleeps.", LINES[3]]
    assert [target for _, target in pairs] == teacher.translate([LINES[0], LINES[2], LINES[3]], split=False, alpha=9)
    back = transduce("distil", micro_model, "--back", "--src", src, "--out", tmp_path / "back.tsv", "--alpha", 9)
    assert back.code == 0
    assert list(read_tab_separated(tmp_path / "back.tsv")) == [(target, source) for source, target in pairs]
    text = transduce("distil", micro_model, "--src", src, "--out", tmp_path / "again.tsv", "--alpha", 9)
    assert says(text.out, tmp_path / "again.tsv", 3, 1, 0)
    sampled = transduce("distil", micro_model, "--src", src, "--out", tmp_path / "sampled.tsv", "--sample", "--json")
    assert sampled.code == 0
    drawn = list(read_tab_separated(tmp_path / "sampled.tsv"))
    assert [source for source, _ in drawn] == [source for source, _ in pairs]
    assert all(target != drawn_target for (_, target), (_, drawn_target) in zip(pairs, drawn, strict=True))

    settings = ["data.corpus=files", f"data.train_tsv='{out}'", f"data.dev_tsv='{out}'",
                f"data.tokenizer_from='{micro_model}'", "training.max_updates=2", "training.checkpoint_every_updates=1",
                "training.validate_every_updates=2"]  # fmt: skip
    result = train(read_recipe(micro_recipe, settings), tmp_path / "student")
    assert result.model_folder is not None
    student = Translator.load(result.model_folder)
    assert student.tokenizers.fingerprint == teacher.tokenizers.fingerprint  # so it can draft for its teacher
    assert teacher.translate(LINES[:1], draft=student) == teacher.translate(LINES[:1], beam_size=1)


def test_mistakes_are_one_line(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    src = tmp_path / "train.en"
    src.write_text("The dog sleeps.\n", encoding="utf-8")
    for arguments, facts in (
        (("--src", tmp_path / "missing", "--out", tmp_path / "out.tsv"), ("missing",)),
        (("--src", src, "--out", "-"), ("--out",)),
        (("--src", src, "--out", src), ("--src", src)),
        (("--src", src, "--out", tmp_path / "out.tsv", "--sample", "--beam", 3), ("--sample", "--beam 3")),
    ):
        outcome = transduce("distil", micro_model, *arguments)
        assert outcome.code == 1
        (line,) = outcome.err.splitlines()
        assert says(line, *facts)
    assert src.read_text(encoding="utf-8") == "The dog sleeps.\n"
    assert not (tmp_path / "out.tsv").exists()
