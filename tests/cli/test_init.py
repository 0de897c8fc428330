"""``transduce init``: from the user's two files to a trained translator."""

from __future__ import annotations

import json
import lzma
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

from commands import CommandLine
from said import says
from transduce.config import DataConfig, ParallelData, RunConfig
from transduce.corpora import generate_pairs
from transduce.documents.tmx import tmx_lines
from transduce.errors import TrainingError
from transduce.inference import Translator
from transduce.recipes import read_recipe
from transduce.runs import update_timing


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working folder with two text files."""
    pairs = list(generate_pairs("train", n_pairs=400, seed=5))
    (tmp_path / "my.en").write_text("".join(pair.en + "\n" for pair in pairs), encoding="utf-8")
    (tmp_path / "my.de").write_text("".join(pair.de + "\n" for pair in pairs), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def untimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No update is timed: each takes a hundredth of a second."""
    monkeypatch.setattr(import_module("transduce.runs.new_recipe"), "seconds_per_update", lambda *_: 0.01)


@pytest.mark.merge
def test_from_two_files_to_a_translation(transduce: CommandLine, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update_timing, "N_UPDATES", 3)
    monkeypatch.setattr(update_timing, "N_WARM_UP", 1)
    outcome = transduce("init", "--src", "my.en", "--tgt", "my.de", "--minutes", 0.05)
    assert outcome.code == 0, outcome.err
    assert "30 pairs for dev and 30 for test" in outcome.err
    assert says(outcome.err, re.compile("^warning: "), 340)
    assert says(outcome.out, "transduce train my.toml --out runs/my")
    config = read_recipe(Path("my.toml"))
    assert (config.model.norm, config.training.optimiser, config.training.decay) == ("pre", "muon", "linear")
    assert (config.data.direction, config.data.masks, config.data.train_src) == ("en-de", True, "my-text/train.en")
    assert config.data.max_dropped_share == DataConfig().max_dropped_share
    n_lines = {name: len(lines_of(text / "my-text" / name)) for name in ("train.en", "train.de", "dev.en", "test.de")}
    assert n_lines["train.en"] == n_lines["train.de"] <= 340
    assert n_lines["dev.en"] == n_lines["test.de"] == 30

    sizes = ("model.d_model=32", "model.d_ff=32", "model.d_k=8", "model.d_v=8", "training.max_tokens_per_batch=600")
    small = [f"--set={each}" for each in sizes]
    outcome = transduce(
        "train",
        "my.toml",
        "--out",
        "runs/my",
        "--set",
        "training.max_updates=6",
        "--set",
        "training.max_minutes=5",
        *small,
    )
    assert outcome.code == 0, outcome.err
    assert "warning" not in outcome.err
    assert says(outcome.out, "test", "my-text/test.en", "my-text/test.de")
    translator = Translator.load("runs/my/model")
    assert translator.tokenizers.src.has_masks
    outcome = transduce("translate", "runs/my/model", stdin=b"The dog sees https://x.org/a now. Is it here?\n")
    assert (outcome.code, outcome.out.count("https://x.org/a"), outcome.out.count("\n")) == (0, 1, 1)


@pytest.mark.usefixtures("untimed")
def test_columns_and_languages_that_only_the_text_tells(transduce: CommandLine, text: Path) -> None:
    pairs = zip(lines_of(text / "my.en"), lines_of(text / "my.de"), strict=True)
    (text / "both.txt.xz").write_bytes(lzma.compress("".join(f"{en}\t{de}\n" for en, de in pairs).encode()))
    outcome = transduce("init", "--tsv", "both.txt.xz", "--minutes", 0.05, "--out", "new/both.toml", "--json")
    assert outcome.code == 0, outcome.err
    assert says(outcome.err, "English", "German", "en-de")
    told = json.loads(outcome.out)
    assert told.keys() == {
        "recipe", "text", "train_pairs", "dev_pairs", "test_pairs", "left_out_pairs", "updates", "expected_minutes"
    }  # fmt: skip
    assert told["train_pairs"] + told["dev_pairs"] + told["test_pairs"] + told["left_out_pairs"] == 400
    recipe = read_recipe(text / "new" / "both.toml")
    assert recipe.data.dev_tgt == "new/both-text/dev.de"
    # A machine that turns out to be quicker goes on until the clock ends the run.
    assert (recipe.training.max_updates, recipe.training.max_minutes) == (int(1.5 * told["updates"]), 0.05)


@pytest.mark.parametrize(("minutes", "r_drop"), [(12, 0.0), (48, 2.0)])
def test_r_drop_is_for_runs_of_many_updates(
    transduce: CommandLine, text: Path, monkeypatch: pytest.MonkeyPatch, minutes: float, r_drop: float
) -> None:
    """With 2 layers 3,348 updates in 12 minutes are too few; with 4 layers 6,696 in 48 minutes are enough for two."""

    def seconds(config: RunConfig, *_: object) -> float:
        layers, _ = config.model.layer_counts
        return 0.1 * layers * (2 if config.training.r_drop else 1)

    monkeypatch.setattr(import_module("transduce.runs.new_recipe"), "seconds_per_update", seconds)
    outcome = transduce("init", "--src", "my.en", "--tgt", "my.de", "--minutes", minutes)
    assert outcome.code == 0, outcome.err
    assert says(outcome.out, "3,348 updates with R-Drop" if r_drop else "3,348 updates,")
    recipe = read_recipe(text / "my.toml")
    assert (recipe.training.r_drop, recipe.model.p_drop) == (r_drop, 0.3)
    assert ("r_drop" in (text / "my.toml").read_text(encoding="utf-8")) is bool(r_drop)


def test_nothing_is_written_over_and_nothing_is_left(transduce: CommandLine, text: Path) -> None:
    (text / "my.toml").write_text("mine")
    outcome = transduce("init", "--src", "my.en", "--tgt", "my.de")
    assert (outcome.code, says(outcome.err, "my.toml", "exists")) == (1, True)
    assert (text / "my.toml").read_text() == "mine"
    (text / "short.de").write_text("eins\n")
    outcome = transduce("init", "--src", "my.en", "--tgt", "short.de", "--out", "new/other.toml")
    assert (outcome.code, says(outcome.err, "short.de", 1, "my.en", 400)) == (1, True)
    assert not (text / "new").exists()


@pytest.mark.usefixtures("untimed")
def test_what_is_wrong_with_the_text_is_told(transduce: CommandLine, text: Path) -> None:
    german = lines_of(text / "my.de")
    (text / "shifted.de").write_text("\n".join([*german[:150], *german[151:], "Ende."]) + "\n", encoding="utf-8")
    outcome = transduce("init", "--src", "my.en", "--tgt", "shifted.de", "--minutes", 0.05, "--out", "a.toml")
    assert outcome.code == 0
    assert re.search(r"^warning: .*\bmy\.en\b.*\bshifted\.de\b.*\b1[45]\d\b.*\bN . 1\b", outcome.err, re.MULTILINE)
    outcome = transduce(
        "init", "--src", "my.de", "--tgt", "my.en", "--direction", "en-de", "--minutes", 0.05, "--out", "b.toml"
    )
    assert says(outcome.err, re.compile("^warning: "), "my.de", "my.en", "German", "English")
    (text / "half.de").write_text("\n".join(line if n % 2 else "" for n, line in enumerate(german)), encoding="utf-8")
    outcome = transduce("init", "--src", "my.en", "--tgt", "half.de", "--out", "c.toml")
    assert outcome.code == 1
    assert says(outcome.err, re.compile(r"\b50\.0 ?%"), "empty 200")
    assert says(outcome.err, "--max-dropped-share 1", "transduce doctor")
    assert "data." not in outcome.err  # there is no recipe yet
    assert not (text / "c.toml").exists()
    assert not (text / "c-text").exists()


def test_advice_can_be_followed(transduce: CommandLine, text: Path) -> None:
    """No file is named that goes, a strange name is quoted, and nothing is offered where nothing remains."""
    pairs = [(line, "") for line in lines_of(text / "my.en")]
    (text / "a b.tsv").write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), encoding="utf-8")
    outcome = transduce("init", "--tsv", "a b.tsv", "--direction", "en-de")
    assert (outcome.code, says(outcome.err, "transduce doctor 'a b.tsv'")) == (1, True), outcome.err
    assert "to train anyway" not in outcome.err
    targets = [line if n % 2 else 12 * line for n, line in enumerate(lines_of(text / "my.de"))]
    units = [(src, tgt, "") for src, tgt in zip(lines_of(text / "my.en"), targets, strict=True)]
    (text / "half.tmx").write_text("\n".join(tmx_lines(units, "en", "de")), encoding="utf-8")
    outcome = transduce("init", "--tmx", "half.tmx")
    assert (outcome.code, says(outcome.err, "length ratio 200", "--max-dropped-share 1")) == (1, True), outcome.err
    assert "doctor" not in outcome.err


def test_a_plan_of_few_minutes_is_told(transduce: CommandLine, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("transduce.runs.new_recipe"), "seconds_per_update", lambda *_: 16.9)
    outcome = transduce("init", "--src", "my.en", "--tgt", "my.de", "--minutes", 1, "--json")
    assert (outcome.code, json.loads(outcome.out)["updates"]) == (0, 3), outcome.err
    training = read_recipe(text / "my.toml").training
    assert (training.warmup_steps, training.validate_every_updates, training.checkpoint_every_updates) == (1, 3, 5)


def test_a_model_without_memory_is_not_chosen(
    transduce: CommandLine, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seconds_per_update(run: RunConfig, *_: object) -> float:
        if run.model.n_encoder_layers > 2 or run.training.r_drop:
            raise TrainingError("there is too little memory")
        return 0.01

    monkeypatch.setattr(import_module("transduce.runs.new_recipe"), "seconds_per_update", seconds_per_update)
    outcome = transduce("init", "--src", "my.en", "--tgt", "my.de", "--minutes", 60)
    assert (outcome.code, outcome.err.count("too little memory")) == (0, 2), outcome.err
    recipe = read_recipe(text / "my.toml")
    assert (recipe.model.n_encoder_layers, recipe.training.r_drop) == (2, 0)


@pytest.mark.usefixtures("untimed")
def test_files_of_translators(transduce: CommandLine, text: Path) -> None:
    pairs = list(zip(lines_of(text / "my.en"), lines_of(text / "my.de"), strict=True))
    memory = tmx_lines([(en, de, "") for en, de in pairs[:200]], "en", "de")
    (text / "memory.tmx").write_text("\n".join(memory), encoding="utf-8")
    (text / "po").mkdir()
    messages = "".join(f'msgid "{en}"\nmsgstr "{de}"\n\n' for en, de in pairs[150:])
    (text / "po" / "de.po").write_text(messages, encoding="utf-8")
    (text / "terms.tsv").write_text("dog\tHund\n", encoding="utf-8")
    given = ("--tmx", "memory.tmx", "--po", "po", "--terms", "terms.tsv")
    outcome = transduce("init", *given, "--direction", "en-de", "--minutes", 0.05)
    assert outcome.code == 0, outcome.err
    n_pairs = len(set(pairs))
    assert says(outcome.err, f"read {n_pairs} pairs", 2)
    assert says(outcome.err, "seen before")
    assert len(lines_of(text / "my-pairs.tsv")) == n_pairs
    data = ParallelData.of(read_recipe(Path("my.toml")).data)
    assert (data.direction, data.terms) == ("en-de", True)


@pytest.mark.usefixtures("untimed")
def test_the_languages_of_a_memory_are_those_that_it_names(transduce: CommandLine, text: Path) -> None:
    pairs = list(zip(lines_of(text / "my.de"), lines_of(text / "my.en"), strict=True))
    (text / "memory.tmx").write_text("\n".join(tmx_lines([(de, en, "") for de, en in pairs], "de", "en")))
    outcome = transduce("init", "--tmx", "memory.tmx", "--minutes", 0.05)
    assert outcome.code == 0, outcome.err
    assert says(outcome.err, "German", "English", "direction de-en")
    assert read_recipe(Path("my.toml")).data.direction == "de-en"


def test_a_memory_of_three_languages_needs_a_direction(transduce: CommandLine, text: Path) -> None:
    units = list(tmx_lines([("a dog", "ein Hund", "")], "en", "de"))[:-2]
    french = '<tu><tuv xml:lang="en"><seg>a</seg></tuv><tuv xml:lang="fr"><seg>b</seg></tuv></tu>'
    (text / "memory.tmx").write_text("\n".join([*units, french, "</body></tmx>"]))
    outcome = transduce("init", "--tmx", "memory.tmx", "--minutes", 0.05)
    assert outcome.code == 1
    assert says(outcome.err, "--direction en-de", "en, de, fr")


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["--src", "my.en"], ["--src", "--tgt", "--tsv", "got only --src"]),
        (["--src", "my.en", "--tgt", "my.de", "--tsv", "few.tsv"], ["got --src, --tgt, --tsv"]),
        (["--src", "my.en", "--tgt", "my.de", "--out", "my.txt"], ["--out", ".toml", "'my.txt'"]),
        (["--src", "my.en", "--tgt", "gone.de"], ["gone.de", "No such file"]),
        (
            ["--src", "my.en", "--tgt", "my.de", "--direction", "english-german"],
            ["--direction", "en-de", "'english-german'"],
        ),
        (["--src", "my.en", "--tgt", "my.de", "--direction", "en-en"], ["--direction", "en"]),
        (["--src", "my.en", "--tgt", "my.de", "--minutes", "0"], ["--minutes", 0]),
        (["--tsv", "same.tsv", "--direction", "en-de"], ["dev", "test"]),
        (["--tsv", "few.tsv"], ["--direction"]),
        (["--tsv", "few.tsv", "--direction", "en-de"], [2]),
        (["--tsv", "memory.tmx", "--direction", "en-de"], ["memory.tmx", "TMX", "--tmx"]),
        (["--tmx", "memory.tmx"], ["--direction en-de"]),
        (["--tmx", "memory.tmx", "--direction", "en-de"], ["no translations", "en", "de"]),
        (["--tmx", "gone.tmx", "--direction", "en-de"], ["gone.tmx"]),
        (["--tsv", "number s.tsv", "--direction", "en-de"], ["too repetitive", "would remain"]),
        (["--po", "memory.tmx", "--direction", "en-de"], ["memory.tmx", ".po"]),
        (["--tmx", "memory.tmx", "--tsv", "few.tsv", "--direction", "en-de"], ["--tsv"]),
    ],
)
def test_mistakes(transduce: CommandLine, text: Path, arguments: list[str], facts: list[object]) -> None:
    (text / "few.tsv").write_text("a dog\tein Hund\na cat\teine Katze\n")
    (text / "memory.tmx").write_text('<?xml version="1.0"?>\n<tmx version="1.4"><body></body></tmx>\n')
    (text / "same.tsv").write_text("a dog\tein Hund\n" * 100)
    (text / "number s.tsv").write_text("".join(f"page {n}\tSeite {n}\n" for n in range(100)))
    outcome = transduce("init", *arguments)
    assert (outcome.code, says(outcome.err, re.compile("^error: "), *facts)) == (1, True), outcome.err
    assert sorted(path.name for path in text.iterdir()) == [
        "few.tsv",
        "memory.tmx",
        "my.de",
        "my.en",
        "number s.tsv",
        "same.tsv",
    ]


def with_errors(lines: list[str]) -> list[str]:
    """Sentences as learners write them: every second one has a mistake."""
    return [line.replace("The ", "Teh ") if n % 2 else line for n, line in enumerate(lines)]


@pytest.mark.usefixtures("untimed")
def test_correction_keeps_lines_that_stay_as_they_are(transduce: CommandLine, text: Path) -> None:
    english = lines_of(text / "my.en")
    (text / "written.en").write_text("".join(f"{line}\n" for line in with_errors(english)), encoding="utf-8")
    files = ["--src", "written.en", "--tgt", "my.en", "--minutes", 0.05, "--out", "a.toml"]
    outcome = transduce("init", *files)
    assert (outcome.code, says(outcome.err, "English", "--direction en-en")) == (1, True)
    outcome = transduce("init", *files, "--direction", "en-en")
    assert outcome.code == 0, outcome.err
    assert not says(outcome.err, "dropped", "identical sides")
    config = read_recipe(Path("a.toml"))
    assert (config.data.direction, config.data.drop_identical) == ("en-en", False)
    assert (config.data.train_src, config.data.test_tgt) == ("a-text/train.src.en", "a-text/test.tgt.en")
    sides = [lines_of(text / "a-text" / f"train.{side}.en") for side in ("src", "tgt")]
    assert sides[0] == [dict(zip(english, with_errors(english), strict=True))[line] for line in sides[1]]
    assert {src == tgt for src, tgt in zip(*sides, strict=True)} == {True, False}
    assert "Correction of en" in Path("a.toml").read_text()
    assert transduce("doctor", "a.toml").code == 0


@pytest.mark.usefixtures("untimed")
@pytest.mark.parametrize(
    ("given", "direction"), [("en-pt-BR", "en-pt-BR"), ("en-pt_BR", "en-pt-BR"), ("EN-DE", "en-de")]
)
def test_languages_with_regions(transduce: CommandLine, text: Path, given: str, direction: str) -> None:
    outcome = transduce(
        "init", "--src", "my.en", "--tgt", "my.de", "--direction", given, "--minutes", 0.05, "--out", "a.toml"
    )
    assert outcome.code == 0, outcome.err
    config = read_recipe(Path("a.toml"))
    assert config.data.direction == direction
    assert config.data.dev_tgt == f"a-text/dev.{direction.removeprefix('en-')}"


@pytest.mark.usefixtures("untimed")
def test_languages_with_regions_in_the_names_of_files(transduce: CommandLine, text: Path) -> None:
    Path("my.de").rename("my.pt-BR")
    outcome = transduce("init", "--src", "my.en", "--tgt", "my.pt-BR", "--minutes", 0.05, "--out", "a.toml")
    assert outcome.code == 0, outcome.err
    assert read_recipe(Path("a.toml")).data.direction == "en-pt-BR"


@pytest.mark.usefixtures("untimed")
def test_strange_names_of_files_are_quoted(transduce: CommandLine, text: Path) -> None:
    name = "it's \"my\\\n recipe.toml"
    outcome = transduce("init", "--src", "my.en", "--tgt", "my.de", "--minutes", 0.01, "--out", name)
    assert outcome.code == 0, outcome.err
    command = outcome.out.split("next: ")[1].split("\nthen: ")[0]
    assert shlex.split(command) == ["transduce", "train", name, "--out", f"runs/{Path(name).stem}"]
    assert read_recipe(Path(name)).data.train_src == f"{Path(name).stem}-text/train.en"
