"""Unusual arguments, streams and signals: results are not mixed with messages, and errors are one line."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from typing import Any
from xml.etree import ElementTree

import pytest

from commands import CommandLine
from forks import Forks, Process
from said import says
from transduce.cli.main import run
from transduce.cli.output import MAX_LINE_CHARACTERS, echo, json_line, visible
from transduce.config import (
    DataConfig,
    ModelConfig,
    RunConfig,
    SearchConfig,
    TrainingConfig,
    config_from_mapping,
)
from transduce.errors import ConfigError, TreeError, quoted
from transduce.recipes import read_recipe, with_settings
from transduce.trees import Tree, parse_tree
from transduce.view.trees import draw_tree

pytestmark = [pytest.mark.reliability, pytest.mark.merge]

LINES = b"The dog sleeps.\n\xff\n"  # the second makes a warning
CONTROLS = "\x1b[2J\x07\x00\r\n\x7f\x9b\u202e\u2066\u2028\ud800"


Command = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def command(forks: Forks) -> Command:
    """``transduce`` in a process of its own, without some of its descriptors."""

    def run_it(*arguments: object, closed: tuple[int, ...] = (), **options: Any) -> subprocess.CompletedProcess[bytes]:
        close = "".join(f"os.close({descriptor})\n" for descriptor in closed)
        environment = {"TRANSDUCE_TRACEBACK": "1"}
        return forks.run(*arguments, before=close, env=environment, text=False, **{"input": b"", **options})

    return run_it


def start_interpreter(*arguments: object, closed: tuple[int, ...] = ()) -> subprocess.CompletedProcess[bytes]:
    """The same with an interpreter that starts without these descriptors."""
    words = [sys.executable, "-m", "transduce", *(os.fsencode(str(each)) for each in arguments)]
    close = " ".join(f"{descriptor}>&-" for descriptor in closed)
    shell = ["/bin/sh", "-c", f'exec "$@" {close}', "sh"]
    return subprocess.run([*shell, *words], input=LINES, capture_output=True, timeout=120, check=False)


def the_error(outcome: Any) -> str:
    """Run a command in this process and return its one-line error."""
    assert outcome.code == 1, outcome
    [line] = [line for line in outcome.err.splitlines() if line.startswith("error")]
    assert len(line) <= MAX_LINE_CHARACTERS + 100
    assert outcome.err.isprintable() or outcome.err.replace("\n", "").isprintable()
    return str(line)


# Descriptors


@pytest.mark.slow
def test_without_stderr_no_remark_is_among_the_translations(
    command: Command, micro_model: Path, tmp_path: Path
) -> None:
    text = tmp_path / "text"
    text.write_bytes(LINES)
    whole = command("translate", micro_model, "--device", "cpu", input=LINES)
    assert whole.returncode == 0
    assert b"UTF-8" in whole.stderr
    for closed in ((2,), (0, 2)):
        source = ["--in", text] if 0 in closed else []
        done = start_interpreter("translate", micro_model, *source, "--device", "cpu", closed=closed)
        assert (done.returncode, done.stdout, done.stderr) == (0, whole.stdout, b"")


@pytest.mark.merge
def test_without_any_stream_a_run_is_trained_and_files_are_whole(
    command: Command, micro_recipe: Path, tmp_path: Path
) -> None:
    settings = ["--set", "training.max_updates=10", "--set", "search.beam_size=1", "--device", "cpu"]
    done = command("train", micro_recipe, "--out", tmp_path / "run", *settings, closed=(0, 2))
    assert done.returncode == 0
    assert done.stdout.endswith(b"model: " + os.fsencode(tmp_path / "run" / "model") + b"\n")
    config = json.loads((tmp_path / "run" / "run.json").read_text())["config"]
    assert config["training"]["max_updates"] == 10
    # Scores that cannot be printed are an error; the model is written nevertheless.
    silent = command("train", micro_recipe, "--out", tmp_path / "silent", *settings, closed=(0, 1))
    assert silent.returncode == 1
    assert silent.stderr.splitlines()[-1] == b"error: stdout cannot be written: it is closed"
    for name in ("config.json", "model.safetensors"):
        assert (tmp_path / "silent" / "model" / name).read_bytes() == (tmp_path / "run" / "model" / name).read_bytes()


def test_a_closed_stdin_is_told(command: Command, micro_model: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("one two three\n")
    for arguments in (["translate", micro_model, "--device", "cpu"], ["score", "--ref", text, "-"]):
        done = command(*arguments, closed=(0,))
        assert done.returncode == 1
        assert done.stderr == b"error: stdin cannot be read: it is closed; redirect it, as in < FILE, or name a file\n"


@pytest.mark.parametrize("verb", [["model", "tiny"], ["--help"], ["--version"], ["corpus", "list"]])
def test_a_result_that_cannot_be_written_is_told(command: Command, verb: list[str]) -> None:
    closed = command(*verb, closed=(1,))
    assert (closed.returncode, closed.stderr) == (1, b"error: stdout cannot be written: it is closed\n")
    with Path("/dev/full").open("wb") as full:
        done = command(*verb, stdout=full)
    assert (done.returncode, done.stderr) == (1, b"error: stdout cannot be written: No space left on device\n")


def test_a_closed_stdout_is_told_before_the_work(command: Command, micro_model: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("one two three\n")
    told = b"error: stdout cannot be written: it is closed; redirect it, as in > FILE\n"
    for arguments in (
        ["translate", micro_model, "--in", text],
        ["translate", micro_model, "--in", text, "--out", "-"],
        ["parse", tmp_path / "no model"],
        ["evaluate", micro_model, "--src", text, "--ref", text],
    ):
        done = command(*arguments, closed=(1,))
        assert (done.returncode, done.stderr) == (1, told)
    out = tmp_path / "out"
    done = command("translate", micro_model, "--in", text, "--out", out, "--device", "cpu", closed=(1,))
    assert (done.returncode, out.read_text().count("\n")) == (0, 1)


def test_a_stderr_that_cannot_be_written_ends_nothing(command: Command, micro_model: Path) -> None:
    whole = command("translate", micro_model, "--device", "cpu", input=LINES)
    with Path("/dev/full").open("wb") as full:
        done = command("translate", micro_model, "--device", "cpu", input=LINES, stderr=full)
    assert (done.returncode, done.stdout) == (0, whole.stdout)


# Numbers


def numbers_of(kind: type[Any]) -> list[str]:
    return [name for name, field in kind.model_fields.items() if isinstance(field.default, int | float)] + [
        name
        for name in ("max_minutes", "clip_norm", "patience", "checkpoint_every_minutes")
        if name in kind.model_fields
    ]


KINDS = {
    **{f"model.system={name}": kind for name, kind in ModelConfig.members.items()},
    "data.task=translation": DataConfig,
    "training.max_updates=1000": TrainingConfig,
    **{f"search.kind={name}": kind for name, kind in SearchConfig.members.items()},
}
FIELDS = [(setting, name) for setting, kind in KINDS.items() for name in numbers_of(kind)]


@pytest.mark.parametrize(("setting", "name"), FIELDS, ids=[" ".join(field) for field in FIELDS])
def test_every_number_has_its_limits(setting: str, name: str) -> None:
    """Nothing overflows 64 bits, and nothing is infinite: all of it is written as JSON."""
    table = setting.split(".")[0]
    for value in ("inf", "-inf", "nan", "1e400", "1" + 20 * "0", "1" + 320 * "0", "-" + "9" * 30, "0x" + "f" * 5000):
        with pytest.raises(ConfigError) as caught:
            with_settings(RunConfig(), [setting, f"{table}.{name}={value}"])
        assert len(str(caught.value)) < 300
        assert f"{table}.{name}: " in str(caught.value)


def test_the_limits_leave_room_for_large_models() -> None:
    large = [
        "model.n_encoder_layers=500", "model.n_decoder_layers=500", "model.d_model=20480", "model.d_ff=81920",
        "model.n_heads=160", "model.n_experts=2048", "data.vocab_size=1000000", "training.max_updates=1000000000",
        "training.max_tokens_per_batch=10000000", "training.seed=9223372036854775807", "training.n_accumulate=10000",
        "training.max_minutes=500000", "data.max_length_ratio=1e9", "training.clip_norm=1e9",
    ]  # fmt: skip
    config = with_settings(RunConfig(), large)
    assert config_from_mapping(RunConfig, json.loads(config.model_dump_json()), where="here") == config


def test_infinity_says_how_to_switch_it_off(transduce: CommandLine, micro_recipe: Path, tmp_path: Path) -> None:
    run = ["train", micro_recipe, "--out", tmp_path / "run", "--device", "cpu"]
    told = the_error(transduce(*run, "--set", "data.max_length_ratio=inf"))
    assert says(told, "data.max_length_ratio", "finite", "inf", "1e9")
    settings = ["data.max_length_ratio=1e9", "training.max_updates=1", "search.beam_size=1"]
    assert transduce(*run, *(word for each in settings for word in ("--set", each))).code == 0
    told = the_error(transduce(*run, "--set", "training.clip_norm=inf"))
    assert says(told, "training.clip_norm", "inf")


def test_the_largest_seed_can_be_used(transduce: CommandLine, micro_recipe: Path, tmp_path: Path) -> None:
    settings = [f"{name}={2**63 - 1}" for name in ("training.seed", "data.corpus_seed")]
    settings += ["training.max_updates=2", "search.beam_size=1", "data.bpe_dropout=0.1", "model.p_drop=0.1"]
    words = [word for each in settings for word in ("--set", each)]
    assert transduce("train", micro_recipe, "--out", tmp_path / "run", "--device", "cpu", *words).code == 0


@pytest.mark.parametrize(
    "option",
    [
        ["translate", "M", "--buffer"], ["translate", "M", "--n-best"], ["translate", "M", "--beam"],
        ["translate", "M", "--alpha"], ["translate", "M", "--rerank-weight"], ["parse", "M", "--buffer"],
        ["score", "H", "--ref", "R", "--resamples"], ["score", "H", "--ref", "R", "--seed"],
        ["average", "R", "--last"], ["demo", "--seed"], ["demo", "--minutes"], ["init", "--minutes"],
        ["init", "--max-dropped-share"], ["corpus", "get", "grammar", "--pairs"],
        ["corpus", "get", "grammar", "--seed"], ["model", "tiny", "--length"], ["model", "tiny", "--vocab-size"],
        ["train", "R", "--minutes"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_every_number_of_the_command_line_has_its_limits(transduce: CommandLine, option: list[str]) -> None:
    for value in ("1" + 20 * "0", "9" * 5000, "inf", "nan", "x", "-1", ""):
        assert f"'{option[-1]}'" in the_error(transduce(*option, value))


def test_how_many_updates_may_be_skipped(transduce: CommandLine, micro_recipe: Path) -> None:
    for number in ("9" * 18, "9" * 19, "9" * 5000):
        the_error(transduce("train", micro_recipe, "--on-nan", f"skip:{number}"))


# Recipes


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "sets nothing; a recipe names a preset"),
        (b"# later\n\n[data]\n[model]\n", "sets nothing"),
        (b"[data]\nn_pairs = " + b"9" * 4301, "not valid TOML: Exceeds the limit"),
        (b"a = " + b"[" * 3000, "not valid TOML: brackets are nested too deeply"),
        (b"a" + b".a" * 3000 + b" = 1", "unknown key a"),
        (b'"<name>" = 1', "unknown key <name>; known are preset, model"),
        (b'[model]\n"[key]" = 1', r"unknown key model.[key]"),
        (b'"\\u001b[31m" = 1', r"unknown key '\x1b[31m'"),
        (b'[data]\ncorpus = "files"\ntrain_tsv = "a\\u0000b"', "a file name without NUL"),
        (b'[data]\ncorpus = "' + b"a" * 10_000 + b'"', "at most 100 characters"),
        ("preset = 'tiny'\n".encode("utf-16"), "is not UTF-8"),
        (b"# " + b"a" * (1 << 20), "has more than 1,048,576 bytes"),
        (b"preset = '" + b"x" * 100_000 + b"'", "unknown preset 'xxx"),
        (b"preset = " + b"[" * 200 + b"]" * 200, "preset: should be a string"),
    ],
)  # fmt: skip
def test_recipes_that_are_none(transduce: CommandLine, tmp_path: Path, content: bytes, words: str) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_bytes(content)
    for verb in (["train", recipe, "--out", tmp_path / "run"], ["model", recipe]):
        assert words in the_error(transduce(*verb))
    assert list(tmp_path.iterdir()) == [recipe]


def test_a_recipe_with_a_byte_order_mark_is_one(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_bytes(b"\xef\xbb\xbf[training]\nmax_updates = 7\n")
    assert read_recipe(tmp_path / "r.toml").training.max_updates == 7


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("training.seed=" + "[" * 3000, "brackets are nested too deeply"),
        ("training.seed=" + "9" * 4301, "Exceeds the limit"),
        ("data.train_tsv=caf\udce9", "valid string"),
        ("training.seed=1\nx=2", "valid integer, got '1\\nx=2'"),
        ("x" * 10_000, "expected table.key=value"),
    ],
)
def test_settings_that_are_none(transduce: CommandLine, micro_recipe: Path, setting: str, words: str) -> None:
    assert words in the_error(transduce("train", micro_recipe, "--set", setting))


# Paths

PATHS = [
    ["translate", "MODEL", "--in", "{}"],
    ["translate", "MODEL", "--out", "{}"],
    ["translate", "MODEL", "--rerank", "{}"],
    ["translate", "{}"],
    ["parse", "MODEL", "--svg", "{}"],
    ["parse", "MODEL", "--trees", "{}"],
    ["evaluate", "MODEL", "--src", "{}", "--ref", "{}"],
    ["evaluate", "MODEL", "--text", "multi30k/test", "--out", "{}"],
    ["score", "--ref", "{}", "{}"],
    ["parseval", "{}", "{}"],
    ["train", "{}"],
    ["train", "RECIPE", "--out", "{}"],
    ["train", "RECIPE", "--store", "{}"],
    ["train", "RECIPE", "--data", "{}"],
    ["train", "--resume", "--out", "{}"],
    ["prepare", "RECIPE", "--out", "{}"],
    ["demo", "--out", "{}"],
    ["average", "{}"],
    ["average", "RUN", "--out", "{}"],
    ["attention", "MODEL", "--src", "a", "--out", "{}"],
    ["init", "--src", "{}", "--tgt", "{}"],
    ["init", "--tsv", "RECIPE", "--direction", "en-de", "--out", "{}"],
    ["corpus", "get", "grammar", "--out", "{}"],
    ["corpus", "list", "--data", "{}"],
]


@pytest.mark.parametrize("words", PATHS, ids=" ".join)
def test_paths_that_nothing_can_be_at(
    transduce: CommandLine, micro_recipe: Path, micro_run: Path, tmp_path: Path, words: list[str]
) -> None:
    loop, file = tmp_path / "loop", tmp_path / "file"
    loop.symlink_to(loop)
    file.write_text("a\n")
    named = {"MODEL": micro_run / "model", "RUN": micro_run, "RECIPE": micro_recipe}
    for path in (loop, loop / "x", file / "x", tmp_path / ("n" * 300), ""):
        told = the_error(transduce(*(path if word == "{}" else named.get(word, word) for word in words)))
        assert path == "" or str(path) in told
        assert "this is a bug" not in told
    assert {path.name for path in tmp_path.iterdir()} == {"loop", "file"}


@pytest.mark.parametrize("words", [each for each in PATHS if each[-2] in ("--out", "--svg")], ids=" ".join)
def test_a_name_without_room_is_refused_before_the_work(
    transduce: CommandLine, micro_recipe: Path, micro_run: Path, tmp_path: Path, words: list[str]
) -> None:
    """The temporary name during writing would be too long."""
    if words[1] == "--resume" or words[0] == "attention":
        pytest.skip("reads it, or is one file")
    named = {"MODEL": micro_run / "model", "RUN": micro_run, "RECIPE": micro_recipe, "{}": tmp_path / ("n" * 250)}
    told = the_error(transduce(*(named.get(word, word) for word in words)))
    assert "File name too long" in told
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words",
    [each for each in PATHS if each[0] in ("train", "prepare", "demo", "average", "corpus")],
    ids=" ".join,
)
def test_a_file_where_a_folder_should_be(
    transduce: CommandLine, micro_recipe: Path, micro_run: Path, tmp_path: Path, words: list[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("a\n")
    named = {"RUN": micro_run, "RECIPE": micro_recipe, "{}": file}
    assert str(file) in the_error(transduce(*(named.get(word, word) for word in words)))
    assert file.read_text() == "a\n"


def odd_folder(tmp_path: Path) -> Path:
    """A folder whose name is not UTF-8."""
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    try:
        folder.mkdir()
    except (OSError, UnicodeError):
        pytest.skip("no such names here")
    return folder


def test_names_that_are_not_utf8_serve(command: Command, micro_model: Path, tmp_path: Path) -> None:
    folder = odd_folder(tmp_path)
    text, out = folder / "text", folder / "out"
    text.write_bytes(b"The dog sleeps.\n")
    done = command("translate", micro_model, "--in", text, "--out", out, "--device", "cpu")
    assert (done.returncode, out.read_bytes().count(b"\n")) == (0, 1), done.stderr
    assert start_interpreter("score", "--ref", text, out).returncode == 0
    made = command("corpus", "get", "grammar", "--pairs", 20, "--out", folder / "grammar", "--json")
    assert made.returncode == 0
    assert json.loads(made.stdout)["folder"] == str(folder / "grammar")
    plain = command("corpus", "get", "grammar", "--pairs", 20, "--out", folder / "again")
    assert plain.stdout.startswith(os.fsencode(tmp_path) + b"/caf\\udce9/again: ")


@pytest.mark.parametrize(
    "words",
    [
        ["train", "RECIPE", "--out", "{}"],
        ["train", "RECIPE", "--store", "{}"],
        ["train", "RECIPE", "--treebank", "{}"],
        ["demo", "--out", "{}"],
        ["average", "RUN", "--out", "{}"],
        ["init", "--src", "{}", "--tgt", "{}"],
        ["init", "--tsv", "RECIPE", "--direction", "en-de", "--out", "{}"],
    ],
    ids=" ".join,
)
def test_names_that_have_to_be_utf8_are_refused_before_the_work(
    transduce: CommandLine, micro_recipe: Path, micro_run: Path, tmp_path: Path, words: list[str]
) -> None:
    folder = odd_folder(tmp_path)
    named = {"RUN": micro_run, "RECIPE": micro_recipe, "{}": folder / "x"}
    # Arguments of a process; those of this one are text, and have what is no UTF-8 as lone surrogates.
    told = the_error(transduce(*(named.get(word, word) for word in words)))
    assert says(told, r"caf\udce9/x", "UTF-8")
    assert not list(folder.iterdir())


# Output


def test_lines_have_no_controls_and_an_end(capsys: pytest.CaptureFixture[str]) -> None:
    echo(f"warning: {CONTROLS}")
    said = capsys.readouterr().err
    assert said == "warning: \\x1b[2J\\x07\\x00\\r\\n\\x7f\\x9b\\u202e\\u2066\\u2028\\ud800\n"
    assert len(visible("x" * 10**6)) < MAX_LINE_CHARACTERS + 10
    assert visible(f"{'x' * 10**6}; try --this").endswith("; try --this")
    assert visible("Süßes 犬 🐕 — «x»") == "Süßes 犬 🐕 — «x»"


def test_json_is_for_any_terminal() -> None:
    line = json_line({CONTROLS: ["süß", CONTROLS]})
    assert line.isprintable()
    assert json.loads(line) == {CONTROLS: ["süß", CONTROLS]}
    line.encode("utf-8")


def test_files_do_not_speak_to_the_terminal(transduce: CommandLine, own_run: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text('preset = "\\u001b]0;mine\\u0007"\n')
    assert "\\x1b]0;mine" in the_error(transduce("train", recipe))
    holder = {"host": "a\x1b[2J\u202eb" + "c" * 3000, "process": 1, "since": "now\x9b"}
    (own_run / "lock.json").write_text(json.dumps(holder))
    assert "a\\x1b[2J\\u202ebccc" in the_error(transduce("train", "--resume", "--out", own_run, "--device", "cpu"))
    assert "\x1b" not in transduce("doctor", own_run).out
    assert "\x1b" not in the_error(transduce("model", "\x1b[31mred"))
    assert "\\x1b" in transduce("\x1b[31mred").err
    assert "\x1b" not in transduce("doctor", "\x1b[31mred").out


def test_errors_quote_trees_in_brief() -> None:
    word = "x" * 10**6
    for text in (f"(S {word} {word})", f"({word}", f"{word}", f"(S (NP {word}) {word})", f"(S (NP a)) {word}"):
        with pytest.raises(TreeError) as caught:
            parse_tree(text)
        assert len(str(caught.value)) < 700
    assert quoted(16**5000) == "int of thousands of digits"


def test_a_drawing_is_xml_whatever_its_words_are() -> None:
    odd = [chr(n) for n in (*range(32), *range(0x7F, 0xA0), 0xD800, 0xDFFF, 0xFFFE, 0xFFFF, 0x1FFFF, 0x10FFFF)]
    leaves = tuple(Tree("<&\uffff>", word=f"a{character}&b") for character in odd)
    drawing = ElementTree.fromstring(draw_tree(Tree("TOP", leaves)).encode("utf-8", "strict"))
    words = [each.text for each in drawing.iter() if each.get("class") == "word"]
    assert len(words) == len(odd)
    assert "a\ufffd&b" in words


# Internal errors


def test_what_nobody_foresaw_is_one_line(
    transduce: CommandLine, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for error in (
        RecursionError("deep"),
        OverflowError("a\nb"),
        ZeroDivisionError(),
        RuntimeError("\x1b"),
        KeyError("k"),
    ):

        def fail(*_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr("transduce.cli.model._config", fail)
        monkeypatch.delenv("TRANSDUCE_TRACEBACK", raising=False)
        assert run(["model", "tiny"]) == 1
        said = capfd.readouterr().err
        assert said.count("\n") == 1
        assert said.startswith(f"error: {type(error).__name__}: ")
        assert "(cli/model.py, line " in said
        assert "TRANSDUCE_TRACEBACK=1" in said
        monkeypatch.setenv("TRANSDUCE_TRACEBACK", "1")
        assert run(["model", "tiny"]) == 1
        assert "Traceback (most recent call last)" in capfd.readouterr().err

    def have_no_memory(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("transduce.cli.model._config", have_no_memory)
    assert run(["model", "tiny"]) == 1
    assert says(capfd.readouterr().err.splitlines()[-1], re.compile("^error: "), "memory")


def test_an_interrupt_while_modules_are_read(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("transduce.cli.main._run", interrupt)
    assert (run([]), capfd.readouterr().err) == (130, "interrupted\n")


# Hang-ups


def said_until(process: Process, words: str) -> str:
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if words in line:
            return said
    raise AssertionError(said)


LONG = ["--set", "training.max_updates=1000000", "--set", "training.log_every_updates=1", "--device", "cpu"]


@pytest.mark.parametrize("kind", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_before_the_updates_leaves_nothing(
    forks: Forks, micro_recipe: Path, tmp_path: Path, kind: signal.Signals
) -> None:
    run_folder = tmp_path / "run"
    with forks.start("train", micro_recipe, "--out", run_folder, *LONG, "--set", "data.n_pairs=200000") as process:
        said_until(process, "run folder: ")
        time.sleep(0.3)  # within the preparation of the text
        process.send_signal(kind)
        process.send_signal(kind if kind == signal.SIGHUP else signal.SIGHUP)  # as shells and sessions do
        _, err = process.communicate(timeout=60)
    assert process.returncode in (128 + kind, 128 + signal.SIGHUP), err
    assert says(err.splitlines()[-1], re.compile(r"\bSIG[A-Z]+\b"))
    assert list(tmp_path.iterdir()) == []


def test_a_hang_up_saves(forks: Forks, micro_recipe: Path, tmp_path: Path) -> None:
    run_folder = tmp_path / "run"
    with forks.start("train", micro_recipe, "--out", run_folder, *LONG) as process:
        said_until(process, "update 3 ")
        for _ in range(3):  # a closing terminal sends it more than once
            process.send_signal(signal.SIGHUP)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 129, err
    assert says(err, "saved", re.compile(r"update \d+"))
    assert list((run_folder / "checkpoints").iterdir())


def test_a_terminal_that_is_gone_does_not_hinder_saving(forks: Forks, micro_recipe: Path, tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    run_folder = tmp_path / "run"
    ours, theirs = pty.openpty()
    environment = {"TERM": "xterm"}
    settings = [*LONG, "--set", "training.checkpoint_every_updates=5"]
    process = forks.start(
        "train", micro_recipe, "--out", run_folder, *settings,
        stdin=theirs, stdout=theirs, stderr=theirs, before="os.setsid()", env=environment,
    )  # fmt: skip
    os.close(theirs)
    while not list(run_folder.glob("checkpoints/update-*")):
        with contextlib.suppress(OSError):
            assert os.read(ours, 4096), "it has ended"
    os.close(ours)  # what is written from now on is an error (EIO)
    before = len(list(run_folder.glob("checkpoints/*")))
    assert before
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=60) == 129
    newest = sorted(run_folder.glob("checkpoints/update-*"))[-1]
    assert json.loads((newest / "state.json").read_text())["cause"] in ("stop", "schedule")
    assert not (run_folder / "lock.json").exists()


@pytest.mark.parametrize(
    "kind", [signal.SIGINT, *(pytest.param(kind, marks=pytest.mark.slow) for kind in (signal.SIGTERM, signal.SIGHUP))]
)
def test_a_signal_that_is_ignored_stays_so(
    forks: Forks, micro_recipe: Path, tmp_path: Path, kind: signal.Signals
) -> None:
    """Before the updates and within them; as SIGHUP under nohup, SIGINT in the background of a script."""
    settings = ["--set", "training.max_updates=25", "--set", "training.log_every_updates=1", "--device", "cpu"]
    ignore = f"signal.signal({kind:d}, signal.SIG_IGN)"
    with forks.start("train", micro_recipe, "--out", tmp_path / "run", *settings, before=ignore) as process:
        said_until(process, "run folder: ")
        process.send_signal(kind)
        said_until(process, "update 3 ")
        for _ in range(2):
            process.send_signal(kind)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "stopping" not in err
    assert (tmp_path / "run" / "model" / "config.json").exists()


def test_in_the_background_of_a_script_sigterm_alone_ends_it() -> None:
    """A shell without job control starts it with SIGINT and SIGQUIT ignored, nohup with SIGHUP ignored."""
    program = "import os, time; from transduce.cli.main import main; from transduce.cli import verbs\n"
    program += "verbs.make_app = lambda verb, **_: lambda **_: [os.write(1, b'ready\\n'), time.sleep(60)]\nmain()"
    script = 'nohup "$0" -c "$1" & echo $!; wait $!; echo $?'
    with subprocess.Popen(["/bin/sh", "-c", script, sys.executable, program], stdout=PIPE, stderr=PIPE) as shell:
        assert shell.stdout is not None
        process = int(shell.stdout.readline())
        assert shell.stdout.readline() == b"ready\n"
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
            os.kill(process, number)
        out, err = shell.communicate(timeout=60)
    assert (out, err.splitlines()[-1]) == (b"143\n", b"ended by SIGTERM")


@pytest.mark.parametrize("verb", ["model {}", "translate {}", "corpus list"])
def test_a_working_folder_that_is_gone(forks: Forks, tmp_path: Path, micro_model: Path, verb: str) -> None:
    gone = str(tmp_path / "gone")
    done = forks.run(
        *(each.format(micro_model) for each in verb.split()),
        before=f"os.mkdir({gone!r}); os.chdir({gone!r}); os.rmdir({gone!r})",
    )
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert says(line, re.compile("^error: "), "working folder", "cd")
