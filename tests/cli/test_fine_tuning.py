"""``transduce train --from MODEL --tmx FILE``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from commands import CommandLine
from said import says
from transduce.corpora import generate_pairs
from transduce.documents.tmx import tmx_lines
from transduce.errors import DataError
from transduce.inference.folder import read_model_folder
from transduce.recipes import preset, read_recipe, with_settings
from transduce.runs import OwnText, read_run_config
from transduce.runs import train as run
from transduce.runs.fine_tuning import _run, _write_old
from transduce.runs.old_text import OldText, old_text_of_run, text_to_mix, write_old_text
from transduce.runs.starting_weights import gentle_rate, overwriting
from transduce.training import peak_learning_rate

SIDES = (("src", "en"), ("tgt", "de"))


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a translation memory in the working folder."""
    monkeypatch.chdir(tmp_path)
    pairs = [(pair.en, pair.de, "") for pair in generate_pairs("train", n_pairs=150, seed=7)]
    path = tmp_path / "memory.tmx"
    path.write_text("\n".join(tmx_lines(pairs, "en", "de")), encoding="utf-8")
    return path


def test_a_model_learns_from_a_memory(transduce: CommandLine, micro_model: Path, memory: Path) -> None:
    del memory
    small = ("--set", "training.max_updates=4", "--set", "training.checkpoint_every_updates=2")
    outcome = transduce("train", "--from", micro_model, "--tmx", "memory.tmx", "--out", "tuned", *small, "--json")
    assert outcome.code == 0, outcome.err
    result = json.loads(outcome.out)
    assert result["updates"] == 4
    new, old = result["compared"]
    assert new["n_lines"] == len(Path("tuned-text/dev.en").read_text(encoding="utf-8").splitlines())
    assert old["n_lines"] == 60
    assert str(micro_model) in old["text"]
    for each in (new, old):
        assert all(0 <= score <= 100 for score in (*each["bleu"], *each["chrf"]))
    config = read_run_config(Path("tuned"))
    assert config.data.tokenizer_from == str(micro_model.resolve()) == config.training.init_from
    peak = peak_learning_rate(d_model=config.model.d_model, config=config.training)
    assert peak == pytest.approx(4 * gentle_rate(config.model.d_model), rel=0.01)
    assert (config.training.best_by, config.data.also_dev) == ("mean_perplexity", ("old",))
    n_of = {name: len(Path("tuned-text", name, "train.en").read_text("utf-8").splitlines()) for name in ("", "old")}
    assert n_of[""] == pytest.approx(config.data.weights["old"] * n_of["old"], rel=0.01)  # half and half
    held_out = set(Path("tuned-text/dev.en").read_text("utf-8").splitlines())
    assert held_out.isdisjoint(Path("tuned-text/old/train.en").read_text("utf-8").splitlines())
    again = transduce("train", "--from", micro_model, "--tmx", "memory.tmx", "--out", "tuned")
    assert (again.code, says(again.err, "tuned", "exists")) == (1, True)


def test_a_model_alone_has_no_old_text(transduce: CommandLine, own_model: Path, memory: Path) -> None:
    outcome = transduce(
        "train", "--from", own_model, "--tmx", memory, "--out", "tuned", "--set", "training.max_updates=1"
    )
    assert outcome.code == 0, outcome.err
    assert says(outcome.out, "dev of the new text", "->")
    assert "the text of" not in outcome.out
    assert says(outcome.err, "warning", "--mix")
    peak = peak_learning_rate(d_model=32, config=read_run_config(Path("tuned")).training)
    assert peak == pytest.approx(gentle_rate(32), rel=0.01)


@pytest.mark.merge
def test_text_to_mix_is_named(transduce: CommandLine, own_model: Path, memory: Path) -> None:
    pairs = [(pair.en, pair.de, "") for pair in generate_pairs("train", n_pairs=100, seed=8)]
    Path("other.tmx").write_text("\n".join(tmx_lines(pairs, "en", "de")), encoding="utf-8")
    few = ("--set", "training.max_updates=1")
    outcome = transduce("train", "--from", own_model, "--tmx", memory, "--mix", "other.tmx", "--out", "a", *few)
    assert outcome.code == 0, outcome.err
    n_dev, n_train = (len(Path(f"a-text/old/{split}.en").read_text("utf-8").splitlines()) for split in ("dev", "train"))
    assert (n_dev, n_dev + n_train <= 100) == (32, True)
    # The text of one run is a corpus for the next.
    outcome = transduce("train", "--from", own_model, "--tmx", "other.tmx", "--mix", "a-text", "--out", "b", *few)
    assert outcome.code == 0, outcome.err
    assert read_run_config(Path("b")).data.weights["old"] > 0
    outcome = transduce("train", "--from", own_model, "--tmx", memory, "--mix", "none", "--out", "c", *few)
    assert (outcome.code, Path("c-text/old").exists()) == (0, False)


def test_a_folder_to_mix_may_have_any_name_and_a_missing_one_is_told(
    transduce: CommandLine, own_model: Path, memory: Path
) -> None:
    pairs = list(generate_pairs("train", n_pairs=100, seed=8))
    for folder in (Path("my old text"), Path("grammar")):
        folder.mkdir()
        for side in ("en", "de"):
            lines = "".join(f"{getattr(pair, side)}\n" for pair in pairs)
            (folder / f"train.{side}").write_text(lines, encoding="utf-8")
        text = text_to_mix([str(folder)], ("en", "de"), None)
        assert {*text.train(), *text.dev} <= {(pair.en, pair.de) for pair in pairs}
    for name in ("no/such.tmx", "no such", "ocr-lines", "files"):
        for verb in ("train", "init"):
            refused = transduce(verb, "--from", own_model, "--tmx", memory, "--mix", name, "--out", "a.toml")
            assert (refused.code, says(refused.err, "--mix", name)) == (1, True), refused.err


def test_a_damaged_run_file_costs_the_old_text_only(own_run: Path, tmp_path: Path) -> None:
    (own_run / "run.json").write_text("{", encoding="utf-8")
    lines = list[str]()
    assert _write_old(own_run / "model", OwnText("en", "de"), tmp_path, (), None, 10, lines.append) == 0
    assert any(says(line, "warning", "run.json", "--mix") for line in lines)


def test_few_pairs_of_old_text_have_the_largest_weight(micro_model: Path, tmp_path: Path) -> None:
    saved = read_model_folder(micro_model, device="cpu")
    config = _run(micro_model, saved, OwnText("en", "de"), tmp_path, 5000, 2, torch.device("cpu"))
    assert config.data.weights["old"] == 1000


def test_a_recipe_that_goes_on_from_a_model(
    transduce: CommandLine, micro_model: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transduce.runs.fine_tuning.seconds_per_update", lambda *_: 0.5)
    outcome = transduce("init", "--from", micro_model, "--tmx", memory, "--minutes", 0.2, "--out", "new.toml")
    assert outcome.code == 0, outcome.err
    assert "next: transduce train new.toml --out runs/new\n" in outcome.out
    assert "transduce memory build" in outcome.out
    config, model = read_recipe(Path("new.toml")), read_run_config(micro_model.parent).model
    assert config.model.model_copy(update={"src_vocab_size": 0, "tgt_vocab_size": 0}) == model.model_copy(
        update={"src_vocab_size": 0, "tgt_vocab_size": 0}
    )
    assert config.data.names_of("train") == ["new-text/train.en", "new-text/train.de"]
    outcome = transduce("train", "new.toml", "--out", "runs/new", "--set", "training.max_updates=2")
    assert outcome.code == 0, outcome.err
    assert says(outcome.out, "dev of the new text", "->")
    assert says(outcome.out, "dev of the text of", micro_model, "->")
    assert "overwrites" not in outcome.err
    other = transduce("init", "--from", micro_model, "--tmx", memory, "--direction", "de-en", "--out", "other.toml")
    assert (other.code, says(other.err, "en-de", "de-en")) == (1, True)


def test_minutes_that_are_too_few_are_told(
    transduce: CommandLine, micro_model: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transduce.runs.fine_tuning.seconds_per_update", lambda *_: 6.0)
    outcome = transduce("init", "--from", micro_model, "--tmx", memory, "--minutes", 1, "--out", "new.toml", "--json")
    assert outcome.code == 0, outcome.err
    assert says(outcome.err, "warning: ", "--minutes 1 ", "9 updates", "fewer than 40", "--minutes 5")
    told = json.loads(outcome.out)
    assert (told["updates"], told["expected_minutes"] <= 1) == (9, True)
    assert "about 1 minute, 9 updates" in Path("new.toml").read_text(encoding="utf-8")


def test_old_text_is_that_of_the_run_wherever_it_is_read(
    transduce: CommandLine, micro_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative paths of a run start from the folder in which it was started, not from another with the same names."""
    for project, seed in (("a", 7), ("b", 8)):
        (tmp_path / project / "text").mkdir(parents=True)
        for split, n in (("train", 150), ("dev", 10)):
            pairs = list(generate_pairs(split, n_pairs=n, seed=seed))
            for side in ("en", "de"):
                lines = "".join(f"{getattr(pair, side)}\n" for pair in pairs)
                (tmp_path / project / "text" / f"{split}.{side}").write_text(lines, encoding="utf-8")
    monkeypatch.chdir(tmp_path / "a")
    files = [f"data.{split}_{side}=text/{split}.{name}" for split in ("train", "dev") for side, name in SIDES]
    run(read_recipe(micro_recipe, [*files, "data.corpus=files", "training.max_updates=1"]), Path("run"))
    monkeypatch.chdir(tmp_path / "b")
    there = (tmp_path / "a" / "text" / "train.en").read_text(encoding="utf-8").splitlines()
    model = Path("../a/run/model")
    old = old_text_of_run(model, None)
    assert old is not None
    assert [src for src, _ in old.train()] == there
    path = tmp_path / "a" / "run" / "run.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    assert settings.pop("started_in") == str(tmp_path / "a")
    path.write_text(json.dumps(settings), encoding="utf-8")  # as earlier versions wrote it
    with pytest.raises(DataError, match="another text"):
        old_text_of_run(model, None)


def test_old_text_is_in_the_data_folder_of_the_run(micro_recipe: Path, tmp_path: Path) -> None:
    """That of ``--data``, which nobody has to give again."""
    text = tmp_path / "data" / "talks"
    text.mkdir(parents=True)
    pairs = list(generate_pairs("train", n_pairs=40, seed=7))
    for split, of_split in (("train", pairs[:30]), ("dev", pairs[30:])):
        for side in ("en", "de"):
            lines = "".join(f"{getattr(pair, side)}\n" for pair in of_split)
            (text / f"{split}.{side}").write_text(lines, encoding="utf-8")
    config = read_recipe(micro_recipe, ["data.corpus=talks", "training.max_updates=1"])
    run(config, tmp_path / "run", data_folder=text.parent)
    old = old_text_of_run(tmp_path / "run" / "model", None)
    assert old is not None
    assert len(list(old.train())) == 30
    text.parent.rename(tmp_path / "gone")
    with pytest.raises(DataError, match="talks"):
        old_text_of_run(tmp_path / "run" / "model", None)


def test_no_near_copy_of_held_out_lines_is_mixed_in(tmp_path: Path) -> None:
    own = OwnText("en", "de")
    held_out = {"train": [("x", "y")], "dev": [("A dog.", "Ein Hund.")], "test": [("Page 12: the END.", "Das Ende.")]}
    for split, pairs in held_out.items():
        for name, lines in zip(own.names_of(split), zip(*pairs, strict=True), strict=True):
            (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    kept = ("A cat", "Eine Katze")
    old = [("page 37 - the end", "Schluss"), ("a DOG", "Hund"), ("The finish", "das ende"), kept]
    lines = list[str]()
    assert write_old_text(OldText(lambda: iter(old), [("b", "c")]), own, tmp_path, 10, lines.append) == 1
    (line,) = lines
    assert says(
        line, "warning: dev and test: 2 of 2 lines", "the old text", "1 source with", "1 line of one or two words"
    )
    assert (tmp_path / "old" / "train.en").read_text(encoding="utf-8") == f"{kept[0]}\n"


def test_a_run_whose_start_has_moved_still_ends(transduce: CommandLine, micro_model: Path, tmp_path: Path) -> None:
    start = Path(shutil.copytree(micro_model, tmp_path / "start"))
    few = ("--set", "training.max_updates=1", "--set", "training.decay=inverse_sqrt")
    pairs = [(pair.en, pair.de, "") for pair in generate_pairs("train", n_pairs=150, seed=7)]
    (tmp_path / "memory.tmx").write_text("\n".join(tmx_lines(pairs, "en", "de")), encoding="utf-8")
    out = tmp_path / "tuned"
    outcome = transduce("train", "--from", start, "--tmx", tmp_path / "memory.tmx", "--mix", "none", "--out", out, *few)
    assert outcome.code == 0, outcome.err
    start.rename(tmp_path / "moved")
    outcome = transduce("train", "--more", 1e-4, "--out", out)
    assert outcome.code == 0, outcome.err
    assert says(outcome.err, "warning", "not compared", "start")
    assert all(each in outcome.out for each in ("scores on test", "model: "))


@pytest.mark.parametrize("other", [(), ("--set", "model.d_ff=40")])  # a few weights have other shapes
def test_a_rate_that_overwrites_is_told(
    transduce: CommandLine, micro_recipe: Path, micro_model: Path, tmp_path: Path, other: tuple[str, ...]
) -> None:
    few = ("--set", "training.max_updates=1", "--set", "training.warmup_steps=10", *other)
    outcome = transduce("train", micro_recipe, "--from", micro_model, "--out", tmp_path / "again", *few)
    assert outcome.code == 0, outcome.err
    assert says(outcome.err, "warning", "overwrites", "init --from", "training.lr_factor=")
    of_widths = [
        overwriting(with_settings(preset("base"), [f"model.d_model={width}"]), Path("M"))
        for width in (64, 128, 256, 512)
    ]
    assert all(of_widths)  # the paper's own rate, at any width


@pytest.mark.merge
def test_a_model_of_another_size_is_told(transduce: CommandLine, micro_recipe: Path, micro_model: Path) -> None:
    settings = ("--set", "training.max_updates=1", "--set", "model.d_model=16")
    outcome = transduce("train", micro_recipe, "--from", micro_model, "--out", micro_recipe.parent / "other", *settings)
    assert outcome.code == 0, outcome.err
    assert says(outcome.err, "warning", "other shapes", micro_model)


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["--tmx", "memory.tmx"], ["--from"]),
        (["--from", "MODEL", "--mix", "memory.tmx"], ["--mix", "--tmx"]),
        (["--from", "MODEL", "--tmx", "memory.tmx", "--mix", "gone"], ["gone"]),
        (["recipe.toml", "--from", "MODEL", "--tmx", "memory.tmx"], ["--from", "recipe"]),
        (["--from", "MODEL", "--tmx", "gone.tmx"], ["gone.tmx"]),
        (["--from", "MODEL", "--xliff", "memory.tmx"], ["memory.tmx", ".xlf"]),
        (["--from", "MODEL", "--tmx", "empty.tmx"], ["no translations"]),
        (["--from", "MODEL", "--tmx", "few.tmx"], ["usable pairs"]),
        (["--from", "MODEL", "--tmx", "memory.tmx", "--more", "1"], ["--more"]),
        (["--from", "MODEL", "--tmx", "memory.tmx", "--set", "training.bogus=1"], ["bogus"]),
        (["--from", "MODEL", "--tmx", "memory.tmx", "--set", "training.best_by=bogus"], ["bogus"]),
        (
            ["--from", "MODEL", "--tmx", "memory.tmx", "--set", "training.max_tokens_per_batch=5"],
            ["max_tokens_per_batch"],
        ),
    ],
)
def test_mistakes(
    transduce: CommandLine, micro_model: Path, memory: Path, arguments: list[str], facts: list[str]
) -> None:
    folder = memory.parent
    (folder / "empty.tmx").write_text("<tmx/>", encoding="utf-8")
    (folder / "few.tmx").write_text("\n".join(tmx_lines([("a dog", "ein Hund", "")], "en", "de")), encoding="utf-8")
    before = sorted(folder.iterdir())
    given = [str(micro_model) if each == "MODEL" else each for each in arguments]
    outcome = transduce("train", *given, "--out", "tuned")
    assert (outcome.code, says(outcome.err, *facts)) == (1, True), outcome.err
    assert sorted(folder.iterdir()) == before
